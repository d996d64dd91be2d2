#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the benchmarks; `make bench`, `bench-peers` and `bench-plots` build them and call this.
#
#   run.sh PART...    what to run, in this order, but what needs no broker first:
#
#   core       the core alone: every program that needs no broker
#   lanes      of these the one that orders a session, for the plot
#   consumer   reading in order; with FULL=1 it is consumer_100_none, consumer_100_lz4, consumer_1024_none and
#              consumer_1024_lz4, by size and codec, which are parts of their own too
#   latency, hot_key, scaling, restart, workers
#   peers      hot_key with Confluent Parallel Consumer beside it
#
# Prints a table, or with FORMAT=json one JSON object per line; everything else goes to stderr, also what each part
# took. UNSALT_BENCH_JSON names a file to which the JSON lines are added in any case, and a line for each part that was
# done: a part that the file says was done in the same matrix is left out, so a run that was broken off goes on where it
# stopped. FULL=1: the whole matrix instead of a reduced one.
# UNSALT_BENCH_DIR: the programs; UNSALT_BENCH_VERSION: the program that tells the librdkafka that is found.
# UNSALT_TEST_BOOTSTRAP, if set, names the cluster to use; else one is started for the time of the run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${UNSALT_BENCH_DIR:?use: make bench}
harness=$here/../tests/harness
[ "${FULL:-}" != 0 ] || FULL=
export FORMAT=${FORMAT:-} FULL=${FULL:-} UNSALT_BENCH_JSON=${UNSALT_BENCH_JSON:-}
brokered="consumer latency hot_key scaling restart workers"

say() {
    echo "bench: $*" >&2
}

keep() {
    [ -z "$UNSALT_BENCH_JSON" ] || echo "$1" >> "$UNSALT_BENCH_JSON"
}

# The commit that is measured, with -dirty if the tree differs from it in more than results; nothing without git.
commit() {
    local root=$here/.. hash
    [ "$(git -C "$root" rev-parse --show-cdup 2> /dev/null || echo none)" = "" ] || return 0
    hash=$(git -C "$root" rev-parse --short HEAD 2> /dev/null) || return 0
    git -C "$root" diff --quiet HEAD -- . ':!bench/results' 2> /dev/null || hash+=-dirty
    echo "$hash"
}

