#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The path of a new user, from the README alone: a clone, the demo, the installation, the consumer in 30 lines, built
# by the line that the README gives and run on a salted topic of a real Kafka. Each command and the program are taken
# from README.md word by word; only the address of the broker is another one. new-user.sh [REPOSITORY]
#
# `make install` writes to /usr/local. For root that, and the linker's cache in /etc, are an overlay which only this
# script sees; otherwise, or if the system doesn't have overlays, PREFIX and the search paths point to a folder of its
# own.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "${1:-$here/../..}" && pwd)
# A user's environment: nothing of the make that may have started this.
unset MAKEFLAGS MFLAGS MAKELEVEL O CONFIG CC CXX CFLAGS LDFLAGS V T FAULT BOOTSTRAP RDKAFKA KAFKA

overlay() {
    local layers=$1/layers name
    mkdir -p "$layers" && mount -t tmpfs none "$layers" || return 1
    for name in /usr/local /etc; do
        mkdir -p "$layers$name/upper" "$layers$name/work" &&
            mount -t overlay none -o "lowerdir=$name,upperdir=$layers$name/upper,workdir=$layers$name/work" "$name" ||
            return 1
    done
}

if [ -z "${UNSALT_TEST_BOOTSTRAP:-}" ]; then
    exec "$here/with-kafka.sh" -- "$0" "$repository"
fi
if [ -z "${UNSALT_NEW_USER:-}" ]; then
    UNSALT_NEW_USER=$(mktemp -d "${TMPDIR:-/tmp}/unsalt-user.XXXXXX")
    export UNSALT_NEW_USER
    trap 'rm -rf "$UNSALT_NEW_USER"' EXIT
    export -f overlay
    if [ "$(id -u)" = 0 ] && unshare -m bash -c 'overlay "$UNSALT_NEW_USER"' > /dev/null 2>&1; then
        rm -rf "$UNSALT_NEW_USER/layers"
        unshare -m bash -c 'overlay "$UNSALT_NEW_USER" && exec "$@"' user "$0" "$repository"
    else
        export PREFIX=$UNSALT_NEW_USER/prefix
        export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib
        echo "no overlay of the file system here: installing to a PREFIX"
        "$0" "$repository"
    fi
    exit
fi

. "$here/tap.sh"
user=$UNSALT_NEW_USER
clone=$user/unsalt
sessions=3
records=400
cd "$user" || exit 2
# Nothing here needs another user's rights, and a bare machine has no sudo.
if [ "$(id -u)" = 0 ] || [ -n "${PREFIX:-}" ]; then
    mkdir -p "$user/bin"
    printf '#!/bin/sh\nexec "$@"\n' > "$user/bin/sudo"
    chmod 755 "$user/bin/sudo"
    PATH=$user/bin:$PATH
fi

# command_of START: the one indented line of the README that begins so.
command_of() {
    local found
    found=$(grep -E "^    $1" "$clone/README.md" | sed 's/^    //')
    [ "$(grep -c . <<< "$found")" = 1 ] || { echo "the README has not one command '$1': $found" >&2; return 1; }
    echo "$found"
}

cloned() {
    git clone -q "$repository" "$clone" && [ -f "$clone/README.md" ]
}

extracted() {
    command_of "make demo" && command_of "make lib" && command_of "cc -o consumer" && command_of "\./consumer" &&
        awk '/^```/ { inside = /^```c$/ && !n++; next } inside' "$clone/README.md" > "$user/consumer.c" &&
        grep -q '^int main(' "$user/consumer.c" && [ "$(wc -l < "$user/consumer.c")" -le 30 ]
}

# in_folder FOLDER SECONDS COMMAND-LINE: as typed there.
in_folder() {
    (cd "$1" && timeout -k 5 "$2" bash -c "$3" < /dev/null)
}

demo() {
    in_folder "$clone" 180 "$(command_of "make demo")" > demo.out 2>&1 &&
        tail -n 1 demo.out | grep -E '^demo: .*out_of_order=0 .*lost=0 conserved=yes$' ||
        { tail -n 20 demo.out; return 1; }
}

installed() {
    in_folder "$clone" 120 "$(command_of "make lib")" && pkg-config --exists unsalt
}

built() {
    in_folder "$user" 60 "$(command_of "cc -o consumer")"
}

topic() {
    cc -O1 -o salted-topic "$here/salted-topic.c" -lrdkafka &&
        timeout 60 ./salted-topic "$UNSALT_TEST_BOOTSTRAP" my-topic "$sessions" "$records"
}

# reads OUTPUT COMMAND-LINE: runs it until it has printed all records, then ends it as a user does, by Ctrl-C.
reads() {
    local output=$1 line pid i all=$((sessions * records))
    line=${2/localhost:9092/$UNSALT_TEST_BOOTSTRAP}
    : > "$output"
    timeout -k 5 60 stdbuf -oL $line > "$output" 2> "$output.err" < /dev/null &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(wc -l < "$output")" -lt "$all" ] && kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done
    kill -INT "$pid" 2> /dev/null
    wait "$pid" && [ "$(wc -l < "$output")" = "$all" ] || {
        echo "status $?, $(wc -l < "$output") lines of $all"
        tail -n 20 "$output.err"
        return 1
    }
}

# in_order OUTPUT: each session by ascending number, without a gap, to the end.
in_order() {
    sed -nE 's/.*"sessionId":"([^"]*)","globalSeq":([0-9]+).*/\1 \2/p' "$1" |
        awk -v sessions=$sessions -v records=$records '
        $2 != ++last[$1] { if (!bad++) print "line " NR ": " $1 " " $2 " comes after " last[$1] - 1; last[$1] = $2 }
        END {
            for (session in last) { n++; if (last[session] != records) bad++ }
            exit bad > 0 || n != sessions
        }'
}

consumes() {
    reads ordered "$(command_of "\./consumer")" && in_order ordered
}

# Otherwise the order would prove nothing.
plain_differs() {
    make -s -C "$clone" examples &&
        reads plain "$clone/build/release/examples/02_plain_consumer localhost:9092 plain my-topic" &&
        ! in_order plain
}

uninstalled() {
    in_folder "$clone" 60 "sudo make uninstall" && ! pkg-config --exists unsalt &&
        [ -z "$(find "${PREFIX:-/usr/local}" -name '*unsalt*' -print -quit)" ]
}

check "the repository can be cloned" cloned
check "the README names each command once, and its consumer has 30 lines" extracted
check "the demo runs" demo
check "the library installs" installed
check "the consumer builds" built
check "a salted topic stands ready" topic
check "the consumer prints each session in its order, and ends at Ctrl-C" consumes
check "a plain consumer does not" plain_differs
check "the library uninstalls without a trace" uninstalled
finish
