#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the benchmarks; `make bench` builds them and calls this. UNSALT_BENCH_DIR holds the programs.
# Prints a table, or with FORMAT=json one JSON object per line; everything else goes to stderr.
# UNSALT_TEST_BOOTSTRAP, if set, names the cluster to use; else one is started for the time of the run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${UNSALT_BENCH_DIR:?use: make bench}
export FORMAT=${FORMAT:-}

echo "bench: $(nproc) processors, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" >&2
"$programs/core"
if [ -n "${UNSALT_TEST_BOOTSTRAP:-}" ]; then
    "$programs/consumer"
else
    # The JVM's own choice of compiler: the broker must not be the limit.
    KAFKA_JAVA_OPTS=${KAFKA_JAVA_OPTS:--Xmx1g} "$here/../tests/harness/with-kafka.sh" -- "$programs/consumer"
fi
