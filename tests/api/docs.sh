#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The table of configuration properties in README.md, between the lines
#   <!-- conf-table:begin -->   and   <!-- conf-table:end -->
# is the one that the library prints. `docs.sh write` puts it there. Events are listed in docs/events.md. Links to
# files of the project lead somewhere.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"

printed() {
    make --no-print-directory -s conf-table B="$build"
}

written() {
    sed -n '/^<!-- conf-table:begin -->$/,/^<!-- conf-table:end -->$/p' README.md | sed '1d;$d' | sed '/^$/d'
}

same() {
    local table
    table=$(printed | sed '/^$/d') || return 1
    [ "$(wc -l <<< "$table")" -gt 10 ] || { echo "hardly a table:"; echo "$table"; return 1; }
    diff <(written) <(echo "$table")
}

# Every event has its row, with the severity that it has, and no row is of an event that there isn't.
events() {
    diff <(sed -nE 's/^    X\([A-Z_]+, ([a-z_]+), ([0-9]), .*/\1 \2/p' include/unsalt/event.h) \
        <(sed -nE 's/^\| `([a-z_]+)` \| ([0-9]) \|.*/\1 \2/p' docs/events.md)
}

links() {
    tests/harness/links.sh *.md docs/*.md lib/*.md bench/*.md bench/*/*.md examples/*.md tests/*.md tests/*/*.md
}

if [ "${1:-}" = write ]; then
    mkdir -p "$build" && printed > "$build/conf-table.md" || exit 1
    sed -i -e "/^<!-- conf-table:begin -->\$/,/^<!-- conf-table:end -->\$/{/conf-table:begin/{p;r $build/conf-table.md
        };/conf-table:end/p;d}" README.md
    exit
fi
check "the README's table is the library's" same
check "docs/events.md lists the events" events
check "links lead somewhere" links
finish
