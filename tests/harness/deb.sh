#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Debian packages build, lintian finds no error, and a program that is built from their files alone runs. They are
# unpacked, not installed. O is the folder for all that is built.
set -uo pipefail
. "$(dirname "$0")/tap.sh"
out=$(realpath -m "${O:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(header_version)
unset PKG_CONFIG_PATH LD_LIBRARY_PATH

built() {
    make --no-print-directory O="$out" deb
}

# package NAME: the one file of that package.
package() {
    local found=("$out"/deb/"$1"_"$version"-*.deb)
    [ ${#found[@]} = 1 ] && [ -f "${found[0]}" ] && echo "${found[0]}"
}

unpacked() {
    local name file
    for name in libunsalt0 libunsalt-dev; do
        file=$(package $name) && dpkg-deb -x "$file" "$work/root" || return 1
    done
    [ -f "$work"/root/usr/lib/*/libunsalt.so ]
}

debugging() {
    package libunsalt0-dbgsym
}

depends() {
    dpkg-deb -f "$(package libunsalt0)" Depends | grep -q 'librdkafka1 (>= ' &&
        dpkg-deb -f "$(package libunsalt-dev)" Depends | grep -q "libunsalt0 (= $version-"
}

# What shared libraries of other packages depend on.
shlibs() {
    dpkg-deb -e "$(package libunsalt0)" "$work/control" &&
        [ "$(grep -c '@UNSALT_' "$work/control/symbols")" = "$(grep -c '@UNSALT_' debian/libunsalt0.symbols)" ]
}

hardened() {
    readelf -Wl "$libdir/libunsalt.so" | grep -q GNU_RELRO && readelf -d "$libdir/libunsalt.so" | grep -q 'BIND_NOW'
}

# The prefix of the .pc file is where the packages were unpacked.
program() {
    local flags
    printf '#include <stdio.h>\n#include <unsalt/unsalt.h>\n%s\n' \
        'int main(void) { return puts(unsalt_version_str()) < 0; }' > "$work/program.c"
    flags=$(PKG_CONFIG_LIBDIR="$libdir/pkgconfig:$(pkg-config --variable pc_path pkg-config)" \
        pkg-config --define-variable=prefix="$work/root/usr" --cflags --libs unsalt) &&
        (cd "$work" && ${CC:-gcc} -o program program.c $flags) &&
        [ "$(LD_LIBRARY_PATH=$libdir "$work/program")" = "$version" ]
}

manual() {
    [ -f "$work/root/usr/share/man/man7/unsalt.7.gz" ] && [ -f "$work/root/usr/share/man/man7/unsalt-conf.7.gz" ]
}

check "the packages build, and lintian finds no error" built
check "they unpack" unpacked
libdir=$(dirname "$work"/root/usr/lib/*/libunsalt.so)
check "symbols for debuggers are apart" debugging
check "they name what they need" depends
check "the symbols of the library have their versions" shlibs
check "the library is hardened" hardened
check "a program builds from their files and runs" program
check "the manual pages are there" manual
finish
