#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a Python program of this folder with the confluent-kafka module of the version that the newest librdkafka comes
# from: run.sh PROGRAM ARGUMENT...; `run.sh module` only fetches the module.
# It is kept in the user's cache, by its version and by that of Python, to which its binary part is bound.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=${UNSALT_CONFLUENT_KAFKA:-2.16.1}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/unsalt
python=
for candidate in python3 /usr/bin/python3; do
    if $candidate -m pip --version > /dev/null 2>&1; then python=$candidate; break; fi
done
[ -n "$python" ] || { echo "run.sh: python3 with pip is needed (Debian: python3-pip)" >&2; exit 1; }
module=$cache/confluent-kafka-$version-$($python -c 'import sys; print(sys.implementation.cache_tag)')

fetch() {
    tmp=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    $python -m pip install -q --no-deps --only-binary=:all: --no-compile --target "$tmp/module" \
        --root-user-action=ignore "confluent-kafka==$version" >&2
    mv "$tmp/module" "$module"
}

if [ ! -d "$module" ]; then
    mkdir -p "$cache"
    (
        flock 9
        [ -d "$module" ] || fetch
    ) 9> "$cache/.lock-confluent-kafka"
fi
program=${1:?a program}
[ "$program" != module ] || exit 0
shift
export PYTHONPATH=$module PYTHONDONTWRITEBYTECODE=1 PYTHONUTF8=1
# The module brings its own librdkafka, whatever the tests of the library run on.
unset LD_LIBRARY_PATH
exec "$python" "$here/$program" "$@"
