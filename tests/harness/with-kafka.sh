#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a command with a fresh Kafka cluster on the loopback interface, and ends the cluster whatever happens:
#
#   with-kafka.sh [-v VERSION] [-n BROKERS] -- COMMAND...
#
# The command finds in its environment
#   UNSALT_TEST_BOOTSTRAP    host:port,...
#   UNSALT_TEST_BROKER_PIDS  process ids, in the order of the broker ids, separated by blanks
#   UNSALT_TEST_KAFKA_DIR    the cluster's folder, for `kafka.sh stop|start DIR ID`
#   UNSALT_TEST_KAFKA_SH     path of kafka.sh
#   UNSALT_TEST_KAFKA_VERSION
# The result is the command's.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=4.3.1
brokers=1
while getopts v:n: opt; do
    case $opt in
    v) version=$OPTARG ;;
    n) brokers=$OPTARG ;;
    *) sed -n '3,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ "${1:-}" != -- ] || shift
[ $# -gt 0 ] || { echo "with-kafka: no command" >&2; exit 2; }

"$here/kafka.sh" jars "$version" > /dev/null
dir=$(mktemp -d "${TMPDIR:-/tmp}/unsalt-kafka.XXXXXX")
child=
watchdog=

cleanup() {
    local status=$?
    trap '' INT TERM HUP
    [ -z "$child" ] || kill -TERM -- "-$child" 2> /dev/null || true
    [ -z "$watchdog" ] || kill "$watchdog" 2> /dev/null || true
    "$here/kafka.sh" down "$dir" || true
    exit $status
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# If this script is killed without a chance to clean up, the watchdog does it.
setsid bash -c 'trap "" INT HUP
    while kill -0 "$1" 2> /dev/null; do sleep 1; done
    [ ! -s "$3/child" ] || kill -KILL -- "-$(cat "$3/child")"
    "$2" down "$3"' watchdog $$ "$here/kafka.sh" "$dir" < /dev/null > /dev/null 2>&1 &
watchdog=$!

started=$(date +%s%N)
UNSALT_TEST_BOOTSTRAP=$("$here/kafka.sh" up "$dir" "$brokers" "$version")
UNSALT_TEST_BROKER_PIDS=$("$here/kafka.sh" pids "$dir" | tr '\n' ' ')
export UNSALT_TEST_BOOTSTRAP UNSALT_TEST_BROKER_PIDS
export UNSALT_TEST_KAFKA_DIR=$dir UNSALT_TEST_KAFKA_SH=$here/kafka.sh UNSALT_TEST_KAFKA_VERSION=$version
echo "kafka: $version, brokers: $brokers, at $UNSALT_TEST_BOOTSTRAP," \
    "up after $((($(date +%s%N) - started) / 1000000)) ms" >&2

# In a process group of its own, so that a signal ends all of it.
set -m
"$@" &
child=$!
set +m
echo "$child" > "$dir/child"
status=0
wait "$child" || status=$?
child=
exit $status
