#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Confluent Parallel Consumer as a peer to measure against. peer.sh build DIR compiles it into DIR and prints the
# command that runs it; the jars come from Maven Central, once, into the user's cache.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ "${1:-}" = build ] && [ $# = 2 ] || { echo "usage: $0 build DIR" >&2; exit 2; }
dir=$2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/unsalt
libs=$cache/parallel-consumer-$(sha256sum "$here/pom.xml" | cut -c1-12)

mkdir -p "$cache" "$dir"
(
    flock 9
    [ -d "$libs" ] && exit 0
    echo "peer: fetching Confluent Parallel Consumer" >&2
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cp "$here/pom.xml" "$work/"
    cd "$work"
    mvn -q -B dependency:copy-dependencies -DoutputDirectory="$work/libs" -DincludeScope=runtime < /dev/null >&2
    mv "$work/libs" "$libs"
) 9> "$cache/.lock-parallel-consumer"

# A JDK's javac or Eclipse's compiler, which on Debian goes by the name of javac too: both are told all.
compiler=javac
command -v javac > /dev/null || compiler=ecj
$compiler -nowarn -proc:none -source 11 -target 11 -encoding UTF-8 -d "$dir" \
    -classpath "$(echo "$libs"/*.jar | tr ' ' :)" "$here/Peer.java" >&2
echo "java -cp '$libs/*:$dir' Peer 2>> \"\${UNSALT_BENCH_PEER_LOG:-/dev/null}\""
