#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs test programs and says what they did:
#
#   run-tests.sh [-n NAME] [-t SECONDS] [-l LOGDIR] [-j JOBS] [-p PROGRAMS] [-V] PROGRAM...
#
#   -n  a word for the closing line `NAME: N passed, N failed`
#   -t  alarm of one program (default 120)
#   -j  tests of one Criterion program at once
#   -p  programs at once (default 1); each one's report stays in one piece
#   -V  under valgrind
#
# A program that is linked to Criterion reports by TAP. Any other program or script counts one test for each
# line `ok - ...` or `not ok - ...` that it prints, or one in all if it prints none.
#
# The framework is not trusted: Criterion ends with 0 after a leak, after a report of a sanitizer or of valgrind, after
# an assertion that failed in a teardown, and when there was no test at all. Here each of these is a failure, and so
# are a skipped test, a missing program and a program that outlives its alarm. tests/canary proves it.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=
alarm=120
logs=${TMPDIR:-/tmp}/unsalt-tests.$$
jobs=
at_once=1
valgrind=
while getopts n:t:l:j:p:V opt; do
    case $opt in
    n) name=$OPTARG ;;
    t) alarm=$OPTARG ;;
    l) logs=$OPTARG ;;
    j) jobs=$OPTARG ;;
    p) at_once=$OPTARG ;;
    V) valgrind=1 ;;
    *) sed -n '4,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
mkdir -p "$logs"

export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1:strict_string_checks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
export LSAN_OPTIONS=suppressions=$here/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}
export TSAN_OPTIONS=suppressions=$here/tsan.supp:halt_on_error=1:second_deadlock_stack=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}

# What no log of a passing test may contain.
reports='(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|: runtime error: |Assertion Failed'
reports+='|Warning! The test .* crashed during its setup or teardown'
reports+='|^==[0-9]+== (Invalid|Conditional|ERROR SUMMARY: [1-9])'

total_passed=0
total_failed=0
child=
declare -A running=() # process -> where its report goes
trap 'kill -TERM "${!running[@]}" 2> /dev/null; wait; exit 130' INT TERM HUP

is_criterion() {
    [ "$(head -c 4 "$1" | tr -d '\0')" = $'\177ELF' ] && readelf -d "$1" | grep -q 'NEEDED.*libcriterion'
}

# run LOG PROGRAM: sets status. `timeout` ends the whole process group of the program.
run() {
    local log=$1 program=$2 cmd=()
    [ -z "$valgrind" ] || cmd+=(valgrind -q --trace-children=yes --leak-check=full --show-leak-kinds=definite,indirect
        --errors-for-leak-kinds=definite --suppressions="$here/valgrind.supp" --log-file="$log.valgrind.%p")
    cmd+=("$program")
    if [ -n "$criterion" ]; then
        cmd+=(--color=never --tap="$log.tap")
        [ -z "$jobs" ] || cmd+=(--jobs "$jobs")
    fi
    rm -f "$log".*
    timeout -k 5 "$alarm" "${cmd[@]}" > "$log" 2>&1 < /dev/null &
    child=$!
    wait "$child"
    status=$?
    child=
}

# count LOG: sets passed, failed and why from the report and the log.
count() {
    local log=$1 tap=$1 skipped
    [ -z "$criterion" ] || tap=$log.tap
    [ -f "$tap" ] || tap=/dev/null
    skipped=$(grep -cE '^ok .*# SKIP' "$tap")
    passed=$(($(grep -cE '^ok ' "$tap") - skipped))
    failed=$(grep -cE '^not ok ' "$tap")
    why=
    [ "$failed" = 0 ] || why+=", failing tests"
    [ "$skipped" = 0 ] || { failed=$((failed + skipped)); why+=", $skipped skipped"; }
    case $status in
    0) ;;
    124 | 137) why+=", still running after $alarm s" ;;
    *) why+=", exit $status" ;;
    esac
    if [ -n "$criterion" ]; then
        [ $((passed + failed)) -gt 0 ] || why+=", no test in it"
    elif [ $((passed + failed)) = 0 ] && [ "$status" = 0 ]; then
        passed=1
    fi
    ! grep -qE "$reports" "$log" || why+=", $(grep -oE "$reports" "$log" | sort -u | head -n 3 | paste -sd ' ')"
    [ -z "$(find "$logs" -path "$log.valgrind.*" -size +0 -print -quit)" ] || why+=", valgrind report"
    # Something went wrong that no single test was blamed for.
    if [ -n "$why" ] && [ "$failed" = 0 ]; then failed=1; fi
}

one() {
    local program=$1 log began took
    log=$logs/$(basename "$(dirname "$program")")-$(basename "$program").log
    began=$(date +%s%N)
    criterion=
    if [ ! -x "$program" ]; then
        passed=0 failed=1 why=", missing program"
        : > "$log"
    else
        is_criterion "$program" && criterion=1
        run "$log" "$program"
        count "$log"
    fi
    took=$((($(date +%s%N) - began) / 1000000))
    printf '%-4s %-44s %5d passed %3d failed %6d.%03d s%s\n' "$([ -z "$why" ] && echo ok || echo FAIL)" \
        "$(basename "$(dirname "$program")")/$(basename "$program")" "$passed" "$failed" \
        $((took / 1000)) $((took % 1000)) "${why:+  (${why#, })}"
    if [ -n "$why" ]; then
        [ -z "$criterion" ] || grep -E '^not ok|# SKIP' "$log.tap" 2> /dev/null
        echo "---- output of $program"
        # A flood is cut in the middle: the first lines tell the cause, the last ones the end.
        if [ "$(wc -l < "$log")" -gt 400 ]; then
            head -n 200 "$log"; echo "[...]"; tail -n 200 "$log"
        else
            cat "$log"
        fi
        find "$logs" -path "$log.valgrind.*" -size +0 -exec head -n 60 {} \;
        echo "---- end of output"
    else
        grep -ohE 'UNSALT_SEED=[0-9a-fx]+' "$log" | sort -u | head -n 1 | sed 's/^/       seed: /'
    fi
}

# start PROGRAM REPORT: one program and its report, in the background.
start() {
    (
        trap '[ -z "$child" ] || kill -TERM "$child" 2> /dev/null; exit 130' INT TERM HUP
        one "$1" > "$2"
        echo "$passed $failed" > "$2.sum"
    ) &
    running[$!]=$2
}

# collect: waits for the next program that ends. One without a sum was ended from outside.
collect() {
    local pid report passed=0 failed=1
    wait -n -p pid "${!running[@]}"
    report=${running[$pid]}
    unset "running[$pid]"
    cat "$report"
    [ ! -f "$report.sum" ] || read -r passed failed < "$report.sum"
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
}

[ $# -gt 0 ] || { set -- "${name:-tests}"; echo "no test program was named" >&2; }
rm -f "$logs"/report.*
n=0
for program; do
    [ ${#running[@]} -lt "$at_once" ] || collect
    start "$program" "$logs/report.$((n++))"
done
while [ ${#running[@]} -gt 0 ]; do collect; done
echo "${name:+$name: }$total_passed passed, $total_failed failed"
[ "$total_failed" = 0 ] && [ "$total_passed" -gt 0 ]
