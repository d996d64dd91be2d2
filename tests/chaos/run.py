#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a plan of faults on the cluster of tests/harness/with-kafka.sh, lets everything come to rest, and has the
journals judged:

    run.py BUILD [--minutes N] [--seed S] [--checkpoint none|topic] [--protocol classic|consumer] [--keep]

Ends with 0 if nothing was found. Otherwise the folder with all journals stays, and the seed and the shortest
explanation are printed."""
import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import check  # noqa: E402
import plan  # noqa: E402

FLUSH_S = 90
DRAIN_S = 90
WARM_UP_S = 60
CLOSE_S = 40
AGAIN_S = 1
FATAL = 4  # how a process ends after a fatal error of librdkafka's


class Run:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        # Copies, so that nobody who builds meanwhile changes what runs.
        self.programs = shutil.copytree(os.path.join(options.build, "chaos"), os.path.join(folder, "programs"))
        self.children = {}  # name -> process
        self.runs = collections.Counter()
        self.stopped = set()
        self.expected = set()  # names whose end by a signal was planned
        self.faults = []
        self.brokers = [int(pid) for pid in os.environ["UNSALT_TEST_BROKER_PIDS"].split()]
        self.coordinator = {}
        self.frozen = {}
        self.dead = set()
        self.starting = []
        self.again = {}  # (kind, slot) -> when it is started in place of one that ended
        self.leaving = set()  # kinds of processes that are to end
        self.drained = 0
        self.actions = open(os.path.join(folder, "actions"), "w", buffering=1)
        self.note("anchor", str(time.time_ns() // 1000))

    def note(self, *words):
        self.actions.write("%s %d %s\n" % (words[0], time.monotonic_ns() // 1000, " ".join(words[1:])))

    def path(self, name):
        return os.path.join(self.folder, name)

    def spawn(self, name, program, *words):
        with open(self.path(name + ".err"), "a") as err:
            self.children[name] = subprocess.Popen([os.path.join(self.programs, program)] + list(words),
                                                   stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.note("start", name, str(self.children[name].pid), *words)

    def topics(self, *words, timeout=60, into=None):
        out = open(self.path(into), "w") if into else subprocess.PIPE
        done = subprocess.run([os.path.join(self.programs, "topics")] + list(words), stdout=out, stderr=subprocess.PIPE,
                              timeout=timeout, text=True)
        if done.returncode != 0:
            raise RuntimeError("topics %s: %s" % (" ".join(words), done.stderr.strip()))
        return done.stdout

    # ---- members and producers

    def member(self, slot):
        return "member-%d-%d" % (slot, self.runs["member", slot])

    def producer(self, slot):
        return "producer-%d-%d" % (slot, self.runs["producer", slot])

    def start(self, kind, slot, how):
        self.again.pop((kind, slot), None)
        if self.runs[kind, slot] and (self.member(slot) if kind == "member" else self.producer(slot)) in self.children:
            return  # in place of one that ended by itself
        self.runs[kind, slot] += 1
        if kind == "member":
            name = self.member(slot)
            words = ["log=" + self.path(name), "checkpoint=" + self.options.checkpoint,
                     "protocol=" + self.options.protocol]
            if slot == 0:
                words.append("static=zero")
        else:
            # The runs of a producer share a journal, from which a plain one learns where it was.
            name = self.producer(slot)
            words = ["log=" + self.path("producer-%d" % slot), "slot=%d" % slot, "mode=" + plan.PRODUCERS[slot],
                     "rate=%d" % self.options.rate]
            if slot == 0:
                words.append("epoch=%d" % self.runs[kind, slot])
        self.spawn(name, kind, *words, *how)

    def signal(self, name, number, word):
        child = self.children.get(name)
        if child and child.poll() is None:
            child.send_signal(number)
            self.note(word, name)

    def kill(self, name):
        self.expected.add(name)
        self.signal(name, signal.SIGKILL, "kill")

    def act_on_child(self, kind, verb, slot, how):
        name = self.member(slot) if kind == "member" else self.producer(slot)
        if verb == "start":
            self.start(kind, slot, how)
        elif verb == "kill":
            self.kill(name)
        elif verb == "stop":
            self.signal(name, signal.SIGSTOP, "stop")
            self.stopped.add(name)
        elif verb == "continue":
            self.signal(name, signal.SIGCONT, "continue")
            self.stopped.discard(name)
        else:
            number = {"leave": signal.SIGTERM, "slow": signal.SIGUSR1, "hang": signal.SIGUSR2}[verb]
            self.signal(name, number, verb)

    # ---- brokers

    def kafka_sh(self, *words):
        return subprocess.Popen([os.environ["UNSALT_TEST_KAFKA_SH"]] + list(words), stdin=subprocess.DEVNULL,
                                stdout=open(self.path("kafka.err"), "a"), stderr=subprocess.STDOUT)

    def which(self, slot):
        """Slot 0 is the coordinator of the group, whichever that is now."""
        if slot:
            return slot
        try:
            self.coordinator[0] = int(self.topics("coordinator", timeout=1.5))
        except (RuntimeError, subprocess.TimeoutExpired, ValueError):
            self.coordinator[0] = 1
        return self.coordinator[0]

    def broker_pid(self, broker):
        with open(os.path.join(os.environ["UNSALT_TEST_KAFKA_DIR"], "broker-%d" % broker, "pid")) as file:
            return int(file.read())

    def act_on_broker(self, verb, slot):
        if verb in ("kill", "stop"):
            # Two at a time would be more than three replicas promise to survive.
            if any(child.poll() is None for child in self.starting):
                self.note("broker-spared", verb)
                return
            broker = self.which(slot)
            self.note("broker-" + verb, str(broker))
            pid = self.broker_pid(broker)
            if verb == "kill":
                os.kill(pid, signal.SIGKILL)
                self.dead.add(broker)
            else:
                os.kill(pid, signal.SIGSTOP)
                self.frozen[broker] = pid
            return
        for broker, pid in list(self.frozen.items()):
            os.kill(pid, signal.SIGCONT)
            del self.frozen[broker]
            self.note("broker-continue", str(broker))
        for broker in list(self.dead):
            self.note("broker-start", str(broker))
            self.starting.append(self.kafka_sh("start", os.environ["UNSALT_TEST_KAFKA_DIR"], str(broker)))
            self.dead.discard(broker)

    # ---- the run

    def act(self, action):
        kind, _, verb = action.what.partition("-")
        if kind == "grow":
            self.note("grow", str(action.who), *action.how)
            child = subprocess.Popen([os.path.join(self.programs, "topics"), "grow", str(action.who), *action.how],
                                     stdout=subprocess.DEVNULL, stderr=open(self.path("grow.err"), "a"))
            self.starting.append(child)
        elif kind == "broker":
            self.act_on_broker(verb, action.who)
        else:
            self.act_on_child(kind, verb, action.who, action.how)

    def reap(self):
        """Notes ends; an end that nobody asked for is a fault."""
        for name, child in list(self.children.items()):
            status = child.poll()
            if status is None:
                continue
            del self.children[name]
            planned = name in self.expected and status == -signal.SIGKILL
            # What librdkafka calls fatal needs a new process: a static member that was thrown out finds its id taken by
            # its own next try, and an outage may cost a producer its sequence.
            fatal = {"member-0-": "member", "producer-": "producer"}.get(name[:9])
            if status == FATAL and fatal:
                self.note("exit", name, str(status), "fatal")
                self.again[fatal, int(name.split("-")[1])] = time.monotonic() + AGAIN_S
                continue
            self.note("exit", name, str(status), "planned" if planned or status == 0 else "unplanned")
            if not planned and status != 0:
                self.faults.append("%s ended with %d" % (name, status))

    def sleep_until(self, when):
        while True:
            self.reap()
            left = when - time.monotonic()
            if left <= 0:
                return
            for kind, slot in [one for one, at in self.again.items() if at <= time.monotonic()]:
                if kind in self.leaving:
                    del self.again[kind, slot]
                else:
                    self.start(kind, slot, ["seed=1"])
            time.sleep(min(left, 0.2))

    def threads(self, name):
        """Their names, which tell what librdkafka still waits for; where gdb is, their stacks beside the journal."""
        pid = str(self.children[name].pid)
        if shutil.which("gdb"):
            with open(self.path(name + ".stacks"), "w") as out:
                subprocess.run(["gdb", "-batch", "-ex", "thread apply all backtrace", "-p", pid],
                               stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
        try:
            tasks = sorted(os.listdir("/proc/%s/task" % pid))
            return ", ".join(open("/proc/%s/task/%s/comm" % (pid, task)).read().strip() for task in tasks)
        except OSError:
            return "not there any more"

    def left_behind(self):
        """How often the library says that it left a handle of its own, which librdkafka did not end."""
        return sum(open(self.path(name), errors="replace").read().count("left behind")
                   for name in os.listdir(self.folder) if name.endswith(".err"))

    def names(self, kind):
        return [name for name in self.children if name.startswith(kind)]

    def warm_up(self, when):
        """No fault before the group is at work, however slow the machine is; the plan waits. How long: seconds."""
        self.sleep_until(when)
        most = left = 0
        while time.monotonic() < when + WARM_UP_S and left >= most and (left > self.options.rate or most == 0):
            self.sleep_until(time.monotonic() + 0.2)
            try:
                left = int(self.topics("lag"))
                most = max(most, left)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                self.note("lag-failed", str(error))
        self.note("warm", "%d of %d" % (left, most))
        return time.monotonic() - when

    def heal(self):
        """Ends all faults: nobody is stopped, every broker is up, at least two members are there."""
        self.note("heal")
        for name in list(self.stopped):
            self.signal(name, signal.SIGCONT, "continue")
        self.act_on_broker("start", 0)
        for child in self.starting:
            child.wait()
        self.reap()
        for slot in range(plan.MEMBERS):
            if len(self.names("member")) < 2 and self.member(slot) not in self.children:
                self.start("member", slot, ["seed=1"])
        for slot in range(len(plan.PRODUCERS)):
            if self.producer(slot) not in self.children:
                self.start("producer", slot, ["seed=1"])

    def wait_for(self, kind, seconds):
        until = time.monotonic() + seconds
        while self.names(kind):
            if time.monotonic() > until:
                for name in self.names(kind):
                    self.faults.append("%s did not end within %d s; its threads: %s" % (
                        name, seconds, self.threads(name)))
                    self.signal(name, signal.SIGABRT, "abort")
                    self.expected.add(name)
                return
            self.sleep_until(time.monotonic() + 0.1)

    def rest(self):
        """Producers end when the fate of everything is known, members when everything was committed."""
        self.sleep_until(time.monotonic() + 2)
        self.leaving.add("producer")
        for name in self.names("producer"):
            self.signal(name, signal.SIGTERM, "leave")
        self.wait_for("producer", FLUSH_S)
        began = time.monotonic()
        until = began + DRAIN_S
        left = -1
        while left != 0:
            if time.monotonic() > until:
                self.faults.append("%d offsets were not committed within %d s after all faults had ended" %
                                   (left, DRAIN_S))
                break
            self.sleep_until(time.monotonic() + 0.3)
            try:
                left = int(self.topics("lag"))
            except RuntimeError as error:
                self.note("lag-failed", str(error))
        self.note("drained", str(left))
        self.drained = time.monotonic() - began
        self.leaving.add("member")
        for name in self.names("member"):
            self.signal(name, signal.SIGTERM, "leave")
        self.wait_for("member", CLOSE_S)

    def end(self):
        for name, child in self.children.items():
            if child.poll() is None:
                child.kill()
                child.wait()
        for pid in self.frozen.values():
            os.kill(pid, signal.SIGCONT)
        for child in self.starting:
            child.wait()

    def go(self, actions):
        self.topics("create")
        began = time.monotonic()
        warm = False
        for action in actions:
            if action.at > plan.WARM_S and not warm:
                warm = True
                began += self.warm_up(began + plan.WARM_S)
            self.sleep_until(began + action.at)
            self.act(action)
        self.sleep_until(began + self.options.minutes * 60)
        self.heal()
        self.rest()
        self.topics("records", into="records", timeout=600)
        self.topics("offsets", into="offsets", timeout=600)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=lambda text: int(text, 0),
                        default=os.environ.get("UNSALT_SEED") or random.SystemRandom().randrange(1 << 48))
    parser.add_argument("--checkpoint", default="none")
    parser.add_argument("--protocol", default="classic")
    parser.add_argument("--rate", type=int, default=250, help="records a second of each producer")
    parser.add_argument("--keep", action="store_true", help="keeps the folder in any case")
    parser.add_argument("--plan", help="a file as the folder of a run holds it, instead of a seed")
    parser.add_argument("--show", action="store_true", help="prints the plan only")
    return parser.parse_args()


def main():
    options = arguments()
    actions = plan.read(options.plan) if options.plan else plan.plan(options.seed, options.minutes * 60)
    if options.show:
        print("\n".join(map(str, actions)))
        return 0
    print("UNSALT_SEED=0x%x" % options.seed, flush=True)
    folder = tempfile.mkdtemp(prefix="unsalt-chaos.")
    with open(os.path.join(folder, "plan"), "w") as file:
        file.write("seed 0x%x\n%s\n" % (options.seed, "\n".join(map(str, actions))))
    run = Run(options, folder)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run.go(actions)
    finally:
        run.end()
    counts = collections.Counter(action.what for action in actions)
    print("chaos: %d actions in %.0f s, at rest %.1f s after the last record was sent: %s" % (
        len(actions), time.monotonic() - began, run.drained, ", ".join(
            "%s %d" % one for one in sorted(counts.items()))))
    print("chaos: handles left behind %d" % run.left_behind())
    verdict = check.judge(folder, checkpoint=options.checkpoint != "none")
    verdict.faults[:0] = [check.Fault("process", text) for text in run.faults]
    check.report(verdict, folder)
    if verdict.faults:
        print("chaos: failed; seed 0x%x, all journals are in %s" % (options.seed, folder))
        return 1
    if options.keep:
        print("chaos: %s" % folder)
    else:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
