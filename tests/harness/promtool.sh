#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Prints the path of promtool, the checker of Prometheus' text format. Debian's package would start a service, so it is
# only unpacked, once, into the user's cache.
set -euo pipefail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/unsalt
program=$cache/promtool

download() {
    (cd "$1" && apt-get -q -o APT::Sandbox::User=root download prometheus < /dev/null > "$1/log" 2>&1)
}

# The lists of packages may be absent or old: only then are they fetched.
fetch() {
    local root=
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    if ! download "$work"; then
        [ "$(id -u)" = 0 ] || root="sudo -n"
        $root apt-get -q -o DPkg::Lock::Timeout=300 update < /dev/null >&2 || true
        download "$work" || { cat "$work/log" >&2; echo "promtool: could not download prometheus" >&2; exit 1; }
    fi
    dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -xf - -C "$work" ./usr/bin/promtool
    "$work/usr/bin/promtool" --version > /dev/null
    mv "$work/usr/bin/promtool" "$program"
}

if command -v promtool; then exit; fi
if [ ! -x "$program" ]; then
    mkdir -p "$cache"
    exec 9> "$cache/.lock-promtool"
    flock 9
    [ -x "$program" ] || fetch >&2
fi
echo "$program"
