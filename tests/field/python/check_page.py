# SPDX-License-Identifier: BSD-2-Clause
"""Checks unsalt_header.py against the vectors of the wire format page, one line for each: check_page.py PAGE

The C library is checked against the same tables by tests/unit/test_wire_page.c."""
import sys

import unsalt_header as wire

FIELDS = ("flags", "lane", "lanes", "epoch", "seq", "since", "una")


def tables(page):
    """The rows below each `<!-- vectors: NAME -->`, without the two lines of the head."""
    found, name = {}, None
    for line in page.splitlines():
        if line.startswith("<!-- vectors: "):
            name = line.split()[2]
            found[name] = []
        elif name and line.startswith("|"):
            found[name].append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
        else:
            name = None
    return {name: rows[2:] for name, rows in found.items()}


def unhex(text):
    return b"" if text == "-" else bytes.fromhex(text)


def number(text):
    return None if text == "-" else int(text, 0)


def header(what, text, result, *rest):
    value = unhex(text)
    try:
        found = wire.read(value)
    except wire.Fault as fault:
        return str(fault) == result and rest == ("-",) * 8
    wanted = wire.Header(*map(number, rest[:7]))
    written = "same" if wire.write(wanted) == value else "other"
    return result == "OK" and found == wanted and written == rest[7]


def header_fields(what, text, result, *rest):
    """A writer refuses what a reader would: the fields are taken from the bytes of a header that breaks a rule."""
    value = unhex(text)
    if result in ("OK", "SHORT", "UNKNOWN_VERSION"):
        return True
    fields = wire.LAYOUT.unpack_from(value)
    try:
        wire.write(wire.Header(fields[1], fields[2], fields[3], *fields[5:]))
    except wire.Fault as fault:
        return str(fault) == result
    return False


def plain(text, wanted):
    return wire.read_plain(unhex(text)) == number(wanted)


def trailer(key, digits, head, wanted):
    found = wire.read_trailer(unhex(key), int(digits))
    if wanted == "-":
        return found is None
    return found == (unhex(head), int(wanted)) and unhex(head) + wire.write_trailer(int(wanted), int(digits)) == unhex(key)


def murmur2(key, wanted):
    return wire.murmur2(unhex(key)) == int(wanted)


def partitions(layout, session, n, lanes, block, wanted):
    session, n, lanes = unhex(session), int(n), int(lanes)
    if layout == "hash":
        found = wire.hash_partitions(session, lanes, n)
    elif layout == "topics":
        found = [wire.topics_partition(session, n)] * lanes
    else:
        found = wire.block_partitions(session, lanes, n, int(block))
    return found == [int(partition) for partition in wanted.split()]


def code_of(page, name):
    """A function that stands in the page as a block of Python."""
    names = {}
    for block in page.split("```python\n")[1:]:
        exec(block.split("```")[0], names)  # the page is part of the project
    return names[name]


def main(path):
    bad = 0
    with open(path, encoding="utf-8") as file:
        page = file.read()
    checks = {"header": (header, header_fields), "plain": (plain,), "trailer": (trailer,), "murmur2": (murmur2,),
              "partitions": (partitions,)}
    found = tables(page)
    for name, functions in checks.items():
        rows = found.get(name, [])
        wrong = [row for row in rows for function in functions if not function(*row)]
        good = rows and not wrong
        print(("ok" if good else "not ok") + f" - {name}: {len(rows)} vectors")
        for row in wrong:
            print("   ", *row)
        bad += not good
    same = all(code_of(page, "murmur2")(unhex(key)) == int(wanted) for key, wanted in found.get("murmur2", []))
    print(("ok" if same else "not ok") + " - the code of the page computes the hashes of the page")
    return bad + (not same)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
