#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Takes one rule after the other out of the library, and looks whether a test notices:
#
#   mutants.sh [-j WORKERS] [run [WORD...]]   the mutants whose name, file or guarantee has one of the words, or all
#   mutants.sh check                          that every mutant can be applied, and that its tests exist; builds nothing
#   mutants.sh table                          prints docs/contract.md
#
# tests/mutants/*.txt are the table. A guarantee stands above the mutants that take its rules out:
#
#   guarantee: ...                 what holds, as in README.md
#   premise: ...                   on what condition
#   broken: ...                    what a user sees when the premise is broken
#
#   mutant: NAME
#   rule: ...                      what is taken out
#   file: lib/...
#   - TEXT                         what is replaced: these lines, joined, stand in the file exactly once
#   + TEXT                         by what; nothing if there is no such line
#   test: SUITE/PROGRAM NAME       a test that must fail then; several lines: each of them must
#
# The tree is copied to $O/mutants and built there without optimisation, once; a mutant costs the compilation of its
# file, and only its tests run. Every test is seen to pass before, or its failure would tell nothing.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root" || exit 2

workers=${JOBS:-$(nproc 2> /dev/null || echo 1)}
alarm=60 # of one test
out=${O:-build}
[[ $out = /* ]] || out=$root/$out
out=$out/mutants
export UNSALT_SEED=${UNSALT_SEED:-1}

# ---- the table

declare -a names=() rules=() files=() olds=() news=() tests=() of=() # of: index of the guarantee
declare -a guarantees=() premises=() brokens=()

fault() {
    echo "mutants.sh: $*" >&2
    exit 2
}

# append ARRAY-ELEMENT TEXT: with a line break between.
append() {
    local -n element=$1
    element+=${element:+$'\n'}$2
}

read_table() {
    local file=$1 line key value n g
    while IFS= read -r line; do
        key=${line%%:*}
        value=${line#*: }
        n=$((${#names[@]} - 1))
        g=$((${#guarantees[@]} - 1))
        case $line in
        '' | '#'*) ;;
        'guarantee: '*) guarantees+=("$value"); premises+=(''); brokens+=('') ;;
        'premise: '*) premises[g]=$value ;;
        'broken: '*) brokens[g]=$value ;;
        'mutant: '*)
            [ "$g" -ge 0 ] || fault "$file: mutant $value has no guarantee"
            names+=("$value"); rules+=(''); files+=(''); olds+=(''); news+=(''); tests+=(''); of+=("$g")
            ;;
        'rule: '*) rules[n]=$value ;;
        'file: '*) files[n]=$value ;;
        'test: '*) append "tests[$n]" "$value" ;;
        '- '*) append "olds[$n]" "${line#- }" ;;
        '+ '*) append "news[$n]" "${line#+ }" ;;
        *) fault "$file: not understood: $line" ;;
        esac
    done < "$file"
}

# mutate N FILE-TO-WRITE: false with a word on stdout if the text doesn't stand there exactly once.
mutate() {
    local text rest count
    [ -f "${files[$1]}" ] || { echo "there is no file ${files[$1]}"; return 1; }
    text=$(< "${files[$1]}")
    rest=${text//"${olds[$1]}"/}
    count=$(((${#text} - ${#rest}) / ${#olds[$1]}))
    [ "$count" = 1 ] || { echo "its text stands $count times in ${files[$1]}"; return 1; }
    [ "${2:-}" = "" ] || printf '%s\n' "${text/"${olds[$1]}"/"${news[$1]}"}" > "$2"
}

# ---- check

sound() {
    local n=$1 program name bad=0
    [ -n "${rules[n]}" ] && [ -n "${olds[n]}" ] && [ -n "${tests[n]}" ] || { echo "it is not complete"; return 1; }
    [ "${olds[n]}" != "${news[n]}" ] || { echo "it changes nothing"; return 1; }
    mutate "$n" || return 1
    while read -r program name; do
        grep -qE "\b(TEST|[A-Z_]*TEST|Test)\([a-z_0-9]+, $name[,)]" "tests/$program.c" 2> /dev/null ||
            { echo "there is no test $name in tests/$program.c"; bad=1; }
    done <<< "${tests[n]}"
    return $bad
}

check_all() {
    local n why bad=0
    for n in "${!names[@]}"; do
        why=$(sound "$n") || { echo "${names[n]}: $why"; bad=1; }
    done
    [ -z "$(printf '%s\n' "${names[@]}" | sort | uniq -d)" ] || { echo "two mutants of one name"; bad=1; }
    for n in "${!guarantees[@]}"; do
        [[ " ${of[*]} " = *" $n "* ]] || { echo "no mutant for: ${guarantees[n]}"; bad=1; }
        [ -n "${premises[n]}" ] && [ -n "${brokens[n]}" ] || { echo "no premise: ${guarantees[n]}"; bad=1; }
    done
    [ "$bad" = 0 ] && [ "${#names[@]}" -gt 0 ]
}

# ---- table

cell() {
    local program name links=''
    while read -r program name; do
        links+="${links:+, }[${name//_/ }](../tests/$program.c)"
    done <<< "${tests[$1]}"
    echo "$links"
}

print_table() {
    local g n first
    cat << 'END'
# The contract, rule by rule

What [README.md](../README.md) guarantees, on which premise, and what a user sees when the premise is broken. Under each
guarantee stand the rules that it rests on, each with a test that fails without it: `make mutants` takes one rule after
the other out of the library, builds that, and sees the test fail. The page is made from `tests/mutants/` by
`tests/harness/mutants.sh table`.

| guarantee | premise | when the premise is broken | rule, and its mutant | test that fails without it |
|---|---|---|---|---|
END
    for g in "${!guarantees[@]}"; do
        first="${guarantees[g]} | ${premises[g]} | ${brokens[g]}"
        for n in "${!names[@]}"; do
            [ "${of[n]}" = "$g" ] || continue
            printf '| %s | %s (`%s`) | %s |\n' "$first" "${rules[n]}" "${names[n]}" "$(cell "$n")"
            first='| |'
        done
    done
    printf '\n%d guarantees, %d rules.\n' "${#guarantees[@]}" "${#names[@]}"
}

# ---- run

build() {
    env -u MAKEFLAGS -u MFLAGS UNSALT_DEPS=skip \
        make -s -C "$1" O=build CONFIG=debug CFLAGS=-O0 WERROR= -j "$2" "${@:3}" 2>&1
}

# The programs of the mutants that are asked for.
programs() {
    local n
    for n in "${chosen[@]}"; do
        sed 's|^\([^ ]*\) .*|build/debug/tests/\1|' <<< "${tests[n]}"
    done | sort -u
}

# Sources as they are in the tree, with what git doesn't know yet; objects of the last run stay.
copy_tree() {
    mkdir -p "$out/base" && find "$out/base" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} + || return 1
    git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
        [ ! -f "$file" ] || printf '%s\0' "$file"
    done | tar -cf - --null -T - | tar -xf - -C "$out/base"
}

# run_tests FOLDER PROGRAM PATTERN LOG: sets passed and failed, of the tests that match. Hangs and crashes are failures.
run_tests() {
    local status
    rm -f "$4.tap"
    (
        ulimit -c 0 -v 8000000
        cd "$1" && timeout -k 2 "$alarm" "build/debug/tests/$2" --color=never --filter "*/$3" --tap="$4.tap"
    ) > "$4" 2>&1 < /dev/null
    status=$?
    passed=$(grep -cE '^ok ' "$4.tap" 2> /dev/null)
    passed=$((passed - $(grep -cE '^ok .*# SKIP' "$4.tap" 2> /dev/null)))
    failed=$(grep -cE '^not ok ' "$4.tap" 2> /dev/null)
    failed=${failed:-0}
    if [ "$status" != 0 ] && [ "$failed" = 0 ]; then failed=1; fi
}

