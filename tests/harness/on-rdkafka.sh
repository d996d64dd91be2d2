#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a command on one librdkafka: on-rdkafka.sh installed|newest VERSION-PROGRAM COMMAND...
# VERSION-PROGRAM prints which one the linker finds; it is said, and checked, before the command starts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
which=$1
version_program=$2
shift 2
if [ "$which" = newest ]; then
    installed=$("$version_program")
    LD_LIBRARY_PATH=$("$here/librdkafka-newest.sh")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    if [ "$("$version_program")" = "$installed" ]; then
        echo "on-rdkafka: the newest librdkafka was asked for, but $installed is loaded" >&2
        exit 1
    fi
fi
echo "librdkafka: $("$version_program")"
exec "$@"
