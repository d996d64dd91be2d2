#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the checker of chaos runs: journals in which nothing is wrong, and the same with one fault planted in each.
Prints one line for each test, in the words that tests/harness/run-tests.sh counts."""
import os
import random
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402
import plan  # noqa: E402

SKEW = 1000000000000  # wall clock - monotonic clock, microseconds
ALL = ["%d/0" % lane for lane in range(2)]
SECOND = 1000000


class World:
    """
    One partition in two lanes. Session s: numbers 1..12 of run 1, lane = number mod 2, acknowledged at 1..12 s; 13 is
    written, not acknowledged; then 1..4 of run 2. Member a has it from 1 s to 20 s, processes 1..8, commits 1..6 at
    10 s and is killed; member b has it from 30 s.
    """

    def __init__(self):
        self.records, self.commits, self.actions, self.errors = [], [], ["anchor 0 %d" % SKEW], []
        self.producer, self.a, self.b = [], [], []
        self.where = {}
        self.generation = 0
        self.cut = ""  # at the end of a journal of a process that was killed
        self.lines = {"a": 0, "b": 0}
        for run, numbers in ((1, range(1, 14)), (2, range(1, 5))):
            for number in numbers:
                self.write(run, number, acked=(run, number) != (1, 13))
        self.start("a", 1)
        for number in range(1, 9):
            self.hand("a", 5, 1, number)
        self.process("a", 6)
        self.line("a", "C", 9.9, "8 sync")
        self.line("a", "E", 10.1, "8 NO_ERROR")
        self.commit(10, 0, 3)
        self.commit(10, 1, 3)
        self.actions.append("kill 20000000 member-a")
        self.start("b", 30)

    def write(self, run, number, acked=True, time=None):
        lane = number % 2
        offset = sum(key[1] % 2 == lane for key in self.where)
        self.where[run, number] = (lane, offset)
        self.records.append("R %d 0 %d s %d %d" % (lane, offset, run, number))
        if acked:
            time = time or number + 20 * (run - 1)
            self.producer.append("A %d s %d %d %d 0 %d" % (time * SECOND, run, number, lane, offset))

    def line(self, member, word, time, text):
        getattr(self, member).append("%s %d %s" % (word, time * SECOND, text))

    def start(self, member, time):
        self.generation += 1
        self.line(member, "G", time, "%d 0 EAGER %s" % (self.generation, " ".join(ALL)))

    def hand(self, member, time, run, number, state="released"):
        lane, offset = self.where[run, number]
        self.line(member, "D", time, "%d %d/0 %d %s s %d %d s %d %d" % (self.lines[member], lane, offset, state, run,
                                                                     number, run, number))
        self.lines[member] += 1

    def process(self, member, time):
        self.line(member, "K", time, str(self.lines[member]))

    def commit(self, time, lane, offset):
        self.commits.append("%d/0 %d %d" % (lane, offset, (time * SECOND + SKEW) // 1000))

    def gap(self, member, time, reason, run, first, last, due=None):
        self.line(member, "T", time, "gap %s s %d %d %d %d 0/0 text" % (reason, run, first, last,
                                                                      (due or time) * SECOND))

    def rest(self, first=7, time=31):
        """What member b still has to do."""
        for number in range(first, 14):
            self.hand("b", time, 1, number)
        for number in range(1, 5):
            self.hand("b", time, 2, number)
        self.end(time + 1)

    def end(self, time=32):
        self.process("b", time)
        self.commit(time + 1, 0, 8)
        self.commit(time + 1, 1, 9)
        self.line("b", "Z", time + 2, "1 {}")

    def judge(self, checkpoint=False):
        folder = tempfile.mkdtemp(prefix="unsalt-chaos-test.")
        files = {"records": self.records, "offsets": self.commits, "actions": self.actions, "producer-0": self.producer,
                 "member-a": self.a, "member-b": self.b, "member-a.err": self.errors}
        try:
            for name, text in files.items():
                with open(os.path.join(folder, name), "w") as file:
                    file.write("".join(line + "\n" for line in text) + (self.cut if name == "member-a" else ""))
            return check.judge(folder, checkpoint)
        finally:
            shutil.rmtree(folder)


# ---- what is right

def good_as_it_is(world):
    world.rest()


def good_records_above_the_frontier_come_again(world):
    world.rest()
    assert world.judge().counts["again"] == 2


def good_an_unacknowledged_number_that_is_not_there(world):
    world.records = [line for line in world.records if not line.endswith(" 1 13")]
    world.write(1, 15)  # 14 was never written
    for number in range(7, 13):
        world.hand("b", 31, 1, number)
    world.gap("b", 31, "timeout", 1, 13, 14)
    world.hand("b", 31, 1, 15)
    for number in range(1, 5):
        world.hand("b", 31, 2, number)
    world.end()


def good_acknowledged_after_its_gap_was_due(world):
    world.producer = [line for line in world.producer if not line.endswith(" s 1 9 1 0 4")]
    world.producer.append("A 31500000 s 1 9 1 0 4")
    late(world, 31)


def late(world, due, reason="timeout", again=True):
    for number in (7, 8):
        world.hand("b", 31, 1, number)
    world.gap("b", 31, reason, 1, 9, 9, due)
    for number in range(10, 14):
        world.hand("b", 31, 1, number)
    if again:
        world.hand("b", 31, 1, 9, "late")
    for number in range(1, 5):
        world.hand("b", 31, 2, number)
    world.end()


def good_acknowledged_after_a_likely_gap_was_due(world):
    world.producer = [line for line in world.producer if not line.endswith(" s 1 9 1 0 4")]
    world.producer.append("A 31500000 s 1 9 1 0 4")
    late(world, 31, "resumed")


def good_acknowledged_after_first_sight(world):
    world.producer = [line for line in world.producer if not line.endswith(" s 1 7 1 0 3")]
    world.producer.append("A 30950000 s 1 7 1 0 3")
    start(world, 30.4)


def start(world, first_sight):
    world.line("b", "T", 31, "start - s 1 8 8 %d -1/-1 text" % (first_sight * SECOND))
    world.hand("b", 31, 1, 8)
    world.hand("b", 31, 1, 7, "late")
    world.rest(9)


def good_a_tail_that_was_not_acknowledged_comes_stale(world):
    for number in range(7, 13):
        world.hand("b", 31, 1, number)
    world.gap("b", 31, "epoch", 1, 13, 13)
    for number in range(1, 5):
        world.hand("b", 31, 2, number)
    world.hand("b", 31, 1, 13, "stale")
    world.end()


def good_what_was_in_the_hands_of_a_stopped_member(world):
    world.actions.remove("kill 20000000 member-a")
    world.actions += ["stop 15000000 member-a", "continue 32000000 member-a"]
    world.hand("a", 32.1, 1, 9)
    world.line("a", "V", 32.2, "1 " + " ".join(ALL))
    world.rest()
    assert world.judge().counts["zombie records"] == 1


def good_a_static_member_that_was_thrown_out(world):
    world.actions += ["stop 15000000 member-a", "continue 28000000 member-a"]
    world.line("a", "W", 29, "fatal Static consumer fenced by other consumer with same group.instance.id")
    world.rest()


def good_a_static_member_whose_name_is_taken_still(world):
    """By the group protocol, whose brokers don't give it to another one before the session of the dead one is over."""
    world.actions.append("kill 20000000 member-0-1")
    world.line("b", "W", 29, "fatal ConsumerGroupHeartbeat: The instance ID is still used by another member")
    world.rest()