# Every test that is named passes as things are.
baseline() {
    local program pattern log=$out/logs/baseline bad=0 wanted
    while read -r program; do
        pattern=$(for n in "${chosen[@]}"; do sed -n "s|^$program ||p" <<< "${tests[n]}"; done | sort -u)
        wanted=$(wc -l <<< "$pattern")
        run_tests "$out/base" "$program" "@($(paste -sd '|' <<< "$pattern"))" "$log"
        [ "$failed" = 0 ] && [ "$passed" = "$wanted" ] && continue
        echo "# $program: $passed of $wanted tests pass before anything is taken out"
        cat "$log"
        bad=1
    done < <(programs | sed 's|build/debug/tests/||')
    return $bad
}

# restore FOLDER FILE: source, and what was made from it, as in the base; so nothing else is compiled again.
restore() {
    cp -p "$out/base/$2" "$1/$2"
    find "$1/build" \( -name '*.o' -o -name '*.d' \) -newer "$1/stamp" | while read -r made; do
        cp -p "$out/base/${made#"$1/"}" "$made" 2> /dev/null || rm -f "$made"
    done
}

# survivors N FOLDER LOG: the tests that don't notice.
survivors() {
    local program name
    while read -r program name; do
        run_tests "$2" "$program" "$name" "$3.test"
        [ "$failed" -gt 0 ] || echo "$program $name"
    done <<< "${tests[$1]}"
}

