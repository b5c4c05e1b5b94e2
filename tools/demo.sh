#!/usr/bin/env bash
# Installs, builds and lets the shipped demo model answer a small word problem.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/build.sh
build/release/bin/halfbyte generate --model demo --chat \
  --prompt "${1:-Tom has 3 boxes with 4 apples each. He eats 2 apples. How many apples are left?}"
