#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The vectors of the two pages of formats against readers and writers in Python that know nothing else. The C library is
# held against the same tables by tests/unit/test_wire_page.c and test_checkpoint_page.c.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
page=docs/wire-format.md
checkpoint=docs/checkpoint-format.md

python() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONUTF8=1 PYTHONPATH=tests/field/python python3 "$@"
}

hashes() {
    python - tests/field/murmur2.txt <<'P'
import sys
import unsalt_header as wire
rows = [line.split() for line in open(sys.argv[1])]
for key, signed, positive in rows:
    hash = wire.murmur2(b"" if key == "-" else bytes.fromhex(key))
    assert hash == int(positive) == int(signed) & 0x7FFFFFFF, key
assert len(rows) > 300
P
}

# The page's table of flags is that of the public header.
flags() {
    local stated defined
    stated=$(sed -nE 's/^\| (0x[0-9a-f]{2}) \| ([a-z]+) \|.*/\1 \2/p' $page)
    defined=$(sed -nE 's/^ *UNSALT_F_([A-Z]+) = (0x[0-9a-f]+),.*/\2 \L\1/p' include/unsalt/types.h)
    [ -n "$stated" ] && diff <(echo "$stated") <(echo "$defined")
}

# Constants of the checkpoint format, as the page says them and as wire.h does.
constants() {
    local name value bad=0
    while read -r name value; do
        grep -qF -- "$value" $checkpoint || { echo "$name is not $value"; bad=1; }
    done < <(awk '
        $2 == "UNSALT_CHECKPOINT_SESSION" { print $2, $3 " (`S`)" }
        $2 == "UNSALT_CHECKPOINT_PARTITION" { print $2, $3 " (`P`)" }
        $2 == "UNSALT_CHECKPOINT_TRUNCATED" { print $2, $3 " | truncated" }
        $2 == "UNSALT_CHECKPOINT_ERA" { print $2, $3 " | era" }
        $2 == "UNSALT_CHECKPOINT_VERSION" { print $2, "version | " $3 }
        $2 == "UNSALT_CHECKPOINT_KEY_MAX" { print $2, $3 " bytes" }' include/unsalt/wire.h)
    [ "$(grep -c 'define UNSALT_CHECKPOINT_' include/unsalt/wire.h)" = 6 ] && return $bad
}

# Records as kcat writes them: three whose output the page shows, one that is replaced, one
# removed.
dump() {
    python - <<'P'
import sys
from unsalt_checkpoint import Partition, Session, write

def record(offset, key, value):
    sizes = b"0 %d %d %d\n" % (offset, len(key), -1 if value is None else len(value))
    sys.stdout.buffer.write(sizes + key + (value or b"") + b"\n")

record(38, *write(Session(b"orders", b"order-16", 0, 88, 0)))
record(39, *write(Session(b"orders", b"order-17", 0, 4, 0)))
record(40, write(Session(b"orders", b"gone", 0, 4, 0))[0], None)
record(41, *write(Partition(b"orders", 3, 1207, ((1209, 1211), (1215, 1215)), 0, 1)))
record(42, *write(Session(b"orders", b"order-17", 0, 5, 0, ((6, 6), (9, 10)), ((7, 8),), 1)))
P
}

shown() {
    diff <(sed -nE 's/^    ([0-9]+\/[0-9]+: )/\1/p' $checkpoint) \
        <(dump | python tests/field/python/show_checkpoint.py 2> "$build/checkpoint-counts") &&
        diff <(echo "1 sessions, 1 partitions, 1 void, 1 removed, 0 unreadable") "$build/checkpoint-counts"
}

# A broken entry is named and makes the script fail.
broken() {
    local text
    text=$(dump | sed 's/^0 42 16/0 42 17/' | python tests/field/python/show_checkpoint.py 2>&1) && return 1
    text=$({ dump; printf '0 43 2 3\nS\001abc\n0 44 16 5\nS\006ordersorder-17\001abcd\n'; } |
        python tests/field/python/show_checkpoint.py 2> /dev/null) && return 1
    grep -qx '0/43: KEY: .*' <<< "$text" && grep -qx '0/44: CHECKSUM: .*' <<< "$text"
}

# Links to headings of a page, and paths of files that it names.
links() {
    local target headings bad=0
    headings=$(sed -nE 's/^#+ //p' "$1" | tr 'A-Z ' 'a-z-' | tr -d '`,')
    for target in $(grep -oE '\]\(#[^)]*\)' "$1" | tr -d '](#)'); do
        grep -qxF -- "$target" <<< "$headings" || { echo "no heading $target"; bad=1; }
    done
    for target in $(grep -oE '`tests/[^`]*`' "$1" | tr -d '`'); do
        [ -e "$target" ] || { echo "no file $target"; bad=1; }
    done
    return $bad
}

python tests/field/python/check_page.py $page || tap_failed=$((tap_failed + 1))
python tests/field/python/check_checkpoint_page.py $checkpoint || tap_failed=$((tap_failed + 1))
check "the hashes of the Java client" hashes
check "flags of the page are those of types.h" flags
check "constants of the checkpoint format are those of wire.h" constants
check "what a script prints of a checkpoint is what the page shows" shown
check "broken entries are named and make that script fail" broken
check "links and paths of the page lead somewhere" links $page
check "those of the checkpoint format too" links $checkpoint
finish
