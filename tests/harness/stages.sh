#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a list of stages, goes on after a failure, and prints what each took and how many tests it ran:
#
#   stages.sh test|ci|long [STAGE...]
#
# Ends with `N passed, N failed` over all stages. With names of stages only these run. The lists stand below.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.." || exit 2
set_name=${1:?a set of stages: test, ci or long}
shift
only=" $* "
out=${O:-build}
logs=$out/logs/stages
mkdir -p "$logs"
# A stage that hangs is ended, with all that it started.
stage_alarm=${UNSALT_STAGE_ALARM:-900}
make=(make --no-print-directory)
rows=$logs/rows
child=
in_lane=
lanes=()

# With a signal, all that was started goes too.
ended() {
    kill -TERM $child "${lanes[@]}" 2> /dev/null
    wait
    exit 130
}
trap ended INT TERM HUP

# stage NAME COMMAND...: shows the output as it comes; in a lane, in one piece at the end.
stage() {
    local name=$1 log=$logs/$1.log status=0 began viewer=
    shift
    [ "$only" = "  " ] || [[ $only == *" $name "* ]] || return 0
    [ -n "$in_lane" ] || printf '\n==== %s: %s\n' "$name" "$*"
    began=$(date +%s%N)
    : > "$log"
    timeout -k 30 "$stage_alarm" "$@" > "$log" 2>&1 < /dev/null &
    child=$!
    if [ -z "$in_lane" ]; then
        tail -n +1 -s 0.1 -f --pid="$child" "$log" &
        viewer=$!
    fi
    wait "$child" || status=$?
    child=
    [ -z "$viewer" ] || wait "$viewer"
    [ -z "$in_lane" ] || printf '\n==== %s, beside the others: %s\n%s\n' "$name" "$*" "$(cat "$log")"
    row "$name" "$log" "$status" $((($(date +%s%N) - began) / 100000000)) >> "$rows"
}

# row NAME LOG STATUS TENTHS: the result of a stage as one line. A failure that no test counted is one all the same.
row() {
    local status=$3 p f version
    read -r p f < <(sed -nE 's/^([^ ]+: )?([0-9]+) passed, ([0-9]+) failed$/\2 \3/p' "$2" |
        awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }')
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$status" = 0 ] && [ "$f" != 0 ]; then status=1; fi
    version=$(sed -n 's/^librdkafka: //p' "$2" | tail -n 1)
    echo "$1 $4 $p $f $status ${version:--}"
}

# lane FUNCTION [CPUS]: runs a list of stages beside what follows; `lanes_end` waits for all. Some stages wait for
# brokers most of the time, others only compute: those get a part of the processors, so that the first don't starve. (A
# lower priority would not do: each test has a session of its own, which the kernel's autogroups treat alike.)
# UNSALT_LANES=1 runs everything in one lane.
lane() {
    if [ "${UNSALT_LANES:-}" = 1 ]; then "$1"; return; fi
    (
        trap ended INT TERM HUP
        in_lane=1
        lanes=()
        [ -z "${2:-}" ] || taskset -cp "$2" "$BASHPID" > /dev/null || true
        "$1"
    ) &
    lanes+=($!)
}

# What is left may use every processor. A lane that ended early has failed.
lanes_end() {
    local pid all
    all=$(taskset -cp $$ | sed 's/.* //')
    for pid in "${lanes[@]}"; do taskset -cp "$all" "$pid" > /dev/null 2>&1; done
    for pid in "${lanes[@]}"; do wait "$pid" || echo "lane 0 0 1 $? -" >> "$rows"; done
    lanes=()
}

# The upper half of the processors that may be used, rounded down.
half_of_cpus() {
    taskset -cp $$ | awk '{
        parts = split($NF, part, ",")
        for (i = 1; i <= parts; i++) {
            ends = split(part[i], end, "-")
            for (cpu = end[1] + 0; cpu <= end[ends] + 0; cpu++) list[++n] = cpu
        }
        for (i = n - int(n / 2) + 1; i <= n; i++) printf "%s%d", i == n - int(n / 2) + 1 ? "" : ",", list[i]
    }'
}

# The tests of a change, on both ends of the range of librdkafka; in CI also the second compiler, the demo, the path of
# a new user.
stages_test() {
    stage build "${make[@]}" -j"$(nproc)" all test-bins SUITES="unit property oom mock broker"
    lane lane_mock
    lane lane_phases
    lane lane_compute "$(half_of_cpus)"
    stage check "${make[@]}" check-units
    stage api "${make[@]}" check-api
    stage canary "${make[@]}" canary
    stage broker "${make[@]}" check-broker NOT="$phases"
    stage deb "${make[@]}" check-deb
    if [ "$set_name" = ci ]; then
        stage demo "$here/run-tests.sh" -n demo -t 300 -l "$logs/demo" "$here/demo.sh"
        stage new-user "$here/run-tests.sh" -n new-user -t 600 -l "$logs/new-user" "$here/new-user.sh"
    fi
    lanes_end
}

