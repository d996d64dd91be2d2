#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Compiles the programs of this folder against the kafka-clients of the broker under test and runs one of them:
#
#   run.sh CLASS ARGUMENT...
#   run.sh compile               only compiles
#
# The classes are kept in the user's cache, by the version of Kafka and by what the sources are. The compiler is a
# JDK's javac or, where only a JRE is installed, Eclipse's (Debian: ecj), which needs no more than that.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/unsalt
jars=$("$here/../../harness/kafka.sh" jars ${UNSALT_TEST_KAFKA_VERSION:-})
classes=$cache/field-java-$(basename "$jars")-$(cat "$here"/*.java | cksum | cut -d ' ' -f 1)

compile() {
    local compiler=javac
    command -v javac > /dev/null || compiler=ecj
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    # The clients, and what their classes name: a producer in the field has nothing else of Kafka.
    clients=$(echo "$jars"/kafka-clients-*.jar):$(echo "$jars"/slf4j-api-*.jar)
    $compiler -nowarn -proc:none -source 11 -target 11 -encoding UTF-8 -d "$work/classes" \
        -classpath "$clients" "$here"/*.java > "$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
    mv "$work/classes" "$classes"
}

if [ ! -d "$classes" ]; then
    mkdir -p "$cache"
    (
        flock 9
        [ -d "$classes" ] || compile
    ) 9> "$cache/.lock-field-java"
fi
[ "${1:?a class}" != compile ] || exit 0
# Quick starts, and no word of the client's but warnings and errors of its own.
exec java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$classes:$jars/*" "$@"
