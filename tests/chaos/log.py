# SPDX-License-Identifier: BSD-2-Clause
"""What the topics hold and the cluster accepted: the truth that check.py holds the journals against."""
import bisect
import collections

NEVER = 1 << 62
# The cluster notes milliseconds, at the beginning of its work on a commit; clocks are read a little apart.
EARLY = 5000
LATE = 100000


def lines(path):
    """The words of each line; a last line that was cut off is none."""
    with open(path, errors="replace") as file:
        for line in file:
            if line.endswith("\n"):
                yield line.split()


class Log:
    """What stands in the topics: the truth that everything is held against. A record is a small number."""

    def __init__(self):
        self.names = {}                              # (session, run, number) -> record
        self.name = []                               # record -> its name
        self.at = collections.defaultdict(dict)      # place -> offset -> record, None for a marker
        self.copies = collections.defaultdict(list)  # record -> further (place, offset)
        self.first = []                              # record -> (place, offset)
        self.acked = []                              # record -> when its producer heard of it; NEVER
        self.done = []                               # record -> when it was first processed; NEVER
        self.ever = []                               # the same, of all members before the first is judged
        self.covered = {}                            # record -> when a commit that covers it had returned
        self.order = {}                              # session -> records by run and number
        self.rank = []                               # record -> its place among those
        self.commits = {}                            # place -> Commits

    def read(self, path):
        with open(path) as file:
            for line in file:
                words = line.split()
                place, offset = words[1] + "/" + words[2], int(words[3])
                if words[0] == "M":
                    self.at[place][offset] = None
                    continue
                name = (words[4], int(words[5]), int(words[6]))
                record = self.names.setdefault(name, len(self.name))
                if record == len(self.name):
                    self.name.append(name)
                    self.first.append((place, offset))
                else:
                    self.copies[record].append((place, offset))
                self.at[place][offset] = record
        self.acked = [NEVER] * len(self.name)
        self.done = [NEVER] * len(self.name)
        self.ever = [NEVER] * len(self.name)
        self.rank = [0] * len(self.name)
        for record, name in enumerate(self.name):
            self.order.setdefault(name[0], []).append(record)
        for records in self.order.values():
            records.sort(key=self.name.__getitem__)
            for rank, record in enumerate(records):
                self.rank[record] = rank

    def places(self, record):
        return [self.first[record]] + self.copies.get(record, [])

    def is_overtaken(self, record):
        """Does every copy stand behind a later run of its session, in its own partition?"""
        session, run, _ = self.name[record]
        later = [place for other in self.order[session] if self.name[other][1] > run for place in self.places(other)]
        return all(any(at == place and first < offset for at, first in later) for place, offset in self.places(record))

    def text(self, record):
        return "%s run %d number %d at %s" % (self.name[record] + (
            ", ".join("%s:%d" % place for place in self.places(record)),))


class Commits:
    """The commits of one partition that the cluster accepted, in its order."""

    def __init__(self):
        self.times, self.offsets, self.highest, self.first = [], [], [], {}

    def add(self, time, offset):
        self.times.append(time)
        self.offsets.append(offset)
        self.first.setdefault(offset, time)
        self.highest.append(max(offset, self.highest[-1] if self.highest else 0))

    def when_above(self, offset):
        """When everything up to and with this offset was committed."""
        at = bisect.bisect_right(self.highest, offset)
        return self.times[at] if at < len(self.times) else NEVER

    def frontier(self, time):
        """Where it stood when an owner began, as far as clocks tell: the lowest of what it may have been."""
        at, end = bisect.bisect_left(self.times, time - LATE), bisect.bisect_right(self.times, time)
        return min(self.offsets[max(at - 1, 0):end]) if at else 0

    def back(self):
        """How often an older commit came after a newer one: librdkafka sends again what an outage has kept."""
        return sum(offset < before for before, offset in zip(self.offsets, self.offsets[1:]))
