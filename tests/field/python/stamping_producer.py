# SPDX-License-Identifier: BSD-2-Clause
"""A producer in another language: the algorithm of docs/wire-format.md, "A producer", with confluent-kafka.

    stamping_producer.py BOOTSTRAP {LAYOUT TOPIC PARTITIONS LANES LOG}...

Hot sessions over LANES lanes, cold ones on one, a session that is spread while it lives, a number that is abandoned
and marked, heartbeats, and a second run of the producer under a higher epoch. LOG receives a line for each
acknowledged record: session, epoch, number, partition, offset and key, by tabs."""
import sys

import unsalt_header as wire
from confluent_kafka import Producer

HOT, WARM, COLD = 1500, 900, 15
ABANDONED = range(700, 703)


class Session:
    """What a producer keeps of a session."""

    def __init__(self, epoch, lanes):
        self.epoch, self.next = epoch, 1
        self.lanes, self.since = lanes, 1
        self.open = {}  # unresolved numbers, in ascending order

    def una(self):
        return next(iter(self.open), self.next)


class StampingProducer:
    """A run of a producer: its counters, its epoch. The client is only what sends."""

    def __init__(self, client, layout, topic, partitions, block, epoch, log):
        self.client, self.layout, self.topic, self.partitions, self.block = client, layout, topic, partitions, block
        self.epoch, self.log, self.sessions = epoch, log, {}

    def place(self, session, lanes, lane):
        """Topic, partition and key of a lane."""
        if self.layout == "topics":
            partition = wire.topics_partition(session, self.partitions)
            return wire.lane_topic(self.topic, lane), partition, session
        if self.layout == "block":
            return self.topic, wire.block_partitions(session, lanes, self.partitions, self.block)[lane], session
        partition = wire.hash_partitions(session, lanes, self.partitions)[lane]
        return self.topic, partition, wire.salted(session, lane, lanes)

    def spread(self, session, lanes):
        """From the next record on the session has so many lanes."""
        state = self.sessions.setdefault(session, Session(self.epoch, lanes))
        if state.lanes != lanes:
            state.lanes, state.since = lanes, state.next

    def enqueue(self, session, header, value, done):
        topic, partition, key = self.place(session, header.lanes, header.lane)

        def report(error, message):
            if error:
                raise RuntimeError(str(error))
            done(message, key)

        self.client.produce(topic, value=value, key=key, partition=partition,
                            headers={wire.NAME: wire.write(header)}, on_delivery=report)
        self.client.poll(0)

    def send(self, session, value, flags=0):
        """Stamps once, and sends."""
        state, name = self.sessions[session], session.decode()
        number = state.next
        state.next += 1
        state.open[number] = True
        header = wire.Header(flags | (wire.FIRST if number == 1 else 0), number % state.lanes, state.lanes,
                             state.epoch, number, state.since, state.una())

        def done(message, key):
            del state.open[number]
            lane = header.lane if self.layout == "topics" else 0
            partition = lane * self.partitions + message.partition()
            print(name, header.epoch, number, partition, message.offset(), key.decode(), sep="\t", file=self.log)

        self.enqueue(session, header, value, done)

    def abandon(self, session, count):
        """Takes numbers and finds that their records can't be sent at all: a marker says that they will never come."""
        state = self.sessions[session]
        first, last = state.next, state.next + count - 1
        state.next = last + 1
        header = wire.Header(wire.MARKER, last % state.lanes, state.lanes, state.epoch, last, first, state.una())
        self.enqueue(session, header, b"gap", lambda message, key: None)

    def heartbeat(self, session, lane):
        state = self.sessions[session]
        header = wire.Header(wire.HEARTBEAT, lane, state.lanes, state.epoch, 0, 0, 0)
        self.enqueue(session, header, b"heartbeat", lambda message, key: None)

    def close(self):
        if self.client.flush(30):
            raise RuntimeError("records are left over")


def run(producer, lanes):
    for hot in (b"hot-a", "hot-ü".encode()):
        producer.spread(hot, lanes)
    producer.spread(b"warm", 1)
    for i in range(HOT):
        if i == ABANDONED.start:
            producer.abandon(b"hot-a", len(ABANDONED))
        producer.send(b"hot-a", f"token {i}", wire.LAST if i == HOT - 1 else 0)
        if i % 2 == 0:
            producer.send("hot-ü".encode(), f"token {i}")
        if i in (WARM // 3, WARM * 2 // 3):  # cold, hot, cold again
            producer.spread(b"warm", lanes if i == WARM // 3 else 1)
        if i < WARM:
            producer.send(b"warm", f"token {i}")
        if i % 10 == 0:
            cold = f"cold-{i // 10 % COLD}".encode()
            producer.spread(cold, 1)
            producer.send(cold, f"token {i}")
        if i % 100 == 0:
            producer.heartbeat(b"hot-a", i // 100 % lanes)
    producer.close()


def main(arguments):
    client = Producer({"bootstrap.servers": arguments[0], "enable.idempotence": True, "acks": "all"})
    for layout, topic, partitions, lanes, path in zip(*[iter(arguments[1:])] * 5):
        with open(path, "w", encoding="utf-8") as log:
            for epoch in (1767225600000, 1767225600500):
                run(StampingProducer(client, layout, topic, int(partitions), int(lanes), epoch, log), int(lanes))


main(sys.argv[1:])
