#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check.sh PROGRAM FIGURES [record]: instructions per record of the core's paths, counted by callgrind, against those in
# the file FIGURES. More than `tolerance` percent above is a failure; so much below is told, so that the gain is
# recorded. With `record` the file is written. The compiler decides too: with another one nothing is compared.
set -uo pipefail
program=$1
figures=$2
tolerance=3
only=${UNSALT_SPEED_ONLY:-} # names of paths, if not all
compiler=$(${CC:-gcc} --version | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! command -v valgrind > /dev/null; then
    echo "speed: SKIPPED, valgrind isn't installed: no path was compared"
    exit 0
fi

# instructions NAME: in measured(). The C library picks its string functions by the processor: always the same ones.
instructions() {
    GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX2_Usable,-ERMS,-FSRM \
        valgrind -q --tool=callgrind --toggle-collect=measured --callgrind-out-file="$work/$1" "$program" "$1" \
        > "$work/$1.log" 2>&1 || { cat "$work/$1.log" >&2; return 1; }
    sed -n 's/^\(summary\|totals\): \([0-9]*\).*/\2/p' "$work/$1" | tail -n 1
}

measure() {
    local name records total
    while read -r name records; do
        [ -z "$only" ] || [[ " $only " == *" $name "* ]] || continue
        total=$(instructions "$name") || return 1
        awk -v name="$name" -v total="$total" -v records="$records" \
            'BEGIN { printf "%-18s %.1f\n", name, total / records }'
    done < <("$program")
}

measure > "$work/now" || { echo "not ok - speed: a path could not be taken"; echo "0 passed, 1 failed"; exit 1; }
if [ "${3:-}" = record ]; then
    {
        echo "# Instructions per record of the core's paths: tests/speed/check.sh. Written by make speed-record."
        echo "# compiler: $compiler"
        cat "$work/now"
    } > "$figures"
    cat "$figures"
    exit 0
fi

recorded=$(sed -n 's/^# compiler: //p' "$figures")
if [ "$compiler" != "$recorded" ]; then
    echo "speed: SKIPPED, figures are of another compiler: no path was compared"
    echo "speed: recorded with: $recorded"
    echo "speed: here:          $compiler"
    cat "$work/now"
    exit 0
fi
awk -v tolerance="$tolerance" '
    /^#/ { next }
    NR == FNR { was[$1] = $2; next }
    {
        seen[$1] = 1
        if (!($1 in was)) {
            printf "not ok - %s: %s instructions per record, and no figure is committed: make speed-record\n", $1, $2
            failed++
        } else if ($2 > was[$1] * (1 + tolerance / 100)) {
            printf "not ok - %s: %s instructions per record, committed %s (%+.1f %%). ", $1, $2, was[$1],
                ($2 / was[$1] - 1) * 100
            print "If that is meant: make speed-record"
            failed++
        } else {
            printf "ok - %-18s %8s, committed %s%s\n", $1, $2, was[$1],
                $2 < was[$1] * (1 - tolerance / 100) ? ": a gain, record it: make speed-record" : ""
            passed++
        }
    }
    END {
        for (name in was) if (!(name in seen)) {
            printf "not ok - %s: committed, but there is no such path\n", name
            failed++
        }
        printf "%d passed, %d failed\n", passed, failed
        exit failed > 0 || passed == 0
    }' "$figures" "$work/now"
