#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Checks tests/model/group.pml exhaustively with spin: run.sh BUILD [WORD...]
#
# Each line of the table below is one run: a name, whether it must hold or fail, the properties that are checked
# (README.md lists them), the definitions that it is made with. Ends with 0 if all that must hold does, and all that
# must fail fails. With words only runs with one of them in their name. DEEP=1: larger bounds as well, minutes. Of one
# run that fails, TRAIL (default: no-fence), the shortest way there is printed.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:?a folder to build in}
shift
mkdir -p "$build" && build=$(cd "$build" && pwd) || exit 2
trail=${TRAIL:-no-fence}

table() {
    cat << 'END'
plain holds ABCDE TROUBLES=2
plain-in-pieces holds ABCDE TROUBLES=2 PIECES
checkpoint holds ABCDE CHECKPOINT
checkpoint-in-pieces holds ABCDE CHECKPOINT PIECES
plain-no-fence fails B TROUBLES=2 NO_FENCE
no-fence fails C CHECKPOINT NO_FENCE
no-fence-trace fails D CHECKPOINT NO_FENCE
no-fence-in-pieces fails C CHECKPOINT PIECES NO_FENCE
no-ack-fence fails B TROUBLES=2 NO_ACK_FENCE
no-ack-fence-in-pieces fails C CHECKPOINT PIECES NO_ACK_FENCE
no-wait-for-ack fails A TROUBLES=2 NO_WAIT_FOR_ACK
no-step-back fails A TROUBLES=2 NO_STEP_BACK
no-complete-set fails B PIECES NO_COMPLETE_SET
no-colocation fails E NO_COLOCATION
no-colocation-no-refusal fails B NO_COLOCATION NO_COMPLETE_SET
no-wait-for-open fails C CHECKPOINT NO_WAIT_FOR_OPEN
no-transaction-timeout fails E CHECKPOINT NO_TRANSACTION_TIMEOUT
no-whole-set-first fails C CHECKPOINT PIECES NO_WHOLE_SET_FIRST
no-memory-of-what-went fails C CHECKPOINT PIECES NO_MEMORY_OF_WHAT_WENT
no-flush-no-order fails C CHECKPOINT NO_FLUSH NO_ORDER_OF_QUESTIONS
no-flush-no-stable fails C CHECKPOINT NO_FLUSH NO_STABLE_OFFSETS
only-order-and-stable holds ABCDE CHECKPOINT NO_FLUSH
only-flush holds ABCDE CHECKPOINT NO_ORDER_OF_QUESTIONS NO_STABLE_OFFSETS
END
    [ -z "${DEEP:-}" ] || cat << 'END'
deep-checkpoint holds ABCDE CHECKPOINT SMALL TROUBLES=2
deep-checkpoint-in-pieces holds ABCDE CHECKPOINT SMALL TROUBLES=2 PIECES
deep-only-order-and-stable holds ABCDE CHECKPOINT SMALL TROUBLES=2 NO_FLUSH
deep-only-order-and-stable-in-pieces holds ABCDE CHECKPOINT SMALL TROUBLES=2 PIECES NO_FLUSH
deep-only-flush holds ABCDE CHECKPOINT SMALL TROUBLES=2 NO_ORDER_OF_QUESTIONS NO_STABLE_OFFSETS
deep-only-flush-in-pieces holds ABCDE CHECKPOINT SMALL TROUBLES=2 PIECES NO_ORDER_OF_QUESTIONS NO_STABLE_OFFSETS
deep-three holds ABCDE MEMBERS=3
deep-three-in-pieces holds ABCDE MEMBERS=3 PIECES
deep-three-checkpoint holds ABCDE MEMBERS=3 CHECKPOINT SMALL
deep-three-checkpoint-in-pieces holds ABCDE MEMBERS=3 CHECKPOINT SMALL PIECES
END
}