# One line about the machine, in both forms. describe PROGRAM PART...
describe() {
    local program=$1 cpu kernel compiler rdkafka kafka=given line commit
    shift
    cpu=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
    kernel=$(uname -sr)
    compiler=$(readelf -p .comment "$programs/$program" | sed -n 's/^ *\[ *0\] *//p')
    rdkafka=$("$UNSALT_BENCH_VERSION" 2> /dev/null || echo unknown)
    if [[ " $*" == *" consumer"* ]]; then
        rdkafka+=" and $("$harness/on-rdkafka.sh" newest "$UNSALT_BENCH_VERSION" true | sed 's/^librdkafka: //')"
    fi
    [ -z "${UNSALT_TEST_KAFKA_VERSION:-}" ] || kafka=$UNSALT_TEST_KAFKA_VERSION
    line=$(printf '{"machine":"%s","processors":%d,"memory_gib":%d,"kernel":"%s","compiler":"%s","librdkafka":"%s",%s' \
        "${cpu:-unknown}" "$(nproc)" "$(($(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo) / 1048576))" \
        "$kernel" "$compiler" "$rdkafka" "\"kafka\":\"$kafka\",\"full\":${FULL:-0},\"date\":\"$(date -u +%F)\"")
    commit=$(commit)
    line+=${commit:+,\"commit\":\"$commit\"}
    if [[ " $* " == *" peers "* ]]; then
        line+=",\"java\":\"$(java -version 2>&1 | sed -n '1s/.*version "\([^"]*\)".*/\1/p')\""
    fi
    line+="}"
    keep "$line"
    if [ "$FORMAT" = json ]; then echo "$line"; else say "$line"; fi
}

# Every benchmark that isn't named above.
run_core() {
    local source name began
    for source in "$here"/*.c; do
        name=$(basename "$source" .c)
        grep -q '^int main' "$source" || continue
        [[ " $brokered " != *" $name "* ]] || continue
        began=$SECONDS
        "$programs/$name"
        say "core: $name took $((SECONDS - began)) s"
    done
}

# consumer ARGUMENTS...: on both librdkafkas, one topic for the two.
consumer() {
    local topic=bench-$$-$RANDOM
    "$harness/on-rdkafka.sh" newest "$UNSALT_BENCH_VERSION" "$programs/consumer" -t "$topic"  "$@" |
        grep --line-buffered -v '^librdkafka: '
    "$harness/on-rdkafka.sh" installed "$UNSALT_BENCH_VERSION" "$programs/consumer" -t "$topic" -d "$@" |
        grep --line-buffered -v '^librdkafka: '
}

run_consumer() {
    consumer -f header -n 1000000 raw-poll raw-poll-look raw-batch-look split-look poll batch callback
    consumer -f header -n 500000 -w one-hot raw-poll-look split-look poll batch
    consumer -f key -n 500000 raw-poll split poll batch
    consumer -f plain -n 500000 -r 3 raw-poll-look split-look batch
    consumer -f json -n 500000 -r 3 raw-poll raw-poll-look split-look batch
    consumer -f header -s 1024 -c lz4 -n 500000 -r 3 raw-poll-look split-look poll batch
}

# The whole matrix. Every source with every reader and many rounds where the targets are; where only size and codec are
# others, what decides, in a few rounds: the whole has to end within an hour.
run_consumer_100_none() {
    local n=(-s 100 -c none -n 3000000)
    consumer -f header "${n[@]}" -r 7 raw-poll raw-poll-look raw-batch raw-batch-look split-look poll batch callback
    consumer -f header "${n[@]}" -r 7 -w one-hot raw-poll-look split-look poll batch
    consumer -f key "${n[@]}" -r 7 raw-poll raw-batch split poll batch callback extract
    consumer -f plain "${n[@]}" -r 3 raw-poll raw-poll-look split-look poll batch callback
    consumer -f json "${n[@]}" -r 3 raw-poll raw-poll-look split-look poll batch callback
}

consumer_of() {
    local n=(-s "$1" -c "$2" -n 3000000 -r 3)
    consumer -f header "${n[@]}" raw-poll-look raw-batch-look split-look poll batch
    consumer -f key "${n[@]}" raw-poll split poll batch
    consumer -f plain "${n[@]}" raw-poll-look split-look batch
    consumer -f json "${n[@]}" raw-poll-look split-look batch
}

run_consumer_100_lz4() { consumer_of 100 lz4; }
run_consumer_1024_none() { consumer_of 1024 none; }
run_consumer_1024_lz4() { consumer_of 1024 lz4; }

run_lanes() { "$programs/core"; }
run_latency() { "$programs/latency"; }
run_hot_key() { (unset UNSALT_BENCH_PEER && "$programs/hot_key"); }
run_scaling() { "$programs/scaling"; }
run_restart() { "$programs/restart"; }
run_workers() { "$programs/workers"; }
run_peers() {
    UNSALT_BENCH_PEER=$("$here/peers/peer.sh" build "$programs/peers")
    export UNSALT_BENCH_PEER
    "$programs/hot_key"
}

# Was it done before? run.sh adds such a line at the end of each part.
done_line() {
    printf '{"part":"%s","full":%d,' "$1" "${FULL:-0}"
}

was_done() {
    [ -n "$UNSALT_BENCH_JSON" ] && grep -qsF "$(done_line "$1")" "$UNSALT_BENCH_JSON"
}

run_part() {
    local began=$SECONDS
    "run_$1"
    keep "$(done_line "$1")\"seconds\":$((SECONDS - began))}"
    say "part $1 took $((SECONDS - began)) s"
}

main() {
    local part parts=() plain=() others=()
    for part in "$@"; do
        [ "$(type -t "run_$part")" = function ] || { echo "run.sh: no such part: $part" >&2; exit 2; }
        if [ "$part" = consumer ] && [ -n "$FULL" ]; then
            parts+=(consumer_100_none consumer_100_lz4 consumer_1024_none consumer_1024_lz4)
        else
            parts+=("$part")
        fi
    done
    for part in "${parts[@]}"; do
        if was_done "$part"; then
            say "part $part was done before, says $UNSALT_BENCH_JSON"
        elif [[ $part == core || $part == lanes ]]; then
            plain+=("$part")
        else
            others+=("$part")
        fi
    done
    if [ ${#plain[@]} -gt 0 ]; then
        UNSALT_TEST_KAFKA_VERSION=none describe core
        for part in "${plain[@]}"; do run_part "$part"; done
    fi
    if [ ${#others[@]} -gt 0 ] && [ -z "${UNSALT_TEST_BOOTSTRAP:-}" ]; then
        # The JVM's own choice of compiler: the broker must not be the limit.
        export KAFKA_JAVA_OPTS=${KAFKA_JAVA_OPTS:--Xmx1g}
        "$harness/with-kafka.sh" -- bash "$here/run.sh" "${others[@]}"
    elif [ ${#others[@]} -gt 0 ]; then
        describe consumer "${others[@]}"
        for part in "${others[@]}"; do run_part "$part"; done
        return
    fi
    say "all took $SECONDS s"
}

main "$@"
exit
