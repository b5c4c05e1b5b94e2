#!/usr/bin/env bash
# Installs, builds and passes the whole test suite on a fresh Debian 12.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/build.sh
ctest --test-dir build/release --output-on-failure -j "$(nproc)"
