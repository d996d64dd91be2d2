#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The reference of the public headers: Doxygen finds no fault, everything has a comment, each function and constant has
# its place. The pages are left in docs/ of the build folder.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
out=$(dirname "$build")/docs
version=$(header_version)

# run OUTPUT INPUT: no path of the machine gets into the pages.
run() {
    rm -rf "$1"
    mkdir -p "$1"
    {
        cat docs/Doxyfile
        printf 'OUTPUT_DIRECTORY=%s\nPROJECT_NUMBER=%s\nINPUT=%s\n' "$1" "$version" "$2"
    } > "$1/Doxyfile"
    doxygen "$1/Doxyfile" > "$1/log" 2>&1 || { sed "s|$root/||" "$1/log"; return 1; }
}

built() {
    run "$out" "include/unsalt docs/reference.md"
}

functions() {
    local name bad=0
    for name in $(sed -n 's/^ *\(unsalt_[a-z0-9_]*\);.*/\1/p' lib/libunsalt.map); do
        grep -rqsE ">$name</(a|b)>" "$out/html" --include='*_8h.html' || { echo "$name has no place"; bad=1; }
    done
    return $bad
}

constants() {
    grep -qs 'UNSALT_STATE_HELD' "$out/html/types_8h.html" && grep -qs 'its turn has not come' "$out/html/types_8h.html"
}

pathless() {
    [ -f "$out/html/index.html" ] && ! grep -rlF "$root" "$out/html"
}

# A field without a comment must be seen.
notices() {
    local work
    work=$(mktemp -d)
    mkdir -p "$work/unsalt"
    sed 's|^    uint64_t una;.*|&\n    int bare;|' include/unsalt/wire.h > "$work/unsalt/wire.h"
    ! cmp -s include/unsalt/wire.h "$work/unsalt/wire.h" && ! run "$work/out" "$work/unsalt" > "$work/said" &&
        grep -q 'Member bare .* is not documented' "$work/said" || { cat "$work/said"; return 1; }
    rm -rf "$work"
}

check "Doxygen finds no fault in the public headers" built
check "every exported function has its place" functions
check "constants made from lists have their texts" constants
check "the pages name no folder" pathless
check "a field without a comment is noticed" notices
finish
