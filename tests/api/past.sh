#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/past.md and the tests that it speaks of: every test named there exists, every test of the files *_past_* is named
# there, every report that these files name stands there, and a row has as many cells as its table's head. Another
# page may be given: past.sh PAGE
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
page=${1:-docs/past.md}
shopt -s nullglob
past=(tests/unit/test_past_*.c tests/mock/mock_past_*.c)
report='[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9_.-]*#[0-9]+'

# suite.name of each Criterion test in the files given.
tests_in() {
    sed -nE 's/^(TEST|SLOW_TEST|Test)\(([a-z0-9_]+), *([a-z0-9_]+).*/\2.\3/p' "$@" | sort -u
}

named_tests() {
    grep -oE '`[a-z0-9_]+\.[a-z0-9_]+`' "$page" | tr -d '`' | sort -u
}

named_tests_exist() {
    local missing file
    [ "$(named_tests | wc -l)" -gt 50 ] || { echo "hardly a table"; return 1; }
    missing=$(comm -23 <(named_tests) <(tests_in tests/*/*.c))
    for file in $(grep -oE '`tests/[a-z0-9_/]+\.[a-z]+`' "$page" | tr -d '`'); do
        [ -f "$file" ] || missing+=" $file"
    done
    [ -z "${missing// /}" ] || { echo "no such test: $missing"; return 1; }
}

all_tests_are_named() {
    local missing
    missing=$(comm -13 <(named_tests) <(tests_in "${past[@]}"))
    [ -z "$missing" ] || { echo "not named in $page: $missing"; return 1; }
}

reports_stand_there() {
    local missing
    missing=$(comm -13 <(grep -oE "$report" "$page" | sort -u) <(grep -ohE "$report" "${past[@]}" | sort -u))
    [ -z "$missing" ] || { echo "not in $page: $missing"; return 1; }
}

# A report with tests in *_past_* is named in one of their files, so that the reader of a test finds it.
tests_name_their_reports() {
    local row id suites files bad=0
    while read -r row; do
        suites=$(grep -oE '`past_[a-z0-9_]+\.' <<< "$row" | tr -d '`.' | sort -u | paste -sd '|')
        [ -n "$suites" ] || continue
        files=$(grep -lE "^(TEST|SLOW_TEST|Test)\(($suites)," "${past[@]}")
        for id in $(grep -oE "$report" <<< "${row%%|*}"); do
            grep -qF "$id" $files || { echo "$id is not named in" $files; bad=1; }
        done
    done < <(sed -n 's/^| //p' "$page")
    return $bad
}

cells() {
    awk '/^\|/ { n = gsub(/\|/, "|"); if (!head) head = n; if (n != head) { print FNR ": " n " bars"; bad = 1 }; next }
         { head = 0 } END { exit bad }' "$page"
}

# A test that doesn't exist must be seen, and so must a report that is missing.
notices() {
    local copy bad=0
    copy=$(mktemp)
    sed 's/one_missing_number_costs_that_number/no_such_test/' "$page" > "$copy"
    (page=$copy; ! named_tests_exist && ! all_tests_are_named) > /dev/null || bad=1
    sed 's/svpcom\/wfb-ng#3/svpcom\/wfb-ng#4/' "$page" > "$copy"
    (page=$copy; ! reports_stand_there) > /dev/null || bad=1
    rm -f "$copy"
    return $bad
}

check "every test that docs/past.md names exists" named_tests_exist
check "every test of a report is named there" all_tests_are_named
check "every report that a test names stands there" reports_stand_there
check "reports are named where their tests are" tests_name_their_reports
check "rows have the cells of their tables" cells
check "a wrong name is noticed" notices
finish
