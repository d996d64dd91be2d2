#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The guard of speed must see a slowdown: a few instructions more for each record.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
out=${O:-build}
make --no-print-directory -s speed-paths O="$out" || { echo "not ok - it does not build"; exit 1; }
export UNSALT_SPEED_ONLY="in_order frontier"
program=$out/speed/release/speed-paths
figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
CC=gcc tests/speed/check.sh "$program" "$figures" record > /dev/null
if CC=gcc tests/speed/check.sh "$program" "$figures" > /dev/null; then
    echo "ok - the same program passes"
else
    echo "not ok - the same program must pass"
fi
text=$(CC=gcc UNSALT_SPEED_SLOW=1 tests/speed/check.sh "$program" "$figures") && echo "not ok - a slowdown must fail"
if grep -q '^not ok - in_order: .* committed .*make speed-record' <<< "$text"; then
    echo "ok - a slowdown fails and is named"
else
    echo "not ok - a slowdown must be named"
fi
