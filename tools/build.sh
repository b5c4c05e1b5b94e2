#!/usr/bin/env bash
# Installs what is missing and builds the release preset; used by demo.sh and test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/install-deps.sh
# Parallel, but never more compilers than memory allows (2 GiB each).
jobs=$(nproc); memory=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
[ "$memory" -ge 1 ] && [ "$memory" -lt "$jobs" ] && jobs=$memory
cmake --preset release
cmake --build --preset release -j "$jobs"
