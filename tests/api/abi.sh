#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The binary interface of the shared library is the recorded one, abi/libunsalt.abi: symbols, parameters, layouts of
# structs, values of enumerations. Any difference fails, so that a change is seen; `abi.sh write` (make abi-update)
# records the present one.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
record=abi/libunsalt.abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# dump LIBRARY OUTPUT
dump() {
    abidw --suppressions abi/public-types.suppr --exported-interfaces-only --no-corpus-path --no-comp-dir-path \
        --no-show-locs --no-elf-needed --no-architecture --type-id-style hash --out-file "$2" "$1"
}

# compare RECORD LIBRARY
compare() {
    dump "$2" "$work/now.abi" && abidiff --harmless --no-show-locs "$1" "$work/now.abi"
}

unchanged() {
    compare $record "$build/libunsalt.so" || {
        echo "The ABI differs from $record. If that is intended, run make abi-update, and say it in CHANGELOG.md."
        return 1
    }
}

# The record knows what it should, and nothing of who made it.
complete() {
    local name bad=0
    for name in unsalt_stats unsalt_message_info unsalt_event unsalt_mem unsalt_header unsalt_core_params; do
        grep -q "<class-decl name='$name' size-in-bits" $record || { echo "no layout of $name"; bad=1; }
    done
    for name in unsalt unsalt_conf unsalt_producer unsalt_core rd_kafka_message_s; do
        grep -q "<class-decl name='$name' .*is-declaration-only='yes'" $record || { echo "$name is open"; bad=1; }
    done
    ! grep -nE "='/|comp-dir" $record || bad=1
    return $bad
}

# others SOURCE: the objects of the library but that one.
others() {
    local path
    for path in lib/*.c lib/*/*.c; do [ "$path" = "$1" ] || echo "$build/${path%.c}.o"; done
}

# variant SOURCE HEADER EDIT [MAP-EDIT]: libunsalt.so with one object compiled anew, against a header that was edited.
variant() {
    local source=$1 object=$work/object.o
    rm -rf "$work/include" && cp -r include "$work/include" && sed -i "$3" "$work/include/unsalt/$2" || return 1
    sed "${4:-}" lib/libunsalt.map > "$work/map"
    if cmp -s "$work/include/unsalt/$2" "include/unsalt/$2" && cmp -s "$work/map" lib/libunsalt.map; then
        echo "the edit does not fit"
        return 1
    fi
    # Compiled where the public headers have their usual name.
    ln -sfn "$root/lib" "$work/lib"
    (cd "$work" && ${CC:-gcc} -std=c11 -g -fPIC -fvisibility=hidden -D_POSIX_C_SOURCE=200809L \
        -DUNSALT_ENABLE_CORE_API= -Iinclude -Ilib -c -o "$object" "$source") || return 1
    ${CC:-gcc} -shared -Wl,-soname,libunsalt.so.0 -Wl,--version-script,"$work/map" -o "$work/variant.so" "$object" \
        $(others "$source") -lrdkafka -lpthread -lm
}

# notices WHAT SOURCE HEADER EDIT [MAP-EDIT]: the report names it.
notices() {
    local what=$1 report
    shift
    variant "$@" || return 1
    ! report=$(compare "$work/built.abi" "$work/variant.so") && grep -q "$what" <<< "$report" ||
        { echo "$report"; return 1; }
}

# Nothing is noticed where nothing was changed.
quiet() {
    variant lib/codec/header.c wire.h '1s/$/ /' && compare "$work/built.abi" "$work/variant.so"
}

if [ "${1:-}" = write ]; then
    mkdir -p abi && dump "$build/libunsalt.so" "$work/new.abi" && cp "$work/new.abi" $record
    exit
fi
check "the library has the recorded ABI" unchanged
check "the record is complete, and names no folder" complete
dump "$build/libunsalt.so" "$work/built.abi"
check "an object compiled anew makes no difference" quiet
check "a new field is noticed" notices 'una2' lib/codec/header.c wire.h 's/^    uint64_t una;/&\n    uint64_t una2;/'
check "a new value in an enumeration is noticed" notices 'UNSALT_STATE_ODD' lib/base/names.c types.h \
    's/^    X(LATE, late,/    X(ODD, odd, 0, "odd") \\\n&/'
check "a function that went is noticed" notices 'unsalt_version_str' lib/version.c version.h '1s/$/ /' \
    '/unsalt_version_str;/d'
finish
