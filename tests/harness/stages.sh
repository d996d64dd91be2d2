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
rows=()
child=
passed=0
failed=0
declare -A by_version
trap '[ -z "$child" ] || kill -TERM "$child" 2> /dev/null; wait; exit 130' INT TERM HUP

# stage NAME COMMAND...
stage() {
    local name=$1 log=$logs/$1.log status=0 began took p f version
    shift
    [ "$only" = "  " ] || [[ $only == *" $name "* ]] || return 0
    printf '\n==== %s: %s\n' "$name" "$*"
    began=$(date +%s%N)
    timeout -k 30 "$stage_alarm" "$@" > >(tee "$log") 2>&1 < /dev/null &
    child=$!
    wait "$child" || status=$?
    child=
    took=$((($(date +%s%N) - began) / 100000000))
    read -r p f < <(sed -nE 's/^([^ ]+: )?([0-9]+) passed, ([0-9]+) failed$/\2 \3/p' "$log" |
        awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }')
    # A failure that no test counted is one all the same.
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$status" = 0 ] && [ "$f" != 0 ]; then status=1; fi
    passed=$((passed + p))
    failed=$((failed + f))
    version=$(sed -n 's/^librdkafka: //p' "$log" | tail -n 1)
    if [ -n "$version" ]; then by_version[$version]=$((${by_version[$version]:-0} + p + f)); fi
    rows+=("$(printf '%-16s %6d.%d s %7d passed %4d failed  %s' "$name" $((took / 10)) $((took % 10)) "$p" "$f" \
        "$([ "$status" = 0 ] && echo ok || echo "FAILED ($status)")")")
}

# The tests of a change, on both ends of the range of librdkafka.
stages_test() {
    stage build "${make[@]}" -j"$(nproc)" all test-bins SUITES="unit property oom mock broker"
    stage check "${make[@]}" check-units
    stage api "${make[@]}" check-api
    stage canary "${make[@]}" canary
    stage mock "${make[@]}" check-mock
    stage broker "${make[@]}" check-broker
    stage check-newest "${make[@]}" check-units RDKAFKA=newest
    stage mock-newest "${make[@]}" check-mock RDKAFKA=newest
    stage broker-newest "${make[@]}" check-broker RDKAFKA=newest
    stage kafka-3.5.2 "${make[@]}" check-broker KAFKA=3.5.2 T=hot_session
    stage asan "${make[@]}" check-asan
    stage ubsan "${make[@]}" check-ubsan
    stage mock-asan "${make[@]}" check-mock-asan
    stage tsan "${make[@]}" check-tsan
    stage valgrind "${make[@]}" check-valgrind
}

# What CI adds: the second compiler, the demo, the path of a new user.
stages_ci() {
    stages_test
    stage demo "$here/run-tests.sh" -n demo -t 300 -l "$logs/demo" "$here/demo.sh"
    stage clang-build "${make[@]}" -j"$(nproc)" all test-bins CC=clang SUITES="unit property oom mock broker"
    stage clang-check "${make[@]}" check-units CC=clang
    stage clang-ubsan "${make[@]}" check-ubsan CC=clang
    stage clang-mock "${make[@]}" check-mock-ubsan CC=clang
    stage new-user "$here/run-tests.sh" -n new-user -t 600 -l "$logs/new-user" "$here/new-user.sh"
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
    stage long-valgrind "${make[@]}" check-valgrind VALGRIND_PART=/
    stage long-broker "${again[@]}" 5 "${make[@]}" check-broker BROKER_SUITES="$suites"
    stage long-broker-new "${again[@]}" 5 "${make[@]}" check-broker RDKAFKA=newest BROKER_SUITES="$suites"
}

began=$(date +%s)
case $set_name in
test | ci | long) "stages_$set_name" ;;
*) sed -n '5s/^# *//p' "$0" >&2; exit 2 ;;
esac

printf '\n%-16s %8s\n' stage time
printf '%s\n' "${rows[@]}"
printf '%-16s %6d.0 s\n' total $(($(date +%s) - began))
for version in "${!by_version[@]}"; do echo "librdkafka $version: ${by_version[$version]} tests"; done | sort -V
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
