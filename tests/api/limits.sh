#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Functions of at most 60 lines, files of 600, lines of 120 columns, blocks four deep; the licence in the first line;
# words that have no place. Another root may be given: limits.sh ROOT
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
awk_program=$root/tests/harness/limits.awk
[ $# = 0 ] || cd "$1" || exit 2

files() {
    { find lib include tests examples bench packaging debian docs .ci Makefile -type f "$@" 2> /dev/null || true; } |
        sort
}

limits() {
    files -name '*.[ch]' | xargs -r awk -v columns=120 -v lines=600 -v body=60 -v depth=4 -f "$awk_program"
}

scripts() {
    files \( -name '*.sh' -o -name '*.awk' -o -name '*.mk' -o -name Makefile -o -name run -o -path debian/rules \) |
        xargs -r awk '
        length($0) > 120 { printf "%s:%d: line of %d columns\n", FILENAME, FNR, length($0); bad = 1 }
        FNR == 601 { printf "%s: more than 600 lines\n", FILENAME; bad = 1 }
        END { exit bad }'
}

licence() {
    files \( -name '*.[ch]' -o -name '*.sh' -o -name '*.awk' \) | xargs -r awk '
        FNR == 1 { seen = 0 }
        FNR <= 2 && /SPDX-License-Identifier: BSD-2-Clause/ { seen = 1 }
        FNR == 2 && !seen { print FILENAME ": no licence in the first two lines"; bad = 1 }
        END { exit bad }'
}

blanks() {
    ! files \( -name '*.[ch]' -o -name '*.sh' -o -name '*.awk' -o -name Makefile \) |
        xargs -r grep -nE '[[:blank:]]+$'
}

tabs() {
    ! files -name '*.[ch]' | xargs -r grep -nP '\t'
}

# A test that calls exit(0) counts as passed.
no_exit_in_tests() {
    ! grep -lE '#include <criterion/' tests/*/*.c 2> /dev/null | xargs -r grep -nE '(^|[^_A-Za-z0-9])exit\('
}

# Every Criterion test says how long it may take.
timeouts() {
    local bad=0 file
    for file in $(grep -lE '#include <criterion/' tests/*/*.c 2> /dev/null | grep -v '^tests/canary/'); do
        grep -q 'TestSuite(.*timeout' "$file" && continue
        tr '\n' ' ' < "$file" | grep -oE '\b(Test|ParameterizedTest)\([^{]*\{' | grep -v 'timeout' |
            sed "s|^|$file: |" && bad=1
    done
    return $bad
}

words() {
    ! files -type f | grep -v '^tests/api/limits.sh$' | xargs -r grep -InE '\b(TODO|FIXME|XXX)\b'
}

check "lengths and depths of C code" limits
check "lengths of scripts" scripts
check "licence lines" licence
check "no blanks at the ends of lines" blanks
check "no tabs in C code" tabs
check "no exit() in tests" no_exit_in_tests
check "every test has a timeout" timeouts
check "no leftovers" words
finish
