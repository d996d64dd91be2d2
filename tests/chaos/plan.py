# SPDX-License-Identifier: BSD-2-Clause
"""The plan of a chaos run: what is done to whom and when. It depends on the seed and the length alone."""
import random

MEMBERS = 5  # slots
BROKERS = 3
PRODUCERS = ("unsalt", "unsalt", "raw")
START = 3  # members at the beginning
LEAST = 2  # members that are never taken away, but for a while by faults
WARM_S = 3  # nothing happens after the start before that
LANES = 4
PARTITIONS = 6

# A new kind of fault, and how often it is drawn.
WEIGHTS = {
    "member-kill": 22, "member-stop": 6, "member-cut-off": 8, "member-leave": 9, "member-join": 9, "member-slow": 7,
    "member-hang": 4, "member-hang-amid-rebalance": 3, "producer-kill": 15, "producer-stop": 4, "broker-kill": 5,
    "broker-stop": 4, "broker-cut-off": 2, "coordinator-stop": 4, "grow": 2,
}


class Action:
    """`at` seconds after the beginning, something is done to slot `who` with the words `how`."""

    def __init__(self, at, what, who=0, how=()):
        self.at, self.what, self.who, self.how = at, what, who, tuple(how)

    def __str__(self):
        return "%8.3f %s %d %s" % (self.at, self.what, self.who, " ".join(self.how))


