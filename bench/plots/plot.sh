#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# plot.sh DIR RESULTS.jsonl...: draws what is found in the results, with gnuplot, as PNG files in DIR:
#   latency.png       percentile curves of the courses of bench/latency.c
#   read-latency.png  the part of them that is the library's
#   workers.png       records/s of the pipeline and of a pool without order, by the number of workers
#   lanes.png         processor time per record of the core, by the number of lanes
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 2 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dir=$1
shift
mkdir -p "$dir"
python3 "$here/data.py" "$work" "$(cd "$dir" && pwd)" "$@"
for script in "$work"/*.gp; do
    [ -e "$script" ] || { echo "plot: nothing to draw in $*" >&2; exit 1; }
    gnuplot "$script"
done
ls "$dir"/*.png >&2
