# SPDX-License-Identifier: BSD-2-Clause
"""The wire format of docs/wire-format.md, written from that page alone: the header `unsalt` read and written, the
plain header, and where the lanes of a session live. Only the standard library is needed."""
import struct
from dataclasses import dataclass

NAME = "unsalt"
VERSION = 1
SIZE = 40
FIRST, LAST, MARKER, RESEND, HEARTBEAT = 0x01, 0x02, 0x04, 0x08, 0x10
RESERVED = 2**64 - 1
LAYOUT = struct.Struct(">BBHHHQQQQ")


class Fault(ValueError):
    """What is wrong with a header: SHORT, UNKNOWN_VERSION, LANES, SEQ, LANE_RULE or RANGE."""


@dataclass(frozen=True)
class Header:
    flags: int
    lane: int
    lanes: int
    epoch: int
    seq: int
    since: int
    una: int


def check(h):
    """Raises the first fault of the page's list; a reader and a writer refuse the same."""
    if h.lanes == 0 or h.lane >= h.lanes:
        raise Fault("LANES")
    if h.flags & HEARTBEAT:
        return
    if h.seq in (0, RESERVED):
        raise Fault("SEQ")
    marker = h.flags & MARKER
    if not marker and h.seq % h.lanes != h.lane:
        raise Fault("LANE_RULE")
    if h.since > h.seq or (not marker and h.una > h.seq):
        raise Fault("RANGE")


def read(value):
    if len(value) < SIZE:
        raise Fault("SHORT")
    version, flags, lane, lanes, _, epoch, seq, since, una = LAYOUT.unpack_from(value)
    if version != VERSION:
        raise Fault("UNKNOWN_VERSION")
    if flags & HEARTBEAT:
        seq = since = una = 0
    header = Header(flags, lane, lanes, epoch, seq, since, una)
    check(header)
    return header


def write(h):
    check(h)
    numbers = (0, 0, 0) if h.flags & HEARTBEAT else (h.seq, h.since, h.una)
    return LAYOUT.pack(VERSION, h.flags, h.lane, h.lanes, 0, h.epoch, *numbers)


def read_plain(value):
    """The number in a plain header; None if there is none in it."""
    if 1 <= len(value) <= 20 and all(0x30 <= byte <= 0x39 for byte in value):
        number = int(value)
    elif len(value) == 8:
        number = int.from_bytes(value, "big")
    else:
        return None
    return number if number < RESERVED else None


def murmur2(key):
    """The hash of the Java client, without its sign bit."""
    mask, mix = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at:at + 4], "little") * mix & mask
        k = (k ^ k >> 24) * mix & mask
        h = (h * mix & mask) ^ k
    if len(key) > whole:
        h = (h ^ int.from_bytes(key[whole:], "little")) * mix & mask
    h = (h ^ h >> 13) * mix & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


def salted(session, lane, lanes, mark=b"#"):
    """The record key of a lane with layout `hash`."""
    return session + mark + str(lane).encode() if lanes > 1 else session


def hash_partitions(session, lanes, partitions, mark=b"#"):
    """Layout `hash`: the partition of each lane."""
    if lanes == 1:
        return [murmur2(session) % partitions]
    found, salt = [], 0
    while len(found) < min(lanes, partitions) and salt < 65535:
        partition = murmur2(session + mark + str(salt).encode()) % partitions
        if partition not in found:
            found.append(partition)
        salt += 1
    return [found[lane % len(found)] for lane in range(lanes)]


def topics_partition(session, partitions):
    """Layout `topics`: the partition, the same in the topic of each lane."""
    return murmur2(session) % partitions


def lane_topic(base, lane):
    return f"{base}.lane-{lane}" if lane else base


def block_partitions(session, lanes, partitions, block):
    """Layout `block`: the partition of each lane; `block` is the size of a block, the most lanes there may be."""
    number, blocks = murmur2(session), partitions // block
    first = number % blocks * block
    if lanes == 1:
        return [first + number // blocks % block]
    return [first + lane for lane in range(lanes)]


def write_trailer(number, digits):
    """The sequence at the end of a record key; digits 0: 8 bytes big-endian. None if the number doesn't fit."""
    if not 0 <= number < RESERVED or (digits and number >= 10**digits):
        return None
    return b"%0*d" % (digits, number) if digits else number.to_bytes(8, "big")


def read_trailer(key, digits):
    """What stands before the trailer, and its number; None if the key has none."""
    size = digits or 8
    head, trailer = key[:-size], key[-size:]
    if len(key) < size or (digits and not all(0x30 <= byte <= 0x39 for byte in trailer)):
        return None
    number = int(trailer) if digits else int.from_bytes(trailer, "big")
    return (head, number) if number < RESERVED else None
