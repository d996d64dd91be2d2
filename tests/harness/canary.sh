#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# canary.sh FOLDER: builds the programs of tests/canary into FOLDER and runs them by the runner. Each one says in a
# comment
#   canary CONFIG: EXPECTED
# in which configurations the runner must call it a failure, and what it must say then. `valgrind` is a configuration
# here. A clean program must pass in each configuration, or the failures would prove nothing.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$1
passed=0
failed=0
CC=${CC:-gcc}

flags() {
    case $1 in
    asan) echo "-O1 -g -fsanitize=address -fno-omit-frame-pointer" ;;
    ubsan) echo "-O1 -g -fsanitize=undefined -fno-sanitize-recover=all" ;;
    tsan) echo "-O1 -g -fsanitize=thread" ;;
    *) echo "-O0 -g" ;;
    esac
}

# build CONFIG SOURCE: prints the program's path.
build() {
    local program=$out/$1/$(basename "$2" .c)
    mkdir -p "$out/$1"
    if [ ! "$program" -nt "$2" ]; then
        $CC -std=c11 -D_POSIX_C_SOURCE=200809L $(flags "$1") -Wl,--as-needed -o "$program" "$2" -lpthread \
            $([ "$1" = tsan ] || echo -lcriterion) || return 1
    fi
    echo "$program"
}

judge() {
    local config=$1 program=$2 text status=0 options=(-t 3 -l "$out/logs/$1")
    case $config:$program in
    valgrind:*) options=(-V -t 60 -l "$out/logs/$1") ;;
    *.sh) options=(-t 60 -l "$out/logs/$1") ;;
    esac
    text=$("$here/run-tests.sh" "${options[@]}" "$program" 2>&1) || status=$?
    # The result must come by the exit status, by the line of the program and by the closing line.
    if [ -z "${3:-}" ]; then
        [ "$status" = 0 ] && grep -qE '^[1-9][0-9]* passed, 0 failed$' <<< "$(tail -n 1 <<< "$text")"
    else
        [ "$status" != 0 ] && grep -qE "^FAIL .*\(.*($3)" <<< "$text" &&
            ! grep -qE ' 0 failed$' <<< "$(tail -n 1 <<< "$text")"
    fi
    if [ $? = 0 ]; then
        passed=$((passed + 1))
        printf 'ok   %-10s %s\n' "$config" "$(basename "$program")"
    else
        failed=$((failed + 1))
        printf 'FAIL %-10s %s: expected %s\n' "$config" "$(basename "$program")" "${3:-a pass}"
        sed 's/^/    /' <<< "$text"
    fi
}

for source in "$root"/tests/canary/*.c; do
    while read -r config expected; do
        if program=$(build "$config" "$source"); then
            judge "$config" "$program" "$expected"
        else
            failed=$((failed + 1))
            echo "FAIL $config $source does not build"
        fi
    done < <(sed -n 's|^/\* canary \([a-z]*\): \(.*\) \*/$|\1 \2|p' "$source")
done

# A missing program, and the scripts that check the structure.
judge release "$out/release/no-such-program" "missing program"
for script in "$root"/tests/canary/*.sh; do
    [ -e "$script" ] && judge release "$script"
done

cat > "$out/clean.c" <<'C'
#include <criterion/criterion.h>
Test(canary, clean, .timeout = 30) { cr_assert(1); }
C
cat > "$out/clean_tsan.c" <<'C'
#include <stdio.h>
int main(void) { puts("ok - clean"); return 0; }
C
for config in release asan ubsan valgrind; do judge "$config" "$(build $config "$out/clean.c")"; done
judge tsan "$(build tsan "$out/clean_tsan.c")"

if pgrep -f "^$out/" > /dev/null; then
    failed=$((failed + 1))
    echo "FAIL a process of a canary outlived its alarm"
else
    passed=$((passed + 1))
fi
echo "canary: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
