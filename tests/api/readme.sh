#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The C blocks of README.md compile, and whole programs link. A block without a main() that includes something is a
# file of its own; one that doesn't is a fragment: it is compiled as the body of a function, after the lines of
# the HTML comment that stands directly before it, if there is one:
#   <!-- fragment: rd_kafka_conf_t *conf; char errstr[256]; -->
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Wall -Wextra -Werror -Iinclude)

# Writes block-N.c for each block, with its given lines in block-N.given.
split() {
    awk -v dir="$work" '
        /^<!-- fragment:.*-->$/ { given = $0; sub(/^<!-- fragment: */, "", given); sub(/ *-->$/, "", given); next }
        /^```c$/ { n++; file = dir "/block-" n ".c"; print given > (dir "/block-" n ".given"); inside = 1; next }
        /^```/ { inside = 0; given = ""; next }
        inside { print > file; next }
        NF { given = "" }' README.md
}

program() {
    ${CC:-gcc} "${flags[@]}" -o "$work/program" "$1" -L"$build" -lunsalt $(pkg-config --cflags --libs rdkafka) -lpthread
}

fragment() {
    {
        printf '#include <unsalt/unsalt.h>\n#include <librdkafka/rdkafka.h>\n'
        printf '#include <inttypes.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n'
        grep '^#include' "$1"
        printf 'int fragment(void);\n#line 1 "fragment"\nint fragment(void) {\n'
        cat "${1%.c}.given"
        grep -v '^#include' "$1"
        printf 'return 0;\n}\n'
    } > "$work/fragment.c"
    ${CC:-gcc} "${flags[@]}" -Wno-unused -fsyntax-only "$work/fragment.c"
}

unit() {
    ${CC:-gcc} "${flags[@]}" -fsyntax-only "$1"
}

some() {
    [ -n "$(ls "$work"/block-*.c 2> /dev/null)" ]
}

[ ! -f README.md ] || split
check "the README has C blocks" some
for block in "$work"/block-*.c; do
    [ -f "$block" ] || continue
    name="$(basename "$block" .c): $(grep -m 1 -v '^#include' "$block" | cut -c 1-60)"
    kind=fragment
    if grep -q '^#include' "$block"; then kind=unit; fi
    if grep -qE '^int main\(' "$block"; then kind=program; fi
    check "$name" "$kind" "$block"
done
finish
