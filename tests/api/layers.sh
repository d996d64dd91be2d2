#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# base < codec < core < kafka: who includes whom (by the text), and what the objects of each layer call (by their
# undefined symbols). The second holds whatever the text says. Another root and build may be given: layers.sh ROOT BUILD
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
if [ $# = 2 ]; then
    cd "$1" || exit 2
    build=$2
fi

layers=(base codec core kafka)
# Pure functions of the C library: no memory of their own, no clock, no I/O, no state.
pure='mem(cpy|move|set|cmp|chr|rchr)|str(len|nlen|cmp|ncmp|chr|rchr|spn|cspn|str|pbrk)|snprintf|qsort|bsearch'
pure+='|__assert_fail'
pure+='|__(memcpy|memmove|memset|snprintf)_chk|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_'
# Instrumentation of the other configurations.
pure+='|__(asan|ubsan|tsan|gcov|llvm)_.*|__sanitizer_.*'

rank() {
    local i
    for i in "${!layers[@]}"; do [ "${layers[$i]}" = "$1" ] && { echo "$i"; return; }; done
    echo -1
}

# Includes of a layer: own and lower layers, public headers, the standard library. librdkafka, the clock and threads
# belong to kafka alone.
includes() {
    local layer=$1 own file target bad=0
    own=$(rank "$layer")
    while IFS=: read -r file target; do
        case $target in
        ['"<']base/* | ['"<']codec/* | ['"<']core/* | ['"<']kafka/*)
            [ "$(rank "$(cut -c2- <<< "${target%%/*}")")" -le "$own" ] && continue ;;
        '"'*) continue ;;
        '<unsalt/'*)
            [ "$layer" = kafka ] && continue
            case $target in
            '<unsalt/types.h>' | '<unsalt/core.h>' | '<unsalt/wire.h>' | '<unsalt/version.h>') continue ;;
            esac ;;
        '<assert.h>' | '<errno.h>' | '<inttypes.h>' | '<limits.h>' | '<stdalign.h>' | '<stdarg.h>' | \
            '<stdbool.h>' | '<stddef.h>' | '<stdint.h>' | '<stdio.h>' | '<string.h>') continue ;;
        '<uthash.h>' | '<jsmn.h>' | '<xxhash.h>') continue ;;
        '<stdlib.h>' | '<sys/mman.h>') [ "$file" = lib/base/mem_default.c ] && continue ;;&
        *) [ "$layer" = kafka ] && continue ;;
        esac
        echo "$file includes $target"
        bad=1
    done < <(grep -HoE '^ *# *include *["<][^">]*[">]' lib/"$layer"/*.[ch] | sed -E 's/: *# *include */:/')
    return $bad
}

# defined LAYER: what the layer and those below it define.
defined() {
    local l
    for l in "${layers[@]}"; do
        nm -g --defined-only "$build"/lib/"$l"/*.o 2> /dev/null | awk 'NF == 3 { print $3 }'
        [ "$l" != "$1" ] || break
    done | sort -u
}

calls() {
    local layer=$1 source object allowed bad=0
    for source in lib/"$layer"/*.c; do
        object=$build/${source%.c}.o
        [ -f "$object" ] || { echo "no object of $source"; return 1; }
        allowed=$pure
        [ "$(basename "$object")" != mem_default.o ] || allowed+='|malloc|calloc|realloc|free|madvise'
        comm -23 <(nm -u "$object" | awk '{ print $2 }' | grep -vE "^($allowed)$" | sort -u) <(defined "$layer") |
            sed "s|^|$source calls |" | grep . && bad=1
    done
    return $bad
}

# One file reads the clock.
clock() {
    local source bad=0
    for source in lib/*/*.c; do
        nm -u "$build/${source%.c}.o" | grep -qE ' (clock_gettime|gettimeofday|time|timespec_get)$' || continue
        [ "$source" = lib/kafka/clock.c ] || { echo "$source reads the clock"; bad=1; }
    done
    return $bad
}

# One file asks the kernel for chance.
chance() {
    local source bad=0
    for source in lib/*/*.c; do
        nm -u "$build/${source%.c}.o" | grep -qE ' (getrandom|getentropy|arc4random.*|s?rand(om)?(_r)?)$' || continue
        [ "$source" = lib/kafka/chance.c ] || { echo "$source asks for chance"; bad=1; }
    done
    return $bad
}

for layer in "${layers[@]}"; do
    check "includes of lib/$layer" includes "$layer"
    [ "$layer" = kafka ] || check "calls of lib/$layer" calls "$layer"
done
check "only lib/kafka/clock.c reads the clock" clock
check "only lib/kafka/chance.c asks for chance" chance
finish
