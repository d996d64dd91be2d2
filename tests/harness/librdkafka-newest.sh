#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Prints a folder with the newest supported librdkafka as librdkafka.so.1, for use as LD_LIBRARY_PATH.
# Debian carries an older one; the Python wheel of confluent-kafka carries the newest as a shared object.
# Fetched once, then kept in the user's cache.
set -euo pipefail
version=${UNSALT_CONFLUENT_KAFKA:-2.16.1}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/unsalt
dir=$cache/librdkafka-$version

fetch() {
    local python= candidate
    for candidate in python3 /usr/bin/python3; do
        if $candidate -m pip --version > /dev/null 2>&1; then python=$candidate; break; fi
    done
    if [ -z "$python" ]; then
        echo "librdkafka-newest: python3 with pip is needed (Debian: python3-pip)" >&2
        return 1
    fi
    tmp=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    $python -m pip download -q --no-deps --only-binary=:all: -d "$tmp/wheel" "confluent-kafka==$version" >&2
    mkdir "$tmp/lib"
    $python - "$tmp"/wheel/*.whl "$tmp/lib" <<'P' >&2
import os, sys, zipfile
wheel, out = sys.argv[1:3]
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        base = os.path.basename(name)
        if name.startswith("confluent_kafka.libs/") and ".so" in base:
            if base.startswith("librdkafka-"):
                base = "librdkafka.so.1"
            with open(os.path.join(out, base), "wb") as f:
                f.write(archive.read(name))
if not os.path.exists(os.path.join(out, "librdkafka.so.1")):
    sys.exit("librdkafka-newest: no librdkafka in " + wheel)
P
    chmod 755 "$tmp"/lib/*
    rm -rf "$dir"
    mv "$tmp/lib" "$dir"
}

if [ ! -f "$dir/librdkafka.so.1" ]; then
    mkdir -p "$cache"
    exec 9> "$cache/.lock-librdkafka"
    flock 9
    [ -f "$dir/librdkafka.so.1" ] || fetch
fi
echo "$dir"