lane_mock() {
    stage mock "${make[@]}" check-mock
    stage mock-newest "${make[@]}" check-mock RDKAFKA=newest
    stage chaos "${make[@]}" chaos MINUTES=0.3 SEED=36105 CHECKPOINT=topic
    stage broker-newest "${make[@]}" check-broker RDKAFKA=newest T="$newest"
    stage kafka-3.5.2 "${make[@]}" check-broker KAFKA=3.5.2 T=hot_session
    [ "$set_name" != ci ] || stage clang-mock "${make[@]}" check-mock-ubsan CC=clang
    stage check-newest "${make[@]}" check-units RDKAFKA=newest
    [ "$set_name" = ci ] || return 0
    stage clang-build "${make[@]}" all test-bins CC=clang SUITES="unit property oom mock broker"
    stage clang-check "${make[@]}" check-units CC=clang
}

# Two phases, in one process and in many: these tests wait most of the time.
phases="broker/pipeline broker/workers broker/examples_workers"
lane_phases() {
    stage phases "${make[@]}" check-broker T="$phases" AS=phases
    stage phases-newest "${make[@]}" check-broker RDKAFKA=newest T=broker/pipeline.c AS=phases
}

# What rests on librdkafka's version; `make long` runs everything on both.
newest="broker/group broker/rebalance broker/restart broker/checkpoint.c broker/checkpoint_group \
broker/checkpoint_crash broker/checkpoint_operator broker/checkpoint_topic_ broker/transaction broker/callback \
broker/crash broker/hot_session broker/trouble broker/verdict_cluster broker/producer"

# Those come first whose builds the other lane needs.
lane_compute() {
    stage asan "${make[@]}" check-asan
    [ "$set_name" != ci ] || stage clang-ubsan "${make[@]}" check-ubsan CC=clang
    stage ubsan "${make[@]}" check-ubsan
    stage tsan "${make[@]}" check-tsan
    stage mock-asan "${make[@]}" check-mock-asan
    stage valgrind "${make[@]}" check-valgrind
    stage model "${make[@]}" model
    stage speed "${make[@]}" check-speed
    stage sim "${make[@]}" check-sim
}

stages_ci() {
    stages_test
}

# rounds COUNT COMMAND...: the same again and again, each time with other seeds, up to the first failure.
rounds() {
    local i count=$1
    shift
    for ((i = 1; i <= count; i++)); do
        echo "round $i of $count"
        "$@" || return 1
    done
}
export -f rounds

# What takes too long for every change: many seeds, more cases for each, the whole suite under each tool.
stages_long() {
    local again=(bash -c 'rounds "$@"' rounds) suites=broker
    [ ! -d tests/long ] || suites+=" long"
    export UNSALT_LONG=1
    stage_alarm=7200
    stage long-property env UNSALT_ITER=500 "${again[@]}" 20 "${make[@]}" run-suites RUN_NAME=property SUITES=property
    stage long-asan env UNSALT_ITER=200 "${again[@]}" 5 "${make[@]}" check-asan
    stage long-tsan "${again[@]}" 20 "${make[@]}" check-tsan
    stage long-mock "${again[@]}" 5 "${make[@]}" check-mock
    stage long-mock-new "${again[@]}" 5 "${make[@]}" check-mock RDKAFKA=newest
    stage long-mock-asan "${again[@]}" 5 "${make[@]}" check-mock-asan
    stage long-chaos "${make[@]}" chaos MINUTES=30
    stage long-chaos-new "${make[@]}" chaos MINUTES=30 RDKAFKA=newest
    stage long-valgrind "${make[@]}" check-valgrind VALGRIND_PART=/
    stage long-broker "${again[@]}" 5 "${make[@]}" check-broker BROKER_SUITES="$suites"
    stage long-broker-new "${again[@]}" 5 "${make[@]}" check-broker RDKAFKA=newest BROKER_SUITES="$suites"
}

: > "$rows"
began=$(date +%s)
case $set_name in
test | ci | long) "stages_$set_name" ;;
*) sed -n '5s/^# *//p' "$0" >&2; exit 2 ;;
esac

awk -v seconds=$(($(date +%s) - began)) '
    NR == 1 { printf "\n%-16s %8s\n", "stage", "time" }
    {
        printf "%-16s %8.1f s %7d passed %4d failed  %s\n", $1, $2 / 10, $3, $4, $5 ? "FAILED (" $5 ")" : "ok"
        passed += $3
        failed += $4
        if ($6 != "-") tests[$6] += $3 + $4
    }
    END {
        printf "%-16s %8.1f s\n", "total", seconds
        fflush()
        for (version in tests) printf "librdkafka %s: %d tests\n", version, tests[version] | "sort -V"
        close("sort -V")
        print passed + 0 " passed, " failed + 0 " failed"
        exit failed > 0 || passed == 0
    }' "$rows"
