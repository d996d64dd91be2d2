#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Judges the journals of a chaos run; knows nothing of the library. tests/chaos/README.md says what is proved and
what the lines mean.

    check.py FOLDER [--checkpoint]
"""
import array
import bisect
import collections
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from log import EARLY, LATE, NEVER, Commits, Log, lines  # noqa: E402

# So long may a member that was stopped hand out what it had, until it knows that it was thrown out; but if it was
# stopped for longer than max.poll.interval.ms, only what the call that was interrupted had in its hands.
GRACE = 2000000
MAX_POLL = 7000000
BATCH = 128
# So long a start in the middle waits for lower numbers that its producer has not given up.
GAP_TIMEOUT = 500000
SANITIZER = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|: runtime error: |Assertion .*failed")


class Fault:
    """Something that must not be. `session` and `at` say where to look."""

    def __init__(self, kind, text, session=None, at=None):
        self.kind, self.text, self.session, self.at = kind, text, session, at


class Verdict:
    def __init__(self):
        self.faults = []
        self.counts = collections.Counter()

    def fault(self, kind, text, session=None, at=None):
        self.counts["faults"] += 1
        if sum(one.kind == kind for one in self.faults) < 5:
            self.faults.append(Fault(kind, text, session, at))


class Pass:
    """One member's time with one lane set, from its assignment to its revoke."""

    def __init__(self, member, index, start, generation, number):
        self.member, self.index, self.start, self.end, self.lost = member, index, start, NEVER, False
        self.generation = generation  # of the group; -1: the member had been thrown out by then, or will be at once
        self.floor = generation       # owners of later generations end it; if it isn't known: later than the last
        self.number = number          # among all passes
        self.last = {}      # session -> rank of the last record that came in order
        self.seen = set()   # records
        self.begun = set()  # sessions
        self.times = array.array("q")
        self.commits = []   # (place, offset) that commits in the background were said to have brought