# definitions PROPERTIES NAME...: as arguments of spin
definitions() {
    local properties=$1 i
    shift
    for ((i = 0; i < ${#properties}; i++)); do printf -- '-DPROPERTY_%s ' "${properties:i:1}"; done
    [ $# = 0 ] || printf -- '-D%s ' "$@"
}

# compile OUT SPIN-ARGUMENTS...: the verifier of these definitions. -E of its run: what must not stand still is said by
# property E, not by the places at which processes may end.
compile() {
    local out=$1
    shift
    spin "$@" -a "$here/group.pml" > spin.log 2>&1 && [ -f pan.c ] || { cat spin.log; return 1; }
    gcc -w -DSAFETY -DVECTORSZ=512 $cflags -o "$out" pan.c
}

# one NAME WANTED PROPERTIES DEFINITION...: one line, `ok` or `not ok` at its end
one() {
    local name=$1 wanted=$2 properties=$3 found=incomplete word=ok began
    shift 3
    began=$(date +%s%N)
    rm -rf "${build:?}/$name" && mkdir -p "$build/$name" && cd "$build/$name" || return 1
    cflags=-O1
    [ "$wanted" = holds ] || cflags=-O0
    [[ $name != deep-* ]] || cflags='-O2 -DCOLLAPSE'
    if compile pan $(definitions "$properties" "$@"); then
        ./pan -E -m100000 -w22 > log 2>&1
        if grep -q 'assertion violated' log; then
            found=fails
        elif grep -q 'errors: 0$' log && ! grep -qE 'not completed|max search depth|truncated|VECTORSZ' log; then
            found=holds
        fi
    fi
    [ "$found" = "$wanted" ] || word="NOT SO: must be '$wanted'"
    printf '%-36s %-6s %10s %6s %7.1f  %-10s %s\n' "$name" "$properties" \
        "$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' log 2> /dev/null | head -n 1)" \
        "$(sed -nE 's/.*depth reached ([0-9]+).*/\1/p' log 2> /dev/null | head -n 1)" \
        "$(($(date +%s%N) - began))e-9" "$found" "$word"
    [ "$word" = ok ] || tail -n 20 log 2> /dev/null
}

# The shortest way to a failure, as the members and the coordinator tell it.
show() {
    local name=$1 properties=$3
    shift 3
    cd "$build/$name" || return 1
    cflags=-DBFS
    compile shortest $(definitions "$properties" "$@") || return 1
    ./shortest -E -m100000 -w22 > shortest.log 2>&1
    printf '\nThe shortest way to the failure of %s:\n' "$name"
    spin -t -DSHOW $(definitions "$properties" "$@") -k group.pml.trail "$here/group.pml" 2>&1 | told
}

# What SHOW prints, indented by who says it, with the names of records for masks; up to the end of the trail.
told() {
    awk -v masks='(hands out |acknowledges |commits |commit of |done: |offsets [(]| at |committed is )[0-9]+' '
        function names(mask,    text) {
            if (mask % 2 >= 1) text = text " a2"
            if (mask % 4 >= 2) text = text " b2"
            if (mask % 8 >= 4) text = text " a1"
            if (mask % 16 >= 8) text = text " b1"
            return text == "" ? "nothing" : substr(text, 2)
        }
        /^spin: / { exit }
        {
            sub(/^ +/, "")
            if (match($0, masks)) {
                from = RSTART; to = RSTART + RLENGTH
                rest = substr($0, from, to - from)
                match(rest, /[0-9]+$/)
                $0 = substr($0, 1, from - 1) substr(rest, 1, RSTART - 1) names(substr(rest, RSTART)) substr($0, to)
            }
            sub(/ \(in vain: 0\)/, "")
            sub(/ \(in vain: 1\)/, " in vain")
            gsub(/partitions 3/, "partitions 0 and 1")
            gsub(/partitions 1$/, "partition 0"); gsub(/partitions 1 at/, "partition 0 at")
            gsub(/partitions 2$/, "partition 1"); gsub(/partitions 2 at/, "partition 1 at")
            gsub(/partitions 1 back/, "partition 0 back"); gsub(/partitions 2 back/, "partition 1 back")
            print /^[0-9]: / ? "    member " $0 : "    group     " $0
        }'
}

chosen=$(table | awk -v words="$*" '
    BEGIN { n = split(words, word) }
    { hit = n == 0; for (i = 1; i <= n; i++) if (index($1, word[i])) hit = 1; if (hit) print }')
[ -n "$chosen" ] || { echo "model: no run has such a name" >&2; exit 2; }
export -f one compile definitions
export here build
printf '%-36s %-6s %10s %6s %7s\n' model checks states depth seconds
out=$(mktemp)
trap 'rm -f "$out"' EXIT
xargs -P "${JOBS:-$(nproc)}" -I {} bash -c 'set -uo pipefail; one {}' <<< "$chosen" | tee "$out"
shown=$(grep "^$trail " <<< "$chosen")
[ -z "$shown" ] || show $shown
passed=$(grep -c ' ok$' "$out")
failed=$(($(wc -l <<< "$chosen") - passed))
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
