#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/contract.md is the one that tests/mutants/ makes; each mutant still finds the text that it replaces, once; each
# test that is named exists. That the tests fail without their rules is what `make mutants` shows.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"

page() {
    diff docs/contract.md <(tests/harness/mutants.sh table) || { echo "write it by: make contract"; return 1; }
}

# A page of no rules would be up to date as well.
enough() {
    [ "$(grep -c '^mutant: ' tests/mutants/*.txt | awk -F: '{ n += $2 } END { print n }')" -ge 140 ]
}

check "mutants can be applied, and their tests exist" tests/harness/mutants.sh check
check "docs/contract.md is up to date" page
check "there are rules in it" enough
finish
