#!/usr/bin/env bash
# Prints the accuracy table of docs/modes.md: KL divergence, top-1 agreement and perplexity of every mode against `none`.
#   tools/measure_modes.sh DOCUMENTS.jsonl [MODEL] [further flags of eval compare]
set -euo pipefail
documents=$1; model=${2:-demo}; shift; [ $# -gt 0 ] && shift
program="$(dirname "$0")/../build/release/bin/halfbyte"
echo "| mode | form | mean KL(none, mode) | worst KL | top-1 agreement | perplexity (none) |"
echo "|---|---|---|---|---|---|"
for form in --exact --rounded; do
  for mode in w4a16 w4a8 nvfp4_online modelopt_fp4; do
    "$program" eval compare -q --json --model "$model" --documents "$documents" --quantization $mode --against none $form "$@" |
      python3 -c "import json,sys; r=json.load(sys.stdin); print(f'| {\"$mode\"} | {\"$form\"[2:]} | {r[\"mean_kl\"]:.6f} | {r[\"worst_kl\"]:.3f} | {r[\"top1_agreement\"]:.4f} | {r[\"perplexity\"]:.5f} ({r[\"perplexity_against\"]:.5f}) |')"
  done
done