def good_a_line_that_was_cut_off(world):
    world.rest()
    world.cut = "D 99"


def good_with_a_checkpoint_nothing_comes_again(world):
    world.rest(9)
    world.commits[:2] = ["0/0 4 %d" % ((10 * SECOND + SKEW) // 1000), "1/0 4 %d" % ((10 * SECOND + SKEW) // 1000)]
    return True


def good_with_a_checkpoint_nothing_that_a_commit_covers_comes_again(world):
    world.rest(9)
    return True


def in_the_background(world, commits):
    """What member a commits is known by what the cluster accepted alone; 1..8 were processed before the first."""
    world.a = [line for line in world.a if line[0] not in "CE"]
    world.line("a", "C", 6.1, "8 async")
    world.line("a", "S", 15, "1 {}")
    world.commits = []
    for time in commits:
        world.commit(time, 0, 3)
        world.commit(time, 1, 3)


def good_a_commit_that_was_under_way(world):
    """It is the second, and no third tells that it came to its end."""
    in_the_background(world, (7, 10))
    world.rest()
    return True


def good_commits_of_the_next_owner(world):
    """Member a goes on after them, as a stop has kept it from hearing that it was over."""
    in_the_background(world, ())
    world.actions += ["stop 15000000 member-a", "continue 40000000 member-a"]
    for time in (31.2, 31.3, 31.4):
        world.commit(time, 0, 1)
    world.hand("a", 40.1, 1, 9)
    world.line("a", "V", 40.2, "1 " + " ".join(ALL))
    for number in range(1, 7):
        world.hand("b", 31, 1, number)
    world.process("b", 31.1)
    world.line("b", "V", 32, "0 " + " ".join(ALL))
    world.start("b", 33)
    world.rest(7, 34)
    return True


def two_runs_in_hand(world, processed):
    """Member a has 9..12, then 1 of run 2, then 13 of run 1, and commits so many of all its records."""
    for number in range(9, 13):
        world.hand("a", 11, 1, number)
    world.gap("a", 11, "epoch", 1, 13, 13)
    world.hand("a", 11, 2, 1)
    world.hand("a", 11, 1, 13, "stale")
    world.line("a", "K", 12, str(processed))
    world.line("a", "C", 12.1, "%d sync" % processed)
    world.line("a", "E", 12.2, "%d NO_ERROR" % processed)
    world.hand("b", 31, 1, 13)
    for number in range(1, 5):
        world.hand("b", 31, 2, number)
    world.end()
    return True


def good_a_commit_covers_no_later_run_while_an_earlier_one_is_in_hand(world):
    return two_runs_in_hand(world, 13)


# ---- what must be found: the docstring is the kind of the fault

def bad_an_acknowledged_record_that_nobody_got(world):
    """lost"""
    world.records.append("R 0 1 0 t 1 1")
    world.producer.append("A 1000000 t 1 1 0 1 0")
    world.rest()


def bad_handed_out_and_never_processed(world):
    """lost"""
    world.rest()
    world.b = [line for line in world.b if line[0] != "K"]


def bad_acknowledged_and_not_in_the_log(world):
    """cluster"""
    world.producer.append("A 1000000 s 1 99 1 0 99")
    world.rest()


def bad_two_records_swapped(world):
    """order"""
    for number in (7, 9, 8):
        world.hand("b", 31, 1, number)
    world.rest(10)


def bad_runs_swapped(world):
    """order"""
    world.hand("b", 31, 2, 1)
    world.rest()


def bad_a_record_passed_over(world):
    """skipped"""
    world.hand("b", 31, 1, 7)
    world.rest(9)


def bad_a_start_above_what_was_there(world):
    """false-gap"""
    start(world, 30.4)


def bad_a_start_that_did_not_wait(world):
    """false-gap"""
    world.producer = [line for line in world.producer if not line.endswith(" s 1 7 1 0 3")]
    world.producer.append("A 30600000 s 1 7 1 0 3")
    start(world, 30.4)


def bad_an_owner_that_begins_too_high(world):
    """skipped"""
    world.rest(8)


def bad_a_record_that_comes_late_without_a_gap(world):
    """skipped"""
    for number in (7, 9):
        world.hand("b", 31, 1, number)
    world.hand("b", 31, 1, 8, "late")
    world.rest(10)


def bad_a_tail_passed_over_that_was_acknowledged(world):
    """false-gap"""
    for number in range(7, 12):
        world.hand("b", 31, 1, number)
    world.gap("b", 31, "epoch", 1, 12, 13)
    for number in range(1, 5):
        world.hand("b", 31, 2, number)
    for number in (12, 13):
        world.hand("b", 31, 1, number, "stale")
    world.end()


def overtaken(world, run, number):
    """13 of run 1 was under way to a frozen broker, which wrote it behind this record of run 2, in its lane."""
    (lane, offset), (_, later) = world.where[1, 13], world.where[run, number]
    for at in range(offset, later):
        name = next(name for name, place in world.where.items() if place == (lane, at + 1))
        world.where[name] = (lane, at)
    world.where[1, 13] = (lane, later)
    world.records = ["R %d 0 %d s %d %d" % (place + name) for name, place in world.where.items()]
    world.producer = ["A %d s %d %d %d 0 %d" % ((name[1] + 20 * (name[0] - 1)) * SECOND, *name, *place)
                      for name, place in world.where.items() if name != (1, 13)]
    for name in range(7, 13):
        world.hand("b", 31, 1, name)
    for name in range(1, 5):
        world.hand("b", 31, 2, name)
    world.hand("b", 31, 1, 13, "stale")
    world.end()


def good_a_tail_that_a_frozen_broker_wrote_behind_the_next_run_comes_stale(world):
    overtaken(world, 2, 1)


def bad_a_tail_before_the_next_run_comes_stale(world):
    """skipped"""
    overtaken(world, 1, 13)


def bad_given_up_though_acknowledged(world):
    """false-gap"""
    late(world, 31)


def bad_proven_lost_though_acknowledged_later(world):
    """false-gap"""
    world.producer = [line for line in world.producer if not line.endswith(" s 1 9 1 0 4")]
    world.producer.append("A 31500000 s 1 9 1 0 4")
    late(world, 31, "proven")


def bad_said_to_be_resumed_before_it_was_due(world):
    """false-gap"""
    world.producer = [line for line in world.producer if not line.endswith(" s 1 9 1 0 4")]
    world.producer.append("A 31600000 s 1 9 1 0 4")
    late(world, 31.5, "resumed")


def bad_given_up_and_never_delivered(world):
    """lost"""
    world.producer = [line for line in world.producer if not line.endswith(" s 1 9 1 0 4")]
    late(world, 31, again=False)


def bad_twice_to_one_owner(world):
    """repeated"""
    world.hand("b", 31, 1, 7)
    world.hand("b", 31, 1, 8)
    world.hand("b", 31, 1, 7, "late")
    world.rest(9)


def bad_from_below_a_commit(world):
    """below-commit"""
    world.rest(5)


def bad_covered_by_a_commit_that_had_returned(world):
    """covered"""
    world.rest()
    return True


def bad_covered_by_a_commit_in_the_background(world):
    """covered"""
    in_the_background(world, (7, 9, 10))
    world.rest()
    return True


def bad_a_later_run_that_was_covered_with_the_earlier_one(world):
    """covered"""
    return two_runs_in_hand(world, 14)


def bad_a_checkpoint_that_says_too_much(world):
    """skipped"""
    world.rest(10)
    return True


def bad_an_old_owner_goes_on(world):
    """owner"""
    world.hand("a", 30.5, 1, 9)
    world.rest()


def bad_an_assignment_that_was_over_when_it_came(world):
    """owner"""
    world.line("a", "V", 12, "0 " + " ".join(ALL))
    world.line("a", "G", 31, "-1 1 EAGER " + " ".join(ALL))
    world.hand("a", 31.1, 1, 9)
    world.rest()


def bad_a_stopped_owner_goes_on_for_too_long(world):
    """owner"""
    world.actions += ["stop 15000000 member-a", "continue 32000000 member-a"]
    world.hand("a", 36, 1, 9)
    world.rest()


def bad_a_member_that_was_stopped_for_long_reads_on(world):
    """owner"""
    world.actions += ["stop 15000000 member-a", "continue 32000000 member-a"]
    for number in range(1, check.BATCH + 2):
        world.write(3, number, acked=False)
        world.hand("a", 32.1, 3, number)
    world.rest()


def bad_handed_out_without_an_assignment(world):
    """owner"""
    world.line("a", "V", 12, "0 " + " ".join(ALL))
    world.hand("a", 13, 1, 9)
    world.rest()


def bad_committed_before_it_was_processed(world):
    """commit"""
    world.rest()
    world.commits.insert(2, "1/0 7 %d" % ((31.5 * SECOND + SKEW) // 1000))


def bad_a_commit_that_the_cluster_does_not_know(world):
    """commit"""
    world.line("a", "O", 11, "NO_ERROR 0/0:2:0")
    world.rest()


def bad_an_old_owner_commits(world):
    """commit-back"""
    world.commit(31, 1, 2)
    world.rest()


def bad_an_old_owner_commits_what_it_processed(world):
    """owner"""
    world.hand("a", 19, 1, 9)
    world.process("a", 19)
    world.line("a", "O", 30.6, "NO_ERROR 1/0:5:0")
    world.commit(30.5, 1, 5)
    world.rest()


def bad_a_record_that_was_never_written(world):
    """unknown"""
    world.where[1, 99] = (1, 99)
    world.hand("b", 31, 1, 99)
    world.rest()


def bad_under_a_wrong_number(world):
    """name"""
    world.rest()
    at = next(i for i, line in enumerate(world.b) if line.endswith(" s 1 9 s 1 9"))
    world.b[at] = world.b[at].replace(" s 1 9 s", " s 1 8 s")


def bad_without_its_number(world):
    """state"""
    for number in (7, 8):
        world.hand("b", 31, 1, number)
    world.hand("b", 31, 1, 9, "unsequenced")
    world.rest(10)


def bad_records_that_are_not_conserved(world):
    """ledger"""
    world.rest()
    world.line("b", "S", 40, "0 {}")


def bad_a_report_of_a_sanitizer(world):
    """report"""
    world.rest()
    world.errors.append("==1==ERROR: AddressSanitizer: heap-use-after-free")


def bad_a_fatal_error(world):
    """fatal"""
    world.rest()
    world.line("b", "W", 40, "fatal fenced")


# ---- the plan

def plan_depends_on_the_seed_alone():
    one, two, other = (list(map(str, plan.plan(seed, 300))) for seed in (7, 7, 8))
    random.seed(1)
    assert one == two == list(map(str, plan.plan(7, 300)))
    assert one != other


def plan_takes_away_one_broker_at_a_time_and_leaves_two_members():
    for seed in range(20):
        down, present, dead = 0, set(), set()
        for action in plan.plan(seed, 600):
            if action.what in ("broker-kill", "broker-stop"):
                down += 1
            elif action.what in ("broker-start", "broker-continue"):
                down -= 1
            elif action.what == "member-start":
                assert action.who not in present
                present.add(action.who)
                dead.discard(action.who)
            elif action.what == "member-kill":
                present.discard(action.who)
                dead.add(action.who)
            elif action.what == "member-leave":
                present.discard(action.who)
            assert 0 <= down <= 1
            assert action.at < 1 or 2 <= len(present | dead) <= plan.MEMBERS


def plan_of_half_an_hour_kills_often_enough():
    for seed in range(5):
        assert sum(action.what.endswith("-kill") for action in plan.plan(seed, 1800)) >= 200


def outcome(name, function):
    if name.startswith("plan"):
        function()
        return
    world = World()
    verdict = world.judge(bool(function(world)))
    kinds = {fault.kind for fault in verdict.faults}
    wanted = {function.__doc__} if name.startswith("bad") else set()
    # What is planted may have others in its train, but it has to be named itself.
    if wanted:
        assert wanted <= kinds, "found %s, not %s" % (sorted(kinds), sorted(wanted))
    else:
        assert not kinds, verdict.faults[0].kind + ": " + verdict.faults[0].text


def main():
    failed = 0
    for name, function in list(globals().items()):
        if not name.startswith(("good_", "bad_", "plan_")):
            continue
        try:
            outcome(name, function)
            print("ok - chaos: " + name)
        except AssertionError as error:
            failed += 1
            print("not ok - chaos: %s: %s" % (name, error))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
