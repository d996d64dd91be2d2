#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs fuzz targets one after another on all cores: run.sh BUILD SECONDS NAME...
#
# Begins with the kept inputs of tests/fuzz/corpus/NAME. What is found on the way is kept in BUILD/corpus/NAME for the
# next run, and what fails in BUILD/findings. Prints a line for each target, and ends with 0 if nothing was found.
# UNSALT_FUZZ_MERGE=1 replaces the kept inputs by the fewest of all that reach the same code.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:?a folder with fuzz targets}
seconds=${2:?seconds for each target}
shift 2
jobs=${JOBS:-$(nproc)}
findings=$build/findings
bad=0
child=
trap '[ -z "$child" ] || kill -TERM -- "-$child" 2> /dev/null; exit 130' INT TERM HUP
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
mkdir -p "$findings"

# Longest input that is tried.
length() {
    case $1 in
    core | hostile) echo 1024 ;;
    json) echo 600 ;;
    *) echo 400 ;;
    esac
}

# run NAME: as many processes as there are cores, which share what they find.
run() {
    local name=$1 corpus=$build/corpus/$1 logs=$build/logs/$1
    rm -rf "$logs"
    mkdir -p "$corpus" "$logs"
    local program
    program=$(cd "$build/fuzz" && pwd)/$name
    local seeds=$here/corpus/$name
    set -m
    (cd "$logs" && exec timeout -k 10 $((seconds + 120)) "$program" -jobs="$jobs" -workers="$jobs" \
        -max_total_time="$seconds" -max_len="$(length "$name")" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
        -artifact_prefix="$findings_at/$name-" "$corpus_at/$name" "$seeds") > "$logs/all" 2>&1 < /dev/null &
    child=$!
    set +m
    wait "$child"
    status=$?
    child=
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$logs"/fuzz-*.log |
        awk '{ n += $1 } END { print n + 0 }')
    edges=$(grep -ohE 'cov: [0-9]+' "$logs"/fuzz-*.log | awk '$2 > n { n = $2 } END { print n + 0 }')
    found=$(find "$findings" -name "$name-*" | wc -l)
}

merge() {
    local name=$1 kept=$here/corpus/$1 fresh=$build/merged/$1
    rm -rf "$fresh"
    mkdir -p "$fresh" "$kept"
    "$build/fuzz/$name" -merge=1 -use_counters=0 -max_len="$(length "$name")" "$fresh" "$kept" "$build/corpus/$name" \
        > "$build/logs/$name/merge" 2>&1 || return 1
    rm -rf "$kept"
    mv "$fresh" "$kept"
}

findings_at=$(cd "$findings" && pwd)
mkdir -p "$build/corpus"
corpus_at=$(cd "$build/corpus" && pwd)
rm -f "$findings"/*
printf '%-10s %8s %12s %8s %9s\n' target seconds executions edges findings
for name; do
    run "$name"
    printf '%-10s %8d %12d %8d %9d\n' "$name" "$seconds" "$executions" "$edges" "$found"
    if [ "$status" != 0 ] || [ "$found" != 0 ] || [ "$executions" = 0 ]; then
        bad=1
        echo "fuzz: $name ended with $status; inputs that fail are $findings/$name-*"
        grep -hE 'not so|ERROR|runtime error|SUMMARY' "$build/logs/$name"/fuzz-*.log "$build/logs/$name/all" |
            sort -u | head -n 20
    fi
    [ -z "${UNSALT_FUZZ_MERGE:-}" ] || merge "$name" || { echo "fuzz: $name can't be merged"; bad=1; }
done
exit $bad
