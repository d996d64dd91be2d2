#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# selftest.sh SIM: faults that are planted into the simulator must be found, told with their seed, shrink, and come
# again from that seed alone; without a fault the same schedules must pass.
set -uo pipefail
sim=$1
first=1
count=4000
passed=0
failed=0

result() {
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
        echo "ok - $1"
    else
        failed=$((failed + 1))
        echo "not ok - $1"
        sed 's/^/    /' <<< "${3:-}" | tail -n 40
    fi
}

# planted NAME CHECK: the first failure must say CHECK; its seed alone must fail again, and have become shorter.
planted() {
    local text seed again before after
    text=$("$sim" $count $first "$1" 2>&1)
    [ $? = 1 ] && grep -qE "^not ok: SEED=[0-9]+: .*($2)" <<< "$text"
    result "$1 is found" $? "$text"
    seed=$(sed -n 's/^not ok - SEED=\([0-9]*\) fails.*/\1/p' <<< "$text")
    again=$("$sim" 1 "${seed:-0}" "$1" 2>&1)
    [ $? = 1 ] && grep -qE "^not ok: SEED=$seed: .*($2)" <<< "$again"
    result "$1 comes again from its seed" $? "$again"
    read -r before after < <(sed -n 's/^seed [0-9]*: \([0-9]*\) operations.*/\1/p' <<< "$again" | tr '\n' ' ')
    [ "${after:-99}" -le 25 ] && [ "${after:-99}" -le "${before:-0}" ]
    result "$1 shrinks from ${before:-?} to ${after:-?} operations" $? "$again"
}

planted fence 'takes what is committed'
planted frontier 'the frontier of'
planted dedupe 'twice'
planted una 'said to be lost|gives up|premise of proof'
planted horizon 'gives up'
planted skip 'never handed out|gives up|first time'
planted begin 'never handed out|gives up|first time'
planted swap 'releases'
planted lose 'its core says'
planted cursors 'acknowledged and committed|gives up'
planted atomic 'done by a commit|calls|out again|gives up|covers|never handed out'
planted forget 'was done by a commit'

text=$("$sim" $count $first 2>&1)
result "nothing is found where nothing is planted" $? "$text"

# right SEED... WHY: these schedules failed once, by the judge or by the core.
right() {
    local why=${*: -1} seed text
    for seed in "${@:1:$#-1}"; do
        text=$("$sim" 1 "$seed" 2>&1)
        result "SEED=$seed: $why" $? "$text"
    done
}
right 1796094991006836 1796094991081243 1796094991201128 "what is settled of a partition that stays, stays settled"
right 168755 215634 "while a clock stands each call is a nanosecond later, so it is known what came before the due time"
right 800299331 "what is held of another number of lanes does not tell where a lane lives"
right 31337399625 "a run of which a budget has turned all away was not met"
right 1796100000159102 "late records from far below a jump look like a producer that went back"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