# one N FOLDER: applies, builds, runs, restores; one line.
one() {
    local n=$1 folder=$2 log=$out/logs/${names[$1]} began why targets verdict="not ok"
    began=$(date +%s%N)
    touch "$folder/stamp"
    if ! why=$(mutate "$n" "$folder/${files[n]}"); then
        :
    else
        mapfile -t targets < <(sed 's|^\([^ ]*\) .*|build/debug/tests/\1|' <<< "${tests[n]}" | sort -u)
        if ! build "$folder" 1 "${targets[@]}" > "$log"; then
            why="it does not build, see $log"
        else
            why=$(survivors "$n" "$folder" "$log")
            [ -n "$why" ] && why="survives $(paste -sd ',' <<< "$why")" || verdict=ok
        fi
        restore "$folder" "${files[n]}"
    fi
    printf '%-6s - %s: %s [%d ms]\n' "$verdict" "${names[n]}" "${why:-${rules[n]}}" \
        $((($(date +%s%N) - began) / 1000000))
}

worker() {
    local folder=$out/worker.$1 i
    trap 'exit 130' INT TERM
    rm -rf "$folder" && cp -a "$out/base" "$folder" || { echo "not ok - no room for $folder"; return; }
    for ((i = $1; i < ${#chosen[@]}; i += workers)); do
        one "${chosen[i]}" "$folder"
    done
    rm -rf "$folder"
}

is_chosen() {
    local n=$1 word
    shift
    [ $# -gt 0 ] || return 0
    for word; do
        [[ ${names[n]} = *"$word"* || ${files[n]} = *"$word"* || ${guarantees[of[n]]} = *"$word"* ]] && return 0
    done
    return 1
}

run() {
    local n i targets began passed failed results=$out/results
    began=$(date +%s)
    chosen=()
    for n in "${!names[@]}"; do
        ! is_chosen "$n" "$@" || chosen+=("$n")
    done
    [ "${#chosen[@]}" -gt 0 ] || fault "no mutant of that name"
    mkdir -p "$out/logs"
    copy_tree || fault "the tree can't be copied to $out"
    mapfile -t targets < <(programs)
    build "$out/base" "$workers" "${targets[@]}" > "$out/logs/base" ||
        { cat "$out/logs/base"; fault "it does not build"; }
    baseline || fault "tests that fail anyway tell nothing"
    echo "# built and seen to pass in $(($(date +%s) - began)) s"
    {
        for ((i = 0; i < workers; i++)); do worker "$i" & done
        wait
    } | tee "$results"
    passed=$(grep -c '^ok ' "$results")
    failed=$((${#chosen[@]} - passed))
    [ "$failed" = 0 ] || { echo "# survivors:"; grep '^not ok' "$results" | sed 's/^/# /'; }
    echo "# $(($(date +%s) - began)) s"
    echo "mutants: $passed passed, $failed failed"
    [ "$failed" = 0 ]
}

for table in tests/mutants/*.txt; do
    read_table "$table"
done
while getopts j: opt; do
    case $opt in
    j) workers=$OPTARG ;;
    *) sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
command=${1:-run}
shift $(($# > 0))
case $command in
run) run "$@" ;;
check) check_all ;;
table) print_table ;;
*) sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
