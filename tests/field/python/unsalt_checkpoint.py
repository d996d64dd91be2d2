# SPDX-License-Identifier: BSD-2-Clause
"""Entries of a checkpoint as docs/checkpoint-format.md describes them, read and written from that page alone. Only the
standard library is needed."""
import zlib
from dataclasses import dataclass

VERSION = 1
SESSION, PARTITION = b"S", b"P"
TRUNCATED, ERA = 0x01, 0x02
SEQ_LAST, OFFSET_LAST, ERA_LAST = 2**64 - 2, 2**63 - 1, 2**32 - 1


class Fault(ValueError):
    """What is wrong with an entry, by the page's words: KEY, SHORT, ..., also GONE and NEWER."""


@dataclass(frozen=True)
class Session:
    """How far a session has come; ranges are pairs of first and last."""
    topic: bytes
    session: bytes
    epoch: int
    cursor: int
    floor: int
    done: tuple = ()
    skipped: tuple = ()
    era: int = 0


@dataclass(frozen=True)
class Partition:
    """What of a partition is done above the offset that is committed."""
    topic: bytes
    partition: int
    frontier: int
    done: tuple = ()
    flags: int = 0
    era: int = 0


def key_of(entry):
    if isinstance(entry, Session):
        return SESSION + bytes([len(entry.topic)]) + entry.topic + entry.session
    return PARTITION + bytes([len(entry.topic)]) + entry.topic + entry.partition.to_bytes(4, "big")


def checksum(key, value):
    return zlib.crc32(key + value[:1] + value[5:])


def varint(number):
    coded = b""
    while number > 0x7F:
        coded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return coded + bytes([number])


def ranges_out(ranges, base):
    joined = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 == first:
            first = joined.pop()[0]
        joined.append((first, last))
    coded = varint(len(joined))
    for first, last in joined:
        coded += varint(first - base) + varint(last - first)
        base = last + 2
    return coded


def write(entry):
    """Key and value of an entry that is in order."""
    flags = ERA if entry.era else 0
    if isinstance(entry, Session):
        body = varint(entry.epoch) + varint(entry.cursor) + varint(entry.floor)
        body += ranges_out(entry.done, entry.cursor + 1) + ranges_out(entry.skipped, entry.floor)
    else:
        flags |= entry.flags & TRUNCATED
        body = varint(entry.frontier) + ranges_out(entry.done, entry.frontier + 1)
    body = bytes([flags]) + body + (varint(entry.era) if entry.era else b"")
    key, head = key_of(entry), bytes([VERSION])
    return key, head + checksum(key, head + bytes(4) + body).to_bytes(4, "big") + body


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        if self.at == len(self.data):
            raise Fault("SHORT")
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        total = 0
        for place in range(10):
            byte = self.byte()
            if place == 9 and byte > 1 or place > 0 and byte == 0:
                raise Fault("NUMBER")
            total += (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return total

    def ranges(self, base, limit):
        count = self.number()
        if count > 2**32 - 1 or count > (len(self.data) - self.at) // 2:
            raise Fault("COUNT")
        found = []
        for _ in range(count):
            first = base + self.number()
            last = first + self.number()
            if last > limit:
                raise Fault("RANGE")
            found.append((first, last))
            base = last + 2
        return tuple(found)


def read_key(key):
    """Kind, topic, and session or partition; None if the kind isn't known."""
    kind = key[:1]
    if kind == b"":
        raise Fault("KEY")
    if kind not in (SESSION, PARTITION):
        return None
    size = key[1] if len(key) > 1 else 0
    topic, tail = key[2:2 + size], key[2 + size:]
    if not 1 <= size <= 249 or len(topic) < size:
        raise Fault("KEY")
    if kind == SESSION:
        if not 1 <= len(tail) <= 4096:
            raise Fault("KEY")
        return kind, topic, tail
    if len(tail) != 4 or tail[0] > 0x7F:
        raise Fault("KEY")
    return kind, topic, int.from_bytes(tail, "big")


def read(key, value):
    """The entry; value None stands for an entry that was removed."""
    known = read_key(key)
    if value is None:
        raise Fault("GONE" if known else "NEWER")
    if len(value) < 5:
        raise Fault("SHORT")
    if int.from_bytes(value[1:5], "big") != checksum(key, value):
        raise Fault("CHECKSUM")
    if known is None or value[0] != VERSION:
        raise Fault("NEWER")
    reader = Reader(value[5:])
    flags = reader.byte()
    kind, topic, tail = known
    if kind == SESSION:
        return read_session(reader, flags, topic, tail)
    frontier = reader.number()
    if frontier > OFFSET_LAST:
        raise Fault("CURSOR")
    done = reader.ranges(frontier + 1, OFFSET_LAST)
    return Partition(topic, tail, frontier, done, flags, read_era(reader, flags))


def read_era(reader, flags):
    """The last field of both kinds. 0 is said by leaving it out."""
    if not flags & ERA:
        return 0
    era = reader.number()
    if not 1 <= era <= ERA_LAST:
        raise Fault("NUMBER")
    return era


def read_session(reader, flags, topic, session):
    epoch, cursor = reader.number(), reader.number()
    if cursor > SEQ_LAST:
        raise Fault("CURSOR")
    floor = reader.number()
    if floor > cursor:
        raise Fault("FLOOR")
    done = reader.ranges(cursor + 1, SEQ_LAST)
    skipped = reader.ranges(floor, SEQ_LAST)
    era = read_era(reader, flags)
    both = sorted(done + skipped + ((cursor, cursor),))
    if any(above[0] <= below[1] for below, above in zip(both, both[1:])):
        raise Fault("OVERLAP")
    return Session(topic, session, epoch, cursor, floor, done, skipped, era)
