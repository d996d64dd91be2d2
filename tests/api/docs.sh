#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The table of configuration properties in README.md, between the lines
#   <!-- conf-table:begin -->   and   <!-- conf-table:end -->
# is the one that the library prints. `docs.sh write` puts it there. Links to files of the project lead somewhere.
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

links() {
    local file target bad=0
    for file in *.md docs/*.md tests/*.md lib/*.md; do
        [ -f "$file" ] || continue
        while read -r target; do
            [ -e "$(dirname "$file")/$target" ] || { echo "$file: no $target"; bad=1; }
        done < <(grep -oE '\]\([^)#:]+[#)]' "$file" | sed -E 's/^\]\(//; s/[#)]$//')
    done
    return $bad
}

if [ "${1:-}" = write ]; then
    mkdir -p "$build" && printed > "$build/conf-table.md" || exit 1
    sed -i -e "/^<!-- conf-table:begin -->\$/,/^<!-- conf-table:end -->\$/{/conf-table:begin/{p;r $build/conf-table.md
        };/conf-table:end/p;d}" README.md
    exit
fi
check "the README's table is the library's" same
check "links lead somewhere" links
finish
