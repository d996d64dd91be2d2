# SPDX-License-Identifier: BSD-2-Clause
"""Prints a checkpoint readably. Reads what kcat makes of the topic, or only of some partitions (-p):

    kcat -C -q -e -o beginning -X isolation.level=read_committed -b HOST:PORT -t TOPIC \\
        -f '%p %o %K %S\\n%k%s\\n' | python3 show_checkpoint.py [SESSION...]

With names of sessions it prints only these. The last record of each key counts, as the topic is compacted later. An
entry is void if its lane set has an entry of a higher era. Ends with 1 if an entry is corrupt or of a newer version."""
import re
import sys

import unsalt_checkpoint as checkpoint


def records(stream):
    """Partition, offset, key and value of each record; a length of -1 stands for null."""
    for line in iter(stream.readline, b""):
        partition, offset, key, value = map(int, line.split())
        parts = [stream.read(size) if size >= 0 else None for size in (key, value)]
        if stream.read(1) != b"\n" or any(part is not None and len(part) < size
                                          for part, size in zip(parts, (key, value))):
            raise SystemExit(f"record {partition}/{offset} is cut off: is the format of kcat as above?")
        yield partition, offset, parts[0] or b"", parts[1]


def text(name):
    """As it is if it is plain text, else in hexadecimal digits."""
    try:
        found = name.decode()
        return found if found.isprintable() else "0x" + name.hex()
    except UnicodeDecodeError:
        return "0x" + name.hex()


def spans(ranges):
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges) or "none"


def lane_set(entry):
    """The base topic, where lane topics have their usual names; others are known only to who set lane.topics."""
    return re.sub(rb"\.lane-[0-9]+$", b"", entry.topic)


def describe(entry):
    era = f"era {entry.era}, " if entry.era else ""
    if isinstance(entry, checkpoint.Session):
        known = f", unknown below {entry.floor}" if entry.floor else ""
        return (f"session {text(entry.session)} of {text(entry.topic)}: {era}epoch {entry.epoch}, next {entry.cursor}, "
                f"done above {spans(entry.done)}, skipped {spans(entry.skipped)}{known}")
    cut = " (more was left out)" if entry.flags & checkpoint.TRUNCATED else ""
    return (f"partition {entry.partition} of {text(entry.topic)}: {era}frontier {entry.frontier}, "
            f"done above {spans(entry.done)}{cut}")


def read(key, value):
    """The entry, or what is wrong with it."""
    try:
        return checkpoint.read(key, value)
    except checkpoint.Fault as fault:
        return fault


def main(names):
    last = {}
    for partition, offset, key, value in records(sys.stdin.buffer):
        last[partition, key] = offset, value
    counts = dict.fromkeys(("sessions", "partitions", "void", "removed", "unreadable"), 0)
    entries, eras = [], {}
    for (partition, key), (offset, value) in sorted(last.items()):
        entry = read(key, value)
        entries.append((partition, offset, key, entry))
        if not isinstance(entry, checkpoint.Fault):
            place = partition, lane_set(entry)
            eras[place] = max(entry.era, eras.get(place, 0))
    for partition, offset, key, entry in entries:
        if isinstance(entry, checkpoint.Fault):
            gone = str(entry) == "GONE"
            counts["removed" if gone else "unreadable"] += 1
            if not gone:
                print(f"{partition}/{offset}: {entry}: key {text(key)}")
            continue
        is_session, is_void = isinstance(entry, checkpoint.Session), entry.era < eras[partition, lane_set(entry)]
        counts["void" if is_void else "sessions" if is_session else "partitions"] += 1
        if not names or is_session and text(entry.session) in names:
            print(f"{partition}/{offset}: {'void: ' if is_void else ''}{describe(entry)}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()), file=sys.stderr)
    return 1 if counts["unreadable"] else 0


sys.exit(main(sys.argv[1:]))
