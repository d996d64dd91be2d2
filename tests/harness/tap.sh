# SPDX-License-Identifier: BSD-2-Clause
# For scripts that are tests: one line per check, in the words that run-tests.sh counts. Source it, then
#   check "what is checked" COMMAND...   and at the end   finish
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${UNSALT_BUILD:-$root/build/release}
cd "$root" || exit 2
tap_failed=0

check() {
    local what=$1 tap_text status=0
    shift
    tap_text=$("$@" 2>&1) || status=$?
    if [ "$status" = 0 ]; then
        echo "ok - $what"
    else
        echo "not ok - $what"
        sed 's/^/    /' <<< "$tap_text"
        tap_failed=$((tap_failed + 1))
    fi
}

# The version that the headers state.
header_version() {
    awk '$2 ~ /^UNSALT_VERSION_/ && NF == 3 { printf "%s%s", dot, $3; dot = "." }' "$root/include/unsalt/version.h"
}

finish() {
    [ "$tap_failed" = 0 ]
    exit
}
