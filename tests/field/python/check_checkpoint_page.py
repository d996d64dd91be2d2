# SPDX-License-Identifier: BSD-2-Clause
"""Checks unsalt_checkpoint.py, and the reader that stands in the page, against the vectors of the checkpoint format
page, one line for each table: check_checkpoint_page.py PAGE

The C library is checked against the same tables by tests/unit/test_checkpoint_page.c."""
import sys
import zlib

import unsalt_checkpoint as checkpoint
from check_page import code_of, tables, unhex


def value_of(text):
    return None if text == "null" else unhex(text)


def ranges_of(text):
    spans = [] if text == "-" else [span.split("-") for span in text.split()]
    return tuple((int(span[0]), int(span[-1])) for span in spans)


def judge(key, value, result, wanted, written):
    """Reads and, if the entry is in order, writes again."""
    try:
        found = checkpoint.read(key, value)
    except checkpoint.Fault as fault:
        return str(fault) == result and written == "-"
    return result == "OK" and found == wanted and \
        written == ("same" if checkpoint.write(wanted) == (key, value) else "other")


def session(what, key, value, result, topic, name, epoch, cursor, floor, done, skipped, era, written):
    wanted = None if result != "OK" else checkpoint.Session(
        topic.encode(), unhex(name), int(epoch), int(cursor), int(floor), ranges_of(done), ranges_of(skipped),
        int(era))
    return judge(unhex(key), value_of(value), result, wanted, written)


def partition(what, key, value, result, topic, number, frontier, done, truncated, era, written):
    flags = value_of(value)[5] if result == "OK" else 0
    wanted = None if result != "OK" else checkpoint.Partition(
        topic.encode(), int(number), int(frontier), ranges_of(done), flags, int(era))
    return judge(unhex(key), value_of(value), result, wanted, written) and \
        (result != "OK" or (truncated == "yes") == bool(flags & checkpoint.TRUNCATED))


def crc(text, wanted):
    return zlib.crc32(unhex(text)) == int(wanted, 0)


def number(text, result, wanted, size):
    reader = checkpoint.Reader(unhex(text))
    try:
        found = reader.number()
    except checkpoint.Fault as fault:
        return str(fault) == result
    return result == "OK" and found == int(wanted) and reader.at == int(size) and \
        checkpoint.varint(found) == unhex(text)[:reader.at]


def page_reader(page, rows):
    """The reader in the page on the entries that are in order, and on those that it must refuse."""
    read, wrong = code_of(page, "read_entry"), []
    for row in rows:
        key, value, result = unhex(row[1]), value_of(row[2]), row[3]
        if result not in ("OK", "CHECKSUM", "NEWER") or value is None:
            continue
        try:
            found = read(key, value)
            entry = checkpoint.read(key, value)
            listed = (entry.topic, entry.session, entry.epoch, entry.cursor, entry.floor, list(entry.done),
                      list(entry.skipped), entry.era) if isinstance(entry, checkpoint.Session) else \
                (entry.topic, entry.partition, entry.frontier, list(entry.done), entry.era)
            good = result == "OK" and found == listed
        except ValueError as error:
            good = str(error) == {"CHECKSUM": "corrupt", "NEWER": "newer"}.get(result)
        if not good:
            wrong.append(row)
    return wrong


def main(path):
    bad = 0
    with open(path, encoding="utf-8") as file:
        page = file.read()
    found = tables(page)
    for name, function in {"crc": crc, "number": number, "session": session, "partition": partition}.items():
        rows = found.get(name, [])
        wrong = [row for row in rows if not function(*row)]
        good = rows and not wrong
        print(("ok" if good else "not ok") + f" - checkpoint {name}: {len(rows)} vectors")
        for row in wrong:
            print("   ", *row)
        bad += not good
    wrong = page_reader(page, found.get("session", []) + found.get("partition", []))
    print(("not ok" if wrong else "ok") + " - the reader in the page reads the entries of the page")
    for row in wrong:
        print("   ", *row)
    return bad + bool(wrong)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