class Judge:
    def __init__(self, folder, checkpoint):
        self.folder, self.checkpoint = folder, checkpoint
        self.log = Log()
        self.verdict = Verdict()
        self.passes = []
        self.stops = collections.defaultdict(list)  # member -> [from, to]
        self.skew = 0
        self.killed = 0  # static members
        self.starts = collections.defaultdict(list)  # lane set -> when its owners began
        self.gaps = collections.defaultdict(list)  # with a checkpoint: session -> what any member gave up
        self.handed = array.array("q")  # with a checkpoint: record, when its pass began, when, which pass
        self.safe = {}  # session -> by rank: when all up to there were committed

    def path(self, name):
        return os.path.join(self.folder, name)

    def fault(self, *args):
        self.verdict.fault(*args)

    # ---- what others wrote

    def read_actions(self):
        with open(self.path("actions")) as file:
            for line in file:
                words = line.split()
                time = int(words[1])
                if words[0] == "anchor":
                    self.skew = int(words[2]) - time
                elif words[0] == "stop":
                    self.stops[words[2]].append([time, NEVER])
                elif words[0] == "continue" and self.stops[words[2]]:
                    self.stops[words[2]][-1][1] = time
                elif words[0] == "kill":
                    self.verdict.counts["kills"] += 1
                    self.killed += words[2].startswith("member-0-")
                elif words[0] == "broker-kill":
                    self.verdict.counts["broker kills"] += 1

    def read_commits(self):
        with open(self.path("offsets")) as file:
            for line in file:
                place, offset, time = line.split()
                commits = self.log.commits.setdefault(place, Commits())
                commits.add(int(time) * 1000 - self.skew, int(offset))
                self.verdict.counts["commits"] += 1

    def read_producer(self, path):
        log = self.log
        for words in lines(path):
            if words[0] != "A":
                continue
            self.verdict.counts["acknowledged"] += 1
            name, place, offset = (words[2], int(words[3]), int(words[4])), words[5] + "/" + words[6], int(words[7])
            record = log.names.get(name)
            if record is None or log.at[place].get(offset) != record:
                self.fault("cluster", "%s run %d number %d was acknowledged at %s:%d and is not there: the cluster's "
                           "or the producer's fault" % (name + (place, offset)), name[0], int(words[1]))
            else:
                log.acked[record] = min(log.acked[record], int(words[1]))

    def prepare(self):
        """By rank in its session: when a record and all before it were committed."""
        for session, records in self.log.order.items():
            safe, highest = [], -NEVER
            for record in records:
                highest = max(highest, self.committed(record))
                safe.append(highest)
            self.safe[session] = safe

    def begins(self, index, time):
        """When an owner of a lane set begins after this time."""
        if not self.starts:
            for path in self.members():
                for words in lines(path):
                    for one in {place.split("/")[1] for place in words[5:]} if words[0] == "G" else ():
                        self.starts[one].append(int(words[1]))
            for starts in self.starts.values():
                starts.sort()
        at = bisect.bisect_right(self.starts[index], time)
        return self.starts[index][at] if at < len(self.starts[index]) else NEVER

    def members(self):
        return [path for path in sorted(glob.glob(self.path("member-*"))) if not path.endswith(".err")]

    def committed(self, record):
        """When a record was committed, at one of its places."""
        return min(self.log.commits[place].when_above(offset) if place in self.log.commits else NEVER
                   for place, offset in self.log.places(record))

    # ---- all members together

    def judge_ends(self):
        """Nothing that stands in the topics was left out."""
        log = self.log
        for record, done in enumerate(log.done):
            if done == NEVER:
                self.fault("lost", "%s was %s and never processed" % (
                    log.text(record), "acknowledged" if log.acked[record] != NEVER else "written"), log.name[record][0])

    def judge_commits(self):
        """A commit says that everything below it was processed, and a frontier doesn't go back to an owner before."""
        starts = collections.defaultdict(list)
        for one in self.passes:
            starts[one.index].append(one.start)
        for place, commits in self.log.commits.items():
            self.verdict.counts["commits overtaken"] += commits.back()
            at = self.log.at.get(place, {})
            offsets = sorted(at)
            done, latest = [], -NEVER
            for offset in offsets:
                if at[offset] is not None:
                    latest = max(latest, self.log.done[at[offset]])
                done.append(latest)
            begun = sorted(starts[place.split("/")[1]])
            for time, offset in zip(commits.times, commits.offsets):
                below = bisect.bisect_left(offsets, offset)
                if below and done[below - 1] > time + EARLY:
                    first = next(i for i in range(below) if done[i] > time + EARLY)
                    self.fault("commit", "%s:%d was committed at %d when %s had not been processed" % (
                        place, offset, time, self.log.text(at[offsets[first]])),
                        self.log.name[at[offsets[first]]][0], time)
                owner = bisect.bisect_left(begun, time - LATE)
                if owner and offset < commits.frontier(begun[owner - 1]):
                    self.fault("commit-back", "%s went back to %d at %d: when its owner began it stood at %d" % (
                        place, offset, time, commits.frontier(begun[owner - 1])), None, time)

    def judge_owners(self):
        """From when the next owner begins, an owner before may hand out only what a stop kept in its hands."""
        by_index = collections.defaultdict(list)
        for one in self.passes:
            by_index[one.index].append(one)
        for passes in by_index.values():
            passes.sort(key=lambda one: (one.generation, one.start))
            for i, one in enumerate(passes):
                others = [other.start for other in passes[i + 1:] if other.member != one.member and
                          other.generation > one.floor and (one.generation >= 0 or other.end > one.start)]
                over = min(others, default=NEVER)
                if one.times and one.times[-1] > over:
                    self.judge_overlap(one, over)
                for place, offset in one.commits:
                    time = self.log.commits[place].first.get(offset, NEVER)
                    if over + LATE < time < NEVER:
                        self.fault("owner", "%s committed %s:%d at %d, and was over since %d" % (
                            one.member, place, offset, time, over), None, time)

    def judge_overlap(self, one, over):
        in_hand = collections.Counter()  # stop -> records that were handed out afterwards
        for time in one.times[bisect.bisect_right(one.times, over):]:
            stop = next((stop for stop in self.stops[one.member] if stop[0] < over and time <= stop[1] + GRACE), None)
            if stop:
                self.verdict.counts["zombie records"] += 1
                in_hand[tuple(stop)] += stop[1] > stop[0] + MAX_POLL + EARLY
            if stop is None or in_hand[tuple(stop)] > BATCH:
                self.fault("owner", "%s, owner of lane set %s since %d in generation %d, handed out a record at %d: "
                           "that was over since %d" % (one.member, one.index, one.start, one.generation, time, over),
                           None, time)

    def read_ahead(self):
        for path in self.members():
            handed, processed = [], 0
            for words in lines(path):
                if words[0] == "D":
                    handed.append(self.log.at[words[3]].get(int(words[4])))
                elif words[0] == "K":
                    for record in handed[processed:int(words[2])]:
                        if record is not None:
                            self.log.ever[record] = min(self.log.ever[record], int(words[1]))
                    processed = int(words[2])
                elif words[0] == "T" and gap(0, words[2:]):
                    self.gaps[words[4]].append(gap(int(words[1]), words[2:]))
        for gaps in self.gaps.values():
            gaps.sort()

    def judge_covered(self):
        """Nothing of which a commit that had returned says that it was processed is handed out by a later owner."""
        log = self.log
        if self.checkpoint:
            self.verdict.counts["covered"] = len(log.covered)
        for at in range(0, len(self.handed), 4):
            record, start, time, number = self.handed[at:at + 4]
            if log.covered.get(record, NEVER) < start:
                self.fault("covered", "%s: %s was handed out at %d to an owner that began at %d, and a commit that "
                           "covers it had returned at %d" % (self.passes[number].member, log.text(record), time, start,
                                                      log.covered[record]), log.name[record][0], time)

    def judge_errors(self):
        for path in sorted(glob.glob(self.path("*.err"))):
            with open(path, errors="replace") as file:
                for line in file:
                    if SANITIZER.search(line):
                        self.fault("report", "%s: %s" % (os.path.basename(path), line.strip()))

    def judge(self):
        self.read_actions()
        self.log.read(self.path("records"))
        self.read_commits()
        for path in sorted(glob.glob(self.path("producer-?"))):
            self.read_producer(path)
        self.prepare()
        if self.checkpoint:
            self.read_ahead()
        for path in self.members():
            Member(self, path).read()
        self.judge_ends()
        self.judge_commits()
        self.judge_owners()
        self.judge_covered()
        self.judge_errors()
        self.verdict.counts["records"] = len(self.log.name)
        self.verdict.counts["passes"] = len(self.passes)
        return self.verdict


