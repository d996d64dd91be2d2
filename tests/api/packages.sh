#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What debian/ says about the library is what the library says: version, SONAME, symbols, files, dependencies. Quick;
# tests/harness/deb.sh builds the packages.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"

version=$(header_version)

changelog() {
    local said
    said=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
    [ "${said%-*}" = "$version" ] || { echo "debian/changelog says $said, version.h says $version"; return 1; }
}

news() {
    grep -q "^## $version" CHANGELOG.md
}

soname() {
    local major
    major=${version%%.*}
    readelf -d "$build/libunsalt.so" | grep -q "SONAME.*\[libunsalt\.so\.$major\]" &&
        grep -qx "Package: libunsalt$major" debian/control &&
        grep -q "^libunsalt\.so\.$major libunsalt$major " debian/libunsalt"$major".symbols
}

# `make map` writes both.
symbols() {
    diff debian/libunsalt0.symbols <(awk -f packaging/symbols.awk lib/libunsalt.map)
}

# What a build needs stands in two places.
dependencies() {
    local entry bad=0
    for entry in $(sed -n 's/^build="\(.*\)"$/\1/p' tests/harness/deps.sh); do
        case $entry in libc6-dev | binutils) continue ;; esac # part of build-essential
        grep -qE "^ ${entry%%|*}\b" debian/control || { echo "debian/control lacks $entry"; bad=1; }
    done
    return $bad
}

# Each file of an installation is in one package.
files() {
    local stage file pattern packages bad=0
    stage=$(mktemp -d)
    make --no-print-directory -s B="$build" DESTDIR="$stage" PREFIX=/usr libdir=/usr/lib/triplet \
        docdir=/usr/share/doc/libunsalt-dev install || return 1
    while read -r file; do
        packages=0
        while read -r pattern; do
            # shellcheck disable=SC2254
            case $file in $pattern | $pattern/*) packages=$((packages + 1)) ;; esac
        done < <(cat debian/*.install)
        [ "$packages" = 1 ] || { echo "$file is in $packages packages"; bad=1; }
    done < <(cd "$stage" && find . ! -type d | sed 's|^\./||')
    rm -rf "$stage"
    return $bad
}

licence() {
    diff <(sed -n '/^Redistribution/,$p' LICENSE) \
        <(sed -n '/^ Redistribution/,$p' debian/copyright | sed 's/^ //; s/^\.$//')
}

check "debian/changelog has the version of version.h" changelog
check "CHANGELOG.md has it too" news
check "package and symbols file have the name of the SONAME" soname
check "the symbols file is the version script's" symbols
check "debian/control needs what deps.sh installs" dependencies
check "each installed file is in one package" files
check "debian/copyright has the text of LICENSE" licence
finish
