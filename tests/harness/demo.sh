#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The demo ends with its line and with 0; with a planted fault it fails and says why.
set -uo pipefail
. "$(dirname "$0")/tap.sh"
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT

line='^demo: records=([0-9]+) delivered=([0-9]+) out_of_order=0 duplicates_dropped=([0-9]+) gaps=1'
line+=' lost=0 conserved=yes$'

good() {
    local last
    make --no-print-directory demo > "$printed" 2>&1 < /dev/null || { tail -n 30 "$printed"; return 1; }
    last=$(tail -n 1 "$printed")
    echo "$last"
    [[ $last =~ $line ]] || return 1
    # Something was delivered, all of it, and there were duplicates to drop.
    [ "${BASH_REMATCH[1]}" -gt 0 ] && [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] && [ "${BASH_REMATCH[3]}" -gt 0 ]
}

quick() {
    [ "$seconds" -lt 20 ] || { echo "$seconds s"; return 1; }
}

faulty() {
    ! make --no-print-directory demo FAULT=1 > "$printed" 2>&1 < /dev/null || { echo "it passed"; return 1; }
    grep -E '^demo: .*out_of_order=[1-9]' "$printed" || { tail -n 30 "$printed"; return 1; }
}

make --no-print-directory -s examples > /dev/null 2>&1
began=$(date +%s)
check "the demo passes" good
seconds=$(($(date +%s) - began))
check "it takes less than 20 s" quick
check "a planted fault is noticed" faulty
finish