class Planner:
    def __init__(self, seed, seconds):
        self.random = random.Random(seed)
        self.seconds = seconds
        self.actions = []
        self.busy = {}  # (kind, slot) -> until when a fault of it is under way
        self.present = [slot < START for slot in range(MEMBERS)]
        self.grown = 0

    def style(self):
        """How a member works: drawn anew whenever one starts."""
        draw = self.random
        return ["ack=" + draw.choice(("auto", "manual")), "commit=" + draw.choice(("sync", "async", "auto")),
                "batch=%d" % draw.choice((1, 8, 32, 128)), "hook=%d" % draw.randrange(2),
                "seed=%d" % draw.randrange(1 << 30)]

    def add(self, at, what, who=0, how=()):
        self.actions.append(Action(round(at, 3), what, who, how))

    def free(self, kind, slots, at):
        return [slot for slot in slots if self.busy.get((kind, slot), 0) <= at]

    def members(self, at):
        return self.free("member", [slot for slot in range(MEMBERS) if self.present[slot]], at)

    def hold(self, kind, slot, until):
        self.busy[kind, slot] = until

    # Each returns False if it can't be done now.

    def member_kill(self, at):
        return self.member_away(at, "member-kill", self.random.uniform(0.1, 4))

    def member_leave(self, at):
        free = self.members(at)
        if not free or sum(self.present) <= LEAST:
            return False
        slot = self.random.choice(free)
        self.add(at, "member-leave", slot)
        self.present[slot] = False
        self.hold("member", slot, at + 4)
        return True

    def member_join(self, at):
        free = self.free("member", [slot for slot in range(MEMBERS) if not self.present[slot]], at)
        if not free:
            return False
        slot = self.random.choice(free)
        self.add(at, "member-start", slot, self.style())
        self.present[slot] = True
        self.hold("member", slot, at + 1)
        return True

    def member_away(self, at, what, away):
        free = self.members(at)
        if not free:
            return False
        slot = self.random.choice(free)
        self.add(at, what, slot)
        self.add(at + away, "member-start", slot, self.style())
        self.hold("member", slot, at + away + 1)
        return True

    def paused(self, at, kind, slots, low, high, rest=1.0):
        """SIGSTOP, and SIGCONT later."""
        free = self.free(kind, slots, at)
        if not free:
            return False
        slot = self.random.choice(free)
        long = self.random.uniform(low, high)
        self.add(at, kind + "-stop", slot)
        self.add(at + long, kind + "-continue", slot)
        self.hold(kind, slot, at + long + rest)
        return True

    def member_stop(self, at):
        return self.paused(at, "member", self.members(at), 0.2, 3)

    def member_cut_off(self, at):
        return self.paused(at, "member", self.members(at), 7.5, 11)

    def told(self, at, what, long):
        free = self.members(at)
        if not free:
            return False
        slot = self.random.choice(free)
        self.add(at, what, slot)
        self.hold("member", slot, at + long)
        return True

    def member_slow(self, at):
        return self.told(at, "member-slow", 4)

    def member_hang(self, at):
        return self.told(at, "member-hang", 11)

    def member_hang_amid_rebalance(self, at):
        """A stopped member keeps a rebalance waiting: an assignment comes to one that hangs, and is over by then."""
        free = self.members(at)
        absent = self.free("member", [slot for slot in range(MEMBERS) if not self.present[slot]], at)
        if len(free) < 2 or not absent:
            return False
        stopped, hung = self.random.sample(free, 2)
        slot = self.random.choice(absent)
        self.add(at, "member-stop", stopped)
        self.add(at + 0.3, "member-start", slot, self.style())
        self.add(at + 1.6, "member-hang", hung)
        self.add(at + 2.5, "member-continue", stopped)
        self.present[slot] = True
        for who, until in ((stopped, 4), (slot, 4), (hung, 13)):
            self.hold("member", who, at + until)
        return True

    def producer_kill(self, at):
        free = self.free("producer", range(len(PRODUCERS)), at)
        if not free:
            return False
        slot = self.random.choice(free)
        away = self.random.uniform(0.1, 1.5)
        self.add(at, "producer-kill", slot)
        self.add(at + away, "producer-start", slot, ["seed=%d" % self.random.randrange(1 << 30)])
        self.hold("producer", slot, at + away + 2)
        return True

    def producer_stop(self, at):
        return self.paused(at, "producer", range(len(PRODUCERS)), 0.5, 4)

    # One broker at a time, or nothing could be acknowledged. Slot 0 stands for the group's coordinator.

    def broker(self, at, what, low, high, slot=None):
        if self.busy.get("broker", 0) > at:
            return False
        slot = self.random.randint(1, BROKERS) if slot is None else slot
        long = self.random.uniform(low, high)
        self.add(at, what, slot)
        self.add(at + long, "broker-start" if what == "broker-kill" else "broker-continue", slot)
        self.busy["broker"] = at + long + 8
        return True

    def broker_kill(self, at):
        return self.broker(at, "broker-kill", 0.5, 4, self.random.randint(0, BROKERS))

    def broker_stop(self, at):
        return self.broker(at, "broker-stop", 0.5, 4)

    def broker_cut_off(self, at):
        return self.broker(at, "broker-stop", 10, 13)

    def coordinator_stop(self, at):
        return self.broker(at, "broker-stop", 1, 7, 0)

    def grow(self, at):
        """All lane topics gain a partition, one after the other, as an operator would do it."""
        if self.grown == 2:
            return False
        self.grown += 1
        for lane in range(LANES):
            self.add(at + lane * self.random.uniform(0.05, 0.4), "grow", lane, [str(PARTITIONS + self.grown)])
        return True

    def begin(self):
        for slot in range(len(PRODUCERS)):
            self.add(0, "producer-start", slot, ["seed=%d" % self.random.randrange(1 << 30)])
        for slot in range(START):
            self.add(0.2 * slot, "member-start", slot, self.style())
            self.hold("member", slot, 3)

    def plan(self):
        self.begin()
        at, calm = 4.0, self.random.uniform(15, 30)
        kinds, weights = zip(*sorted(WEIGHTS.items()))
        while True:
            at += self.random.expovariate(1 / 1.1)
            if at > calm:
                # Time to go on undisturbed, or a group that is always torn apart would never get anywhere.
                at += 7
                calm = at + self.random.uniform(15, 30)
            if at >= self.seconds:
                break
            kind = self.random.choices(kinds, weights)[0]
            getattr(self, kind.replace("-", "_"))(at)
        self.actions.sort(key=lambda action: action.at)
        return [action for action in self.actions if action.at < self.seconds]


def plan(seed, seconds):
    """The actions in the order of their time. What is broken at the end is mended by whoever runs them."""
    return Planner(seed, seconds).plan()


def read(path):
    """A plan as it was printed; the line of the seed is passed over."""
    actions = []
    with open(path) as file:
        for words in map(str.split, file):
            if words and words[0] != "seed":
                actions.append(Action(float(words[0]), words[1], int(words[2]), words[3:]))
    return actions
