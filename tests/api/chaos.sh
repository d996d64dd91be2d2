#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The checker of chaos runs finds what is planted, and nothing else; a plan depends on its seed alone.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
PYTHONUTF8=1 exec python3 tests/chaos/check_test.py
