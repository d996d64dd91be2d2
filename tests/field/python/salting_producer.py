# SPDX-License-Identifier: BSD-2-Clause
"""An application that salts its hot sessions, with confluent-kafka and nothing of unsalt.

    salting_producer.py BOOTSTRAP {SHAPE TOPIC PARTITIONS LANES LOG}...

SHAPE says where number and salt are:

    counted  JSON payload; key "<session>#<k>", k = number mod LANES; the client's default partitioner, CRC32
    turns    JSON payload; key "<session>_SALT_<k>", k in turn over all sessions; the Java client's partitioner
    raw      JSON payload; key "<session>", on the partition that "<session>#<k>" would have, k at random
    decimal  header "seq" in decimal digits; key "<session>#salt_<k>", k at random; the payload says nothing
    binary   header "seq", 8 bytes big-endian; key "<session>", on a random partition; the payload says nothing

LOG receives a line for each acknowledged record: session, epoch, number, partition, offset and key, by tabs."""
import itertools
import json
import random
import sys

from confluent_kafka import Producer
from unsalt_header import murmur2

HOT, WARM, COLD = 1500, 900, 15


class Application:
    def __init__(self, bootstrap, shape, topic, partitions, lanes, log):
        self.shape, self.topic, self.partitions, self.lanes, self.log = shape, topic, partitions, lanes, log
        self.producer = Producer({
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "partitioner": "murmur2_random" if shape == "turns" else "consistent_random",
        })
        self.numbers = {}
        self.random = random.Random(17)
        self.turn = itertools.count()

    def salt(self, number):
        if self.shape == "counted":
            return number % self.lanes
        if self.shape == "turns":
            return next(self.turn) % self.lanes
        return self.random.randrange(self.lanes)

    def place(self, session, number):
        """Key and partition of a hot record; -1: as the partitioner says."""
        salt = self.salt(number)
        if self.shape == "raw":
            return session, murmur2(f"{session}#{salt}".encode()) % self.partitions
        if self.shape == "binary":
            return session, self.random.randrange(self.partitions)
        mark = {"counted": "#", "turns": "_SALT_", "decimal": "#salt_"}[self.shape]
        return f"{session}{mark}{salt}", -1

    def send(self, session, hot):
        number = self.numbers[session] = self.numbers.get(session, 0) + 1
        key, partition = self.place(session, number) if hot else (session, -1)
        headers, value = None, f"token {number}"
        if self.shape == "decimal":
            headers = {"seq": str(number)}
        elif self.shape == "binary":
            headers = {"seq": number.to_bytes(8, "big")}
        else:  # json.dumps() escapes what isn't ASCII, and puts blanks
            data = {"globalSeq": 0, "text": value}
            value = json.dumps({"sessionId": session, "data": data, "type": "chunk", "globalSeq": number})

        def report(error, message):
            if error:
                raise RuntimeError(str(error))
            print(session, 0, number, message.partition(), message.offset(), key, sep="\t", file=self.log)

        arguments = {"key": key, "value": value, "headers": headers, "on_delivery": report}
        if partition >= 0:
            arguments["partition"] = partition
        self.producer.produce(self.topic, **arguments)
        self.producer.poll(0)

    def run(self):
        for i in range(HOT):
            self.send("hot-a", True)
            if i % 2 == 0:
                self.send("hot-ü", True)
            if i < WARM:
                self.send("warm", WARM // 3 <= i < WARM * 2 // 3)
            if i % 10 == 0:
                self.send(f"cold-{i // 10 % COLD}", False)
        if self.producer.flush(30):
            raise RuntimeError("records are left over")


def main(arguments):
    bootstrap, rest = arguments[0], arguments[1:]
    for shape, topic, partitions, lanes, path in zip(*[iter(rest)] * 5):
        with open(path, "w", encoding="utf-8") as log:
            Application(bootstrap, shape, topic, int(partitions), int(lanes), log).run()


main(sys.argv[1:])
