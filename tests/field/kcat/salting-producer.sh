#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Salts sessions with kcat, from a shell: salting-producer.sh BOOTSTRAP {SHAPE TOPIC PARTITIONS LANES LOG}...
#
#   counted  JSON payload; key "<session>#<k>", k = number mod LANES; kcat's default partitioner, CRC32
#   random   the same with "<session>#salt_<k>", k at random, and the Java client's partitioner
#   header   header "seq" in decimal digits, raw keys, the partition by number; a run of kcat for each record
#
# LOG receives a line for each record, as kcat itself reads the topic afterwards: session, epoch, number, partition,
# offset and key, by tabs.
set -euo pipefail
bootstrap=$1
shift
hot=1500
few=8

# Lines of key and payload, by a tab: two hot sessions, and cold ones under their raw keys.
lines() {
    awk -v mark="$1" -v lanes="$2" -v hot=$hot 'BEGIN {
        srand(17)
        for (i = 1; i <= hot; i++) {
            send("hot-a", 1)
            if (i % 2) send("hot-b", i > hot / 4)
            if (i % 10 == 0) send("cold-" i / 10 % 15, 0)
        }
    }
    function send(session, salted,    n) {
        n = ++number[session]
        printf "%s", session
        if (salted) printf "%s%d", mark, mark == "#" ? n % lanes : int(rand() * lanes)
        printf "\t{\"sessionId\":\"%s\",\"globalSeq\":%d,\"type\":\"chunk\",\"data\":{\"text\":\"token %d\"}}\n",
            session, n, n
    }'
}

produce() {
    kcat -q -P -b "$bootstrap" -t "$topic" -X acks=all "$@"
}

by_header() {
    local n session children=()
    for ((n = 1; n <= few; n++)); do
        for session in hot-a hot-b; do
            printf '%s\t%s %d\n' "$session" "$session" "$n" |
                produce -K $'\t' -H "seq=$n" -p $(((n + ${#children[@]}) % partitions)) &
            children+=($!)
        done
    done
    for n in "${children[@]}"; do wait "$n"; done
}

# What was written is what kcat reads; session and number from the payload, whichever form it has.
list() {
    kcat -q -C -e -b "$bootstrap" -t "$topic" -o beginning -X fetch.wait.max.ms=20 -f '%s\t%p\t%o\t%k\n' |
        sed -E 's/^\{"sessionId":"([^"]*)","globalSeq":([0-9]+)[^\t]*\t/\1\t0\t\2\t/
                s/^([^ \t]+) ([0-9]+)\t/\1\t0\t\2\t/'
}

while [ $# -ge 5 ]; do
    shape=$1 topic=$2 partitions=$3 lanes=$4 log=$5
    shift 5
    case $shape in
    counted) lines '#' "$lanes" | produce -K $'\t' ;;
    random) lines '#salt_' "$lanes" | produce -K $'\t' -X topic.partitioner=murmur2_random ;;
    header) by_header ;;
    esac
    list > "$log"
done