class Member:
    """The journal of one process, line by line."""

    def __init__(self, judge, path):
        self.judge, self.path, self.log = judge, path, judge.log
        self.name = os.path.basename(path)
        self.generation = -1
        self.open = {}       # lane set -> Pass
        self.handed = []     # (record, Pass) by line number
        self.processed = 0
        self.refused = set()
        self.commit = None     # (records, how) of the last one that was begun
        self.known = 0         # so many lines the library has surely heard of as processed
        self.known_then = 0    # the same when the last result of a commit came: the next one began later
        self.covered = 0       # so many lines were covered, but for those that are left
        self.left = []
        self.gaps = collections.defaultdict(list)  # session -> (time, reason, run, first, last, due)

    def fault(self, kind, text, *where):
        self.judge.fault(kind, self.name + ": " + text, *where)

    def count(self, word, by=1):
        self.judge.verdict.counts[word] += by

    def read(self):
        times, known = self.times_of_commits() if self.judge.checkpoint else [], []
        for words in lines(self.path):
            while len(known) < len(times) and times[len(known)] < int(words[1]):
                # Only one commit is under way at a time. So the one before this has come to its end, and it began when
                # the one before that had.
                known.append(self.known)
                if len(known) > 2:
                    self.cover(times[len(known) - 1], known[-3])
            handler = getattr(self, "on_" + words[0], None)
            if handler:
                handler(int(words[1]), words[2:])

    def times_of_commits(self):
        """When commits of partitions that were this member's were sent, of those that the cluster accepted."""
        since, found = {}, set()

        def over(places, until):
            for place in places:
                commits, begin = self.log.commits.get(place), since.pop(place, NEVER)
                end = min(until, self.judge.begins(place.split("/")[1], begin))
                if commits:
                    found.update(time for time in commits.times if begin < time < end)

        for words in lines(self.path):
            if words[0] == "V" or (words[0] == "G" and words[4] == "EAGER"):
                over([place for place in list(since) if words[0] == "G" or place in words[3:]], int(words[1]))
            if words[0] == "G":
                since.update((place, int(words[1])) for place in words[5:])
        over(list(since), NEVER)
        return sorted(found)

    # ---- assignments

    def on_G(self, time, words):
        self.generation = int(words[0]) if int(words[0]) >= 0 else self.generation
        if words[2] == "EAGER":
            self.close(time, list(self.open), False)
        for place in words[3:]:
            index = place.split("/")[1]
            if index not in self.open:
                self.open[index] = Pass(self.name, index, time, int(words[0]), len(self.judge.passes))
                self.open[index].floor = self.generation
                self.judge.passes.append(self.open[index])

    def on_V(self, time, words):
        self.close(time, {place.split("/")[1] for place in words[1:]}, words[0] == "1")
        self.count("assignments lost", words[0] == "1")

    def close(self, time, indices, lost):
        for index in indices:
            if index in self.open:
                one = self.open.pop(index)
                one.end, one.lost = time, lost
                one.last, one.seen, one.begun = {}, set(), set()

    # ---- records

    def on_D(self, time, words):
        line, place, offset, state, session, run, number = words[:7]
        record = self.log.at[place].get(int(offset))
        one = self.open.get(place.split("/")[1])
        self.count("deliveries")
        if int(line) != len(self.handed):
            self.fault("journal", "line %s of its records is number %d" % (line, len(self.handed)), session, time)
        self.handed.append((record, one))
        if record is None:
            self.fault("unknown", "%s:%s was handed out and is not in the topic" % (place, offset), session, time)
            return
        if (session, run, number) != tuple(words[7:10]) or (session, int(run), int(number)) != self.log.name[record]:
            self.fault("name", "%s was handed out as %s run %s number %s" % (
                self.log.text(record), session, run, number), session, time)
        if one is None:
            self.fault("owner", "%s was handed out at %d without an assignment" % (self.log.text(record), time),
                       session, time)
            return
        self.judge_record(time, one, record, (place, int(offset)), state)

    def judge_record(self, time, one, record, where, state):
        session = self.log.name[record][0]
        if record in one.seen:
            self.fault("repeated", "%s was handed out twice to one owner, again at %d" % (self.log.text(record), time),
                       session, time)
        one.seen.add(record)
        one.times.append(time)
        commits = self.log.commits.get(where[0])
        if commits and where[1] < commits.frontier(one.start):
            self.fault("below-commit", "%s was handed out at %d; committed was %d when its owner began at %d" % (
                self.log.text(record), time, commits.frontier(one.start), one.start), session, time)
        if self.judge.checkpoint:
            self.judge.handed.extend((record, one.start, time, one.number))
        if state == "released":
            self.judge_order(time, one, record, session)
        elif state in ("late", "stale"):
            self.count(state)
        else:
            self.fault("state", "%s was handed out as %s" % (self.log.text(record), state), session, time)

    def judge_order(self, time, one, record, session):
        rank, last = self.log.rank[record], one.last.get(session, -1)
        if rank <= last:
            self.fault("order", "%s was handed out at %d behind %s" % (
                self.log.text(record), time, self.log.text(self.log.order[session][last])), session, time)
            return
        one.last[session] = rank
        self.judge_between(time, one, record, rank, last, session)
        one.begun.add(session)

    def judge_between(self, time, one, record, rank, last, session):
        safe = self.judge.safe[session]
        for between in range(rank - 1, last, -1):
            if safe[between] <= time + EARLY:
                break
            skipped = self.log.order[session][between]
            if self.judge.checkpoint and self.log.ever[skipped] <= one.start:
                self.count("passed over by a checkpoint")
            elif self.judge.committed(skipped) > time + EARLY:
                self.judge_skip(time, one, record, skipped, session)

    def on_Q(self, time, words):
        self.count("records of a lost assignment", int(words[0]))

    # What was written, is not committed and is passed over must have been given up, by an event, for a good reason.
    def judge_skip(self, time, one, record, skipped, session):
        _, run, number = self.log.name[skipped]
        acked = self.log.acked[skipped]
        for when, reason, gap_run, first, last, due in reversed(self.gaps_of(one, session)):
            if when < one.start and not self.judge.checkpoint:
                break
            if when > time:
                continue
            if gap_run == run and first <= number <= last:
                # A gap that was likely passed before is given up as `resumed`, but only when it is due.
                # A start passes over what no lane had shown at first sight.
                # If the producer says what it has given up, the start waits for the rest until it is due.
                wait = GAP_TIMEOUT if run else 0
                if acked == NEVER or (reason == "start" and acked >= due + wait - EARLY):
                    self.count("passed over at a start", reason == "start")
                    self.count("given up, in the log", reason != "start")
                    return
                if reason in ("timeout", "resumed") and due <= when + EARLY and acked >= due:
                    self.count("given up, in the log")
                    return
                self.fault("false-gap", "%s was given up at %d (%s, due at %d), and acknowledged at %d" % (
                    self.log.text(skipped), when, reason, due, acked), session, time)
                return
        # At the beginning of a pass nothing is told of earlier runs; their rest comes as stale.
        if acked == NEVER and session not in one.begun:
            self.count("passed over at a start")
            return
        # A frozen broker may write what a killed producer has sent it when the next run stands there already.
        if acked == NEVER and self.log.is_overtaken(skipped):
            self.count("overtaken by a later run")
            return
        self.fault("skipped", "%s was handed out at %d; %s (%s) had not been and was not committed" % (
            self.log.text(record), time, self.log.text(skipped),
            "not acknowledged" if acked == NEVER else "acknowledged at %d" % acked), session, time)

    def gaps_of(self, one, session):
        """What was given up; a checkpoint carries that from one owner to the next."""
        return self.judge.gaps[session] if self.judge.checkpoint else self.gaps[session]

    def on_K(self, time, words):
        for record, _ in self.handed[self.processed:int(words[0])]:
            if record is not None:
                self.count("again", self.log.done[record] != NEVER)
                self.log.done[record] = min(self.log.done[record], time)
        self.known, self.processed = max(self.known, self.processed), int(words[0])

    def on_N(self, time, words):
        self.refused.add(int(words[0]))
        self.count("acknowledgements refused")

    # ---- commits

    def on_C(self, time, words):
        self.commit = (int(words[0]), words[1])
        self.known = max(self.known, int(words[0]))

    def on_E(self, time, words):
        result = {"NO_ERROR": "returned", "_IN_PROGRESS": "under way"}
        self.count("commits " + result.get(words[1], "failed"))
        if words[1] == "NO_ERROR" and self.commit is not None and self.commit[1] == "sync":
            self.cover(time, self.commit[0])

    def cover(self, time, upto):
        """A commit that covers so many lines has returned."""
        begun = {}  # session -> the earliest run of which something is in the application's hands
        for record, _ in self.handed[upto:]:
            if record is not None:
                session, run, _ = self.log.name[record]
                begun[session] = min(run, begun.get(session, NEVER))
        lines, self.left = self.left + list(range(self.covered, upto)), []
        self.covered = max(self.covered, upto)
        for line in lines:
            record, one = self.handed[line]
            if record is None or one is None or self.open.get(one.index) is not one or line in self.refused:
                continue
            session, run, _ = self.log.name[record]
            if begun.get(session, NEVER) < run:
                self.left.append(line)
            else:
                self.log.covered[record] = min(self.log.covered.get(record, NEVER), time)

    def on_O(self, time, words):
        self.count("commits " + ("returned" if words[0] == "NO_ERROR" else "failed"))
        if words[0] == "NO_ERROR" and self.judge.checkpoint:
            self.cover(time, self.known_then)
        self.known_then = self.known
        for word in words[1:]:
            place, offset, err = word.rsplit(":", 2)
            one = self.open.get(place.split("/")[1])
            commits = self.log.commits.get(place)
            if words[0] != "NO_ERROR" or err != "0" or int(offset) < 0:
                continue
            if commits and one:
                one.commits.append((place, int(offset)))
            if commits is None or int(offset) not in commits.first:
                self.fault("commit", "%s:%s was said to be committed at %d, and the cluster has no such commit" % (
                    place, offset, time), None, time)

    # ---- the rest

    def on_T(self, time, words):
        event, reason, session = words[:3]
        self.count("event " + event + (" " + reason if reason != "-" else ""))
        given_up = gap(time, words)
        if given_up:
            self.gaps[session].append(given_up)

    def on_S(self, time, words):
        if words[0] != "1":
            self.fault("ledger", "records are not conserved at %d: %s" % (time, " ".join(words[1:])[:2000]), None, time)

    on_Z = on_S

    def on_W(self, time, words):
        self.count("error " + words[0])
        if words[0] == "fatal" and "group.instance.id" in words[-1] and self.judge.stops[self.name]:
            self.count("static members fenced")
        elif words[0] == "fatal" and "instance ID is still used" in " ".join(words) and self.judge.killed:
            self.count("static members refused")
        elif words[0] == "fatal":
            self.fault("fatal", " ".join(words), None, time)


