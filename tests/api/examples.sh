#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The examples are short, their table is complete, and the README shows the first one as it is. That they work is
# shown by tests/broker/examples.c.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
list=examples/README.md

# The first C block of the README is the first example, less the licence and the comment.
shown() {
    diff <(awk '/^```/ { inside = /^```c$/ && !n++; next } inside' README.md) <(sed 1,2d examples/01_minimal_consumer.c)
}

listed() {
    diff <(grep -oE '^\| `[0-9a-z_]+\.c`' "$list" | tr -d '|` ') <(cd examples && ls ./*.c | sed 's|^\./||')
}

# The arguments in the table are those of the program's usage line.
usages() {
    local file wanted bad=0
    for file in examples/*.c; do
        wanted=$(sed -nE 's/.*"usage: %s (.*)\\n".*/\1/p' "$file" | sed 's/ < LINES$//')
        [ -z "$wanted" ] || grep -F "$(basename "$file")" "$list" | grep -qF "\`$wanted\` |" || {
            echo "$file: usage $wanted"
            bad=1
        }
    done
    return $bad
}

short() {
    ! wc -l examples/*.[ch] | awk '$2 != "total" && $1 > 160 { print $2 ": " $1 " lines"; long = 1 } END { exit !long }'
}

check "the README shows 01_minimal_consumer.c" shown
check "$list lists the examples" listed
check "$list has their arguments" usages
check "no example is longer than 160 lines" short
finish
