#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian packages that a task needs, if any is missing:
# deps.sh [build|examples|docs|model|test|bench|plots|deb|ci]...
# Quick when nothing is missing: one dpkg-query. UNSALT_DEPS=skip switches it off (package builds, other systems).
set -euo pipefail

# An entry `a|b` is satisfied by either; the first one is installed.
build="libc6-dev binutils pkg-config|pkgconf librdkafka-dev uthash-dev libjsmn-dev libxxhash-dev"
examples="$build libsqlite3-dev"
docs="doxygen mandoc"
model="gcc libc6-dev spin"
test="$examples $docs $model libcriterion-dev g++ valgrind ca-certificates python3 python3-pip maven
 default-jre-headless|openjdk-17-jre-headless git procps cmake abigail-tools kcat
 ecj|openjdk-17-jdk-headless|default-jdk-headless"
bench="$build g++ libdpdk-dev"
plots="gnuplot-nox|gnuplot-qt|gnuplot-x11 python3-minimal|python3"
deb="$build build-essential debhelper lintian libcriterion-dev"
ci="$test $deb clang libclang-rt-14-dev"

[ "${UNSALT_DEPS:-}" = skip ] && exit 0
if ! command -v dpkg-query > /dev/null; then
    echo "deps: not a Debian system, so nothing was checked; docs: tests/README.md lists what is needed" >&2
    exit 0
fi

wanted=""
for group in "${@:-build}"; do
    case $group in
    build) wanted+=" $build" ;;
    examples) wanted+=" $examples" ;;
    docs) wanted+=" $docs" ;;
    model) wanted+=" $model" ;;
    test) wanted+=" $test" ;;
    bench) wanted+=" $bench" ;;
    plots) wanted+=" $plots" ;;
    deb) wanted+=" $deb" ;;
    ci) wanted+=" $ci" ;;
    *) echo "usage: $0 [build|examples|docs|model|test|bench|plots|deb|ci]..." >&2; exit 2 ;;
    esac
done

declare -A have
while read -r name status; do
    if [[ $status == ?i* ]]; then have[$name]=1; fi
done < <(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' ${wanted//|/ } 2> /dev/null || true)

missing=()
for entry in $wanted; do
    found=
    for name in ${entry//|/ }; do
        if [ -n "${have[$name]:-}" ]; then found=1; fi
    done
    if [ -z "$found" ]; then missing+=("${entry%%|*}"); have[${entry%%|*}]=1; fi
done
[ ${#missing[@]} -gt 0 ] || exit 0

root=
if [ "$(id -u)" != 0 ]; then
    if command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
        root="sudo -n"
    else
        echo "deps: packages are missing, and this is neither root nor sudo without a password. Run:" >&2
        echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
fi

echo "deps: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 \
        install --no-install-recommends "${missing[@]}" < /dev/null > "$log" 2>&1
}
# The lists of packages may be absent or old: only then are they fetched.
if ! install; then
    $root apt-get -q -o DPkg::Lock::Timeout=300 update < /dev/null >&2 || echo "deps: apt-get update has failed" >&2
    install || { cat "$log" >&2; echo "deps: apt-get could not install ${missing[*]}" >&2; exit 1; }
fi
