#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# coverage.sh BUILD: prints the share of lines of each file of lib/ that ran, from the data in BUILD.
set -euo pipefail
build=$1
find "$build/lib" -name '*.gcda' -print0 | xargs -0 -r ${GCOV:-gcov} -n 2> /dev/null | awk '
    /^File / { file = $2; gsub(/\x27/, "", file) }
    /^Lines executed:/ && file ~ /^lib\/.*\.c$/ {
        split($0, part, /[:% ]+/)
        printf "%6.2f %% of %5d  %s\n", part[3], part[5], file
        ran += part[3] * part[5] / 100
        all += part[5]
        file = ""
    }
    END { if (all) printf "%6.2f %% of %5d  all\n", 100 * ran / all, all }' | sort -k 5
