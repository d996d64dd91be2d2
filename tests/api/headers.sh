#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each public header compiles alone, twice in a row, as C11 and as C++17, with and without the experimental part.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"

alone() {
    local header=$1 language=$2 compiler=$3 standard=$4
    shift 4
    printf '#include <unsalt/%s>\n#include <unsalt/%s>\ntypedef int not_empty;\n' "$header" "$header" |
        $compiler -x "$language" -std="$standard" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude "$@" -
}

for path in include/unsalt/*.h; do
    header=$(basename "$path")
    for macro in -UUNSALT_ENABLE_CORE_API -DUNSALT_ENABLE_CORE_API; do
        check "$header C11 $macro" alone "$header" c "${CC:-gcc}" c11 -Wstrict-prototypes "$macro"
        check "$header C++17 $macro" alone "$header" c++ "${CXX:-g++}" c++17 "$macro"
    done
done
finish
