#!/usr/bin/env bash
# Installs, builds and lets the shipped demo model answer a small word problem.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/build.sh
build/release/bin/halfbyte generate --model demo --chat \
  --prompt "${1:-Olga saves \$23 every week for 13 weeks. A bicycle costs \$311. How many more dollars are needed to buy it?}"
