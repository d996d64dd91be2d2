#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The benchmarks still run: all of them are built, and those that need no broker run in a tiny size. What they print is
# JSON of the one form, and has the figures that the lists of bench/tables name. The tables in README.md and
# bench/README.md are what the committed results say.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# tiny "NAME=value..." PART...
tiny() {
    env UNSALT_BENCH_TINY=1 FORMAT=json FULL='' UNSALT_BENCH_JSON='' UNSALT_BENCH_DIR="$build/bench" \
        UNSALT_BENCH_VERSION="$build/harness/rdkafka-version" $1 bash bench/run.sh "${@:2}"
}

# Two lines or more: what describes the machine, and figures. A median lies between the ends; what is compared has a
# ratio, and what isn't has none.
lines() {
    local commit=()
    [ ! -e .git ] || mapfile -t commit < <(git rev-parse --short HEAD 2> /dev/null)
    python3 - "$1" "${commit[@]}" <<'END'
import json
import math
import sys

TEXT, NUMBERS = ("bench", "metric", "unit"), ("value", "min", "max")
OTHERS = ("other", "other_min", "other_max", "ratio", "ratio_min", "ratio_max")
with open(sys.argv[1]) as file:
    rows = [json.loads(line) for line in file]
machine = rows.pop(0)
for k in ("machine", "processors", "memory_gib", "kernel", "compiler", "librdkafka", "kafka", "full", "date"):
    assert k in machine, k
if len(sys.argv) > 2:
    assert machine["commit"] in (sys.argv[2], sys.argv[2] + "-dirty"), machine
assert rows, "no figures"
for row in rows:
    assert all(isinstance(row[k], str) and row[k] for k in TEXT), row
    assert all(math.isfinite(row[k]) for k in NUMBERS), row
    assert row["min"] <= row["value"] <= row["max"] and row["runs"] >= 1, row
    assert row["tiny"] is True, row
    if row["against"] is None:
        assert row["other"] is None and row["ratio"] is None, row
    else:
        assert all(math.isfinite(row[k]) for k in OTHERS), row
        assert row["other_min"] <= row["other"] <= row["other_max"], row
END
}

# For whoever asks for no JSON; a file has it all the same.
table() {
    tiny "FORMAT= UNSALT_BENCH_JSON=$work/beside.jsonl" lanes > "$work/table" || return 1
    grep -qE '^core 1x1 +time_per_record +ns +[0-9.]+ ' "$work/table" || { head "$work/table"; return 1; }
    tail -n 1 "$work/beside.jsonl" | grep '^{"part":"lanes","full":0,"seconds":[0-9]*}$' || return 1
    sed -i '$d' "$work/beside.jsonl" && lines "$work/beside.jsonl"
}

unknown_part() {
    ! tiny "" no-such-part
}

# A part that was done is left out; the same part of the other matrix isn't.
resumed() {
    local file=$work/results.jsonl
    echo '{"part":"lanes","full":1,"seconds":1}' > "$file"
    tiny "FULL=1 UNSALT_BENCH_JSON=$file" lanes > "$work/out" || return 1
    [ ! -s "$work/out" ] && [ "$(wc -l < "$file")" = 1 ] || { echo "it was done again"; return 1; }
    tiny "UNSALT_BENCH_JSON=$file" lanes > "$work/out" || return 1
    [ -s "$work/out" ] || { echo "the other matrix was left out"; return 1; }
}

# What was measured by the whole matrix counts, whatever stands in a file with a later name; among equals the last one.
precedence() {
    local line='"bench":"b","metric":"m","against":null' i
    for i in 1 2; do echo "{$line,\"value\":$i}"; done > "$work/later"
    { echo '{"machine":"m","full":1}'; cat "$work/later"; } > "$work/a.jsonl"
    { echo '{"machine":"m","full":0}'; echo "{$line,\"value\":3}"; } > "$work/b.jsonl"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench/tables python3 - "$work/a.jsonl" "$work/b.jsonl" <<'END'
import sys
import tables

a, b = sys.argv[1:]
assert [row["value"] for row in tables.read_results([a, b])[0].values()] == [2]
assert [row["value"] for row in tables.read_results([b, a])[0].values()] == [2]
assert [row["value"] for row in tables.read_results([b])[0].values()] == [3]
END
}

# Where figures come from: machine, commit, and the parts of the matrix that were done there, as far as they count.
origin() {
    local machine='"machine":"m","processors":1,"memory_gib":1,"kernel":"k","compiler":"c","librdkafka":"r","date":"d"'
    local line='"bench":"b","metric":"m","against":null'
    {
        echo "{$machine,\"kafka\":\"none\",\"full\":1,\"commit\":\"0a1b2c3\"}"
        echo "{$line,\"value\":1}"
        echo '{"part":"core","full":1,"seconds":1}'
        echo "{$machine,\"kafka\":\"4\",\"full\":1}"
        echo "{$line,\"value\":2}"
        echo '{"part":"peers","full":1,"seconds":1}'
    } > "$work/from.jsonl"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench/tables python3 - "$work/from.jsonl" <<'END'
import json
import sys
import tables

figures, others = tables.read_results(sys.argv[1:])
lines = " ".join(" ".join(tables.machines_of(figures, others)).split())
assert "of the whole matrix: `peers`" in lines and "commit" not in lines and "core" not in lines, lines
with open(sys.argv[1]) as file:
    rows = [json.loads(line) for line in file]
rows[4]["bench"] = "c"
with open(sys.argv[1], "w") as file:
    file.writelines(json.dumps(row) + "\n" for row in rows)
lines = " ".join(" ".join(tables.machines_of(*tables.read_results(sys.argv[1:]))).split())
assert "commit 0a1b2c3; of the whole matrix: `core`" in lines and "`peers`" in lines, lines
assert tables.without_empty(["| a | b | c |", "|---|---|---|", "| 1 | - | 2 |", "| 3 | - | - |"]) == [
    "| a | c |", "|---|---|", "| 1 | 2 |", "| 3 | - |"]
END
}

# One's own results, judged: what was measured has a verdict, and the row that it is of by its name.
judged() {
    sed 's/"tiny":true,//' "$work/core.jsonl" > "$work/own.jsonl"
    python3 bench/tables/tables.py targets "$work/own.jsonl" > "$work/judged" || return 1
    grep -qE '^\| 1,000,000 held, released in lane order.* ns.*; at `burst in lane order` `release` \| .*met' \
        "$work/judged" || { head "$work/judged"; return 1; }
    grep -q 'not measured' "$work/judged"
}

check "every benchmark without a broker runs" eval 'tiny "" core > "$work/core.jsonl"'
check "they print JSON lines" lines "$work/core.jsonl"
check "the figures that tables name are measured" python3 bench/tables/tables.py names "$work/core.jsonl"
check "the whole matrix of lanes runs" eval 'tiny FULL=1 lanes > "$work/lanes.jsonl"'
check "it prints JSON lines" lines "$work/lanes.jsonl"
check "a table, and JSON lines in a file beside it" table
check "a part that was done is left out" resumed
check "a part that there isn't is refused" unknown_part
check "the whole matrix counts before a reduced one" precedence
check "tables say where figures come from" origin
check "targets are judged for one's own results" judged
check "tables are what the committed results say" python3 bench/tables/tables.py check
finish
