#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a stranger meets: an installation into a prefix of its own with an unusual libdir, programs built with what
# pkg-config or CMake say and nothing else, a staged installation, a removal without a trace, a tarball that builds.
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
libdir=$prefix/lib/odd-triplet
# Not what a shell of the developer says: only the installation counts.
unset PKG_CONFIG_PATH LD_LIBRARY_PATH CPATH LIBRARY_PATH CMAKE_PREFIX_PATH
export PKG_CONFIG_PATH=$libdir/pkgconfig UNSALT_DEPS=skip
version=$(header_version)

run_make() {
    make --no-print-directory -s B="$build" PREFIX="$prefix" libdir="$libdir" "$@"
}

# The same program for every way to build it: it uses the consumer, the producer and the version. As C++ too.
cat > "$work/program.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <unsalt/unsalt.h>

static int complete(void) {
    char errstr[256];
    rd_kafka_conf_t *rk_conf = rd_kafka_conf_new();
    unsalt_conf_t *conf = unsalt_conf_new();
    rd_kafka_conf_set(rk_conf, "group.id", "smoke", errstr, sizeof errstr);
    unsalt_t *consumer = unsalt_new(rk_conf, conf, errstr, sizeof errstr);
    if (!consumer)
        return 0;
    unsalt_destroy(consumer);
    /* A producer needs to know N: it must say so. */
    rk_conf = rd_kafka_conf_new();
    if (unsalt_producer_new(rk_conf, NULL, errstr, sizeof errstr) || !strstr(errstr, "partitions"))
        return 0;
    rd_kafka_conf_destroy(rk_conf);
    return 1;
}

int main(void) {
    int same = unsalt_version() == ((UNSALT_VERSION_MAJOR << 16) | (UNSALT_VERSION_MINOR << 8) | UNSALT_VERSION_PATCH);
    printf("%s\n", unsalt_version_str());
    return same && complete() ? 0 : 1;
}
C
cp "$work/program.c" "$work/program.cpp"

installed() {
    run_make install && [ -f "$libdir/libunsalt.a" ] && [ -L "$libdir/libunsalt.so" ] && [ -L "$libdir/libunsalt.so.0" ]
}

# The pages that are installed lead to each other, and to nothing that stayed behind.
links() {
    local doc=$prefix/share/doc/unsalt
    [ "$(grep -c ']([a-z]*\.md)' "$doc/README.md")" -gt 5 ] && [ -f "$doc/contract.md" ] &&
        tests/harness/links.sh "$doc"/*.md "$doc"/examples/*.md && finds_dead_links "$doc"
}

# What must be told: a page that isn't there, and a heading that isn't.
finds_dead_links() {
    mkdir -p "$work/dead" && cp "$1"/*.md "$work/dead" && rm "$work/dead/repair.md" &&
        ! tests/harness/links.sh "$work/dead/README.md" > "$work/dead/said" &&
        grep -q 'no repair.md' "$work/dead/said" &&
        printf '# A\n\n[b](#b)\n' > "$work/dead/page.md" && ! tests/harness/links.sh "$work/dead/page.md" > /dev/null
}

# Every file has its mode, whatever the umask of who installs.
modes() {
    ! find "$prefix" \( -type f ! -perm 644 ! -name 'libunsalt.so.*' -o -type d ! -perm 755 \) -printf '%m %p\n' |
        grep .
}

pc_says() {
    [ "$(pkg-config --modversion unsalt)" = "$version" ] && [ "$(pkg-config --variable=libdir unsalt)" = "$libdir" ] &&
        pkg-config --libs unsalt | grep -qe "-L$libdir -lunsalt" &&
        pkg-config --libs unsalt | grep -qe -lrdkafka &&
        ! pkg-config --libs unsalt | grep -qe '-lpthread' &&
        pkg-config --static --libs unsalt | grep -qe '-lpthread' || { cat "$libdir/pkgconfig/unsalt.pc"; return 1; }
}

prints_version() {
    [ "$("$@")" = "$version" ]
}

needs_shared() {
    readelf -d "$1" | grep -q 'NEEDED.*\[libunsalt\.so\.0\]'
}

# In a folder of its own: the tree's headers must not be near.
by_pkg_config() {
    (cd "$work" && $1 -o by-pkg-config program."$2" $(pkg-config --cflags --libs unsalt)) &&
        needs_shared "$work/by-pkg-config" && LD_LIBRARY_PATH=$libdir prints_version "$work/by-pkg-config"
}

# The examples that are installed need nothing of the tree. 13_own_database.c wants SQLite too, where it isn't there it
# is the only one that may be left out.
examples_compile() {
    local doc=$prefix/share/doc/unsalt/examples file bad=0
    [ "$(cd "$doc" && ls ./*.[ch])" = "$(cd examples && ls ./*.[ch])" ] || { ls "$doc"; return 1; }
    for file in "$doc"/*.c; do
        [[ $file != */13_own_database.c ]] || pkg-config --exists sqlite3 || continue
        (cd "$work" && ${CC:-gcc} -std=gnu11 -fsyntax-only "$file" $(pkg-config --cflags unsalt)) || bad=1
    done
    return $bad
}

static_by_pkg_config() {
    (cd "$work" && ${CC:-gcc} -o static program.c $(pkg-config --cflags unsalt) -Wl,-Bstatic -lunsalt \
        -L"$(pkg-config --variable=libdir unsalt)" -Wl,-Bdynamic $(pkg-config --libs rdkafka) -lpthread -lm) &&
        ! needs_shared "$work/static" && prints_version "$work/static"
}

