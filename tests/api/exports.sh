#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Declarations in the headers = version script = symbols of the shared library = global symbols of the static one.
# `exports.sh map` prints a version script for what the headers declare.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"

# What the compiler sees of the headers, one declaration a line: the name stands before the first parenthesis
# that is left when the attributes are gone.
declared() {
    local path
    for path in include/unsalt/*.h; do
        ${CC:-gcc} -E -P -Iinclude -DUNSALT_ENABLE_CORE_API "$path" || return 1
    done | tr '\n' ' ' | tr ';{}' '\n\n\n' | grep 'visibility("default")' |
        sed -E 's/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)//g' |
        sed -nE 's/^[^(]*[^A-Za-z0-9_]([A-Za-z_][A-Za-z0-9_]*) *\(.*/\1/p' | LC_ALL=C sort -u
}

mapped() {
    sed -n 's/^ *\(unsalt_[a-z0-9_]*\);.*/\1/p' lib/libunsalt.map | LC_ALL=C sort -u
}

dynamic() {
    nm -D --defined-only "$build/libunsalt.so" |
        awk '$2 ~ /[TDBRVWi]/ { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u
}

static() {
    nm -g --defined-only "$build/libunsalt.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u
}

same() {
    local differences
    differences=$(diff <($1) <($2) | sed -n "s/^</only in $1:/p; s/^>/only in $2:/p")
    echo "$differences"
    [ -z "$differences" ]
}

only_unsalt() {
    ! dynamic | grep -v '^unsalt_'
}

versioned() {
    ! nm -D --defined-only "$build/libunsalt.so" | grep ' T ' | grep -v '@@UNSALT_0\.1$'
}

soname() {
    readelf -d "$build/libunsalt.so" | grep -q 'SONAME.*\[libunsalt\.so\.0\]'
}

some() {
    [ "$(declared | wc -l)" -gt 5 ]
}

if [ "${1:-}" = map ]; then
    printf 'UNSALT_0.1 {\n    global:\n'
    declared | sed 's/.*/        &;/'
    printf '    local:\n        *;\n};\n'
    exit
fi
check "the headers declare functions" some
check "headers = version script" same declared mapped
check "headers = shared library" same declared dynamic
check "headers = static library" same declared static
check "only unsalt_* is exported" only_unsalt
check "every symbol has its version node" versioned
check "SONAME is libunsalt.so.0" soname
finish
