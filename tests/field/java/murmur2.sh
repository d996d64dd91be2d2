#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Makes tests/field/murmur2.txt again from the kafka-clients jar: murmur2.sh [FILE]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$here/run.sh" Murmur2Vectors "${1:-$here/../murmur2.txt}"