def gap(time, words):
    """What an event gives up: when, why, run, first, last, since when it was due; None: nothing."""
    event, reason, _, run, first, last, due = words[:7]
    if event not in ("gap", "resumed", "start"):
        return None
    if event == "start":
        reason, first, last = "start", 0, int(first) - 1
    return time, reason, int(run), int(first), int(last), int(due)


def judge(folder, checkpoint=False):
    return Judge(folder, checkpoint).judge()


def context(folder, fault, room=12):
    """The lines around a fault, of all journals, that speak of its session or of assignments."""
    found = []
    for path in glob.glob(os.path.join(folder, "member-*")) + glob.glob(os.path.join(folder, "producer-?")):
        if path.endswith(".err"):
            continue
        for words in lines(path):
            if words[0] in "GVH" or (fault.session and fault.session in words and words[0] in "DTAF"):
                found.append((int(words[1]), os.path.basename(path), " ".join(words)[:160]))
    for words in lines(os.path.join(folder, "actions")):
        found.append((int(words[1]), "actions", " ".join(words)[:160]))
    found.sort()
    at = bisect.bisect_left(found, (fault.at or 0,))
    return found[max(0, at - room):at + room]


def report(verdict, folder):
    print("chaos: " + ", ".join("%s %d" % one for one in sorted(verdict.counts.items())))
    for fault in verdict.faults:
        print("not ok - %s: %s" % (fault.kind, fault.text))
    first = next((one for one in verdict.faults if one.at), None)
    if first:
        print("around the first:")
        for _, who, text in context(folder, first):
            print("    %-14s %s" % (who, text))
    if not verdict.faults:
        print("ok - nothing was lost, out of order, or committed before it was processed")
    print("chaos: %d passed, %d failed" % (not verdict.faults, bool(verdict.faults)))


if __name__ == "__main__":
    outcome = judge(sys.argv[1], "--checkpoint" in sys.argv)
    report(outcome, sys.argv[1])
    sys.exit(1 if outcome.faults else 0)
