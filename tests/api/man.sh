#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The manual pages: mandoc finds no fault, the keys are those that the library prints (`man.sh write` puts them there),
# each function that they name exists, the programs compile.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
keys_page=docs/man/unsalt-conf.7

# One page refers to the other, and neither is installed here.
lint() {
    ! mandoc -Tlint -W all "$1" | grep -v 'STYLE: referenced manual not found: Xr unsalt'
}

printed() {
    set -o pipefail
    make --no-print-directory -s conf-table B="$build" | LC_ALL=C awk -f docs/man/conf-keys.awk
}

written() {
    sed -n '/^\.\\" conf-table:begin$/,/^\.\\" conf-table:end$/p' $keys_page | sed '1d;$d'
}

same() {
    printed > "$work/keys" || return 1
    [ "$(grep -c '^\.It Cm' "$work/keys")" -gt 10 ] || { echo "hardly a list:"; cat "$work/keys"; return 1; }
    diff <(written) "$work/keys"
}

functions() {
    local name bad=0
    for name in $(sed -nE 's/^\.F[no] (unsalt_[a-z_]+).*/\1/p' docs/man/*.[1-8] | sort -u); do
        grep -q "^ *$name;" lib/libunsalt.map || { echo "no function $name"; bad=1; }
    done
    return $bad
}

programs() {
    local page source
    for page in docs/man/*.[1-8]; do
        sed -n '/^\.Bd -literal$/,/^\.Ed$/p' "$page" | sed '/^\.[BE]d/d; s/\\e/\\/g' > "$work/program.c"
        [ -s "$work/program.c" ] || continue
        source=1
        ${CC:-gcc} -std=c11 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/program.c" || return 1
    done
    [ -n "${source:-}" ]
}

if [ "${1:-}" = write ]; then
    printed > "$work/keys" || exit 1
    sed -i -e "/^\.\\\\\" conf-table:begin\$/,/^\.\\\\\" conf-table:end\$/{/conf-table:begin/{p;r $work/keys
        };/conf-table:end/p;d}" $keys_page
    exit
fi
for page in docs/man/*.[1-8]; do check "mandoc finds no fault in $(basename "$page")" lint "$page"; done
check "the keys of unsalt-conf(7) are the library's" same
check "the functions that the pages name exist" functions
check "the programs of the pages compile" programs
finish