# The last program is built by the name alone: find_package() is given no hint but the prefix.
cat > "$work/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.16)
project(smoke C CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
find_package(unsalt 0.1 REQUIRED)
find_package(unsalt REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared PRIVATE unsalt::unsalt)
add_executable(static program.c)
target_link_libraries(static PRIVATE unsalt::static)
add_executable(cxx program.cpp)
target_link_libraries(cxx PRIVATE unsalt::unsalt)
C

# by_cmake SOURCE-PREFIX OUT
by_cmake() {
    CC=${CC:-gcc} CXX=${CXX:-g++} cmake -S "$work" -B "$2" -Dunsalt_DIR="$1/cmake/unsalt" > "$work/log" 2>&1 &&
        make -s -C "$2" MAKEFLAGS= >> "$work/log" 2>&1 || { cat "$work/log"; return 1; }
    needs_shared "$2/shared" && needs_shared "$2/cxx" && ! needs_shared "$2/static" &&
        prints_version "$2/shared" && prints_version "$2/static" && prints_version "$2/cxx"
}

cmake_refuses() {
    local wanted=$1
    mkdir -p "$work/refused"
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(refused NONE)\nfind_package(unsalt %s REQUIRED)\n' "$wanted" \
        > "$work/refused/CMakeLists.txt"
    ! cmake -S "$work/refused" -B "$work/refused/build" -Dunsalt_DIR="$libdir/cmake/unsalt" > "$work/log" 2>&1 &&
        grep -q "is compatible" "$work/log" || { cat "$work/log"; return 1; }
}

# A staged installation is moved to where it belongs later: no file names the stage, nor the tree.
staged() {
    local stage=$work/stage
    make --no-print-directory -s B="$build" DESTDIR="$stage" PREFIX=/usr libdir=/usr/lib/odd-triplet install &&
        [ -f "$stage/usr/lib/odd-triplet/libunsalt.a" ] && [ -f "$stage/usr/include/unsalt/unsalt.h" ] &&
        [ -f "$stage/usr/share/man/man7/unsalt.7" ] || { find "$stage"; return 1; }
    # The debugging information names the folder that it was compiled in, as it should.
    ! grep -rlF -e "$stage" -e "$root" "$stage" --exclude='libunsalt.*' &&
        grep -qx 'libdir=${prefix}/lib/odd-triplet' "$stage/usr/lib/odd-triplet/pkgconfig/unsalt.pc" &&
        ! grep -q /usr "$stage"/usr/lib/odd-triplet/cmake/unsalt/unsaltConfig.cmake
}

# Paths in CMake's file are relative: the stage is used as it stands.
moved() {
    by_cmake "$work/stage/usr/lib/odd-triplet" "$work/moved-build"
}

uninstalled() {
    run_make uninstall && ! find "$prefix" ! -type d | grep . && ! find "$prefix" -name '*unsalt*' | grep .
}

# What others put beside it stays.
spares() {
    mkdir -p "$prefix/include/unsalt" && echo > "$prefix/include/unsalt/other.h" && echo > "$libdir/libunsalt.other"
    run_make uninstall && [ -f "$prefix/include/unsalt/other.h" ] && [ -f "$libdir/libunsalt.other" ]
}

packed() {
    make --no-print-directory -s O="$work/one" dist && make --no-print-directory -s O="$work/two" dist &&
        cmp "$work/one/unsalt-$version.tar.gz" "$work/two/unsalt-$version.tar.gz"
}

# The tarball makes the library, and the same tarball again, without git.
tarball_builds() {
    mkdir "$work/unpacked" && tar -xzf "$work/one/unsalt-$version.tar.gz" -C "$work/unpacked" || return 1
    (
        unset MAKEFLAGS MFLAGS SOURCE_DATE_EPOCH
        cd "$work/unpacked/unsalt-$version" &&
            make --no-print-directory -s -j2 lib CFLAGS=-O0 O="$work/three" &&
            make --no-print-directory -s O="$work/three" dist && [ ! -e build ]
    ) && [ -f "$work/three/release/libunsalt.so" ] &&
        cmp "$work/one/unsalt-$version.tar.gz" "$work/three/unsalt-$version.tar.gz"
}

umask 027
check "it installs to a prefix, with an odd libdir" installed
umask 022
check "links of the installed pages lead somewhere" links
check "files have their modes" modes
check "pkg-config names it, its libdir and what a static link needs" pc_says
check "a C program by pkg-config" by_pkg_config "${CC:-gcc} -std=c11" c
check "a C++17 program by pkg-config" by_pkg_config "${CXX:-g++} -std=c++17" cpp
check "the installed examples compile, with what is installed beside them" examples_compile
check "a C program with the static library" static_by_pkg_config
check "C, C++17 and static by CMake" by_cmake "$libdir" "$work/cmake-build"
check "CMake refuses a newer version" cmake_refuses 0.99
check "CMake refuses another major number" cmake_refuses 99
check "a staged installation names no stage" staged
check "CMake uses an installation that was moved" moved
check "it uninstalls without a trace" uninstalled
check "it leaves alone what is not its own" spares
check "make dist packs the same bytes twice" packed
check "the tarball builds the library, without git" tarball_builds
finish
