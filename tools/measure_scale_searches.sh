#!/usr/bin/env bash
# Prints the table of docs/formats.md: the error of each search for block scales on Gaussian weights, and the perplexity of a model whose experts were converted with it.
#   tools/measure_scale_searches.sh GAUSSIAN_BENCH DOCUMENTS.jsonl... [MODEL=demo]        GAUSSIAN_BENCH: build/.../bin/quantize_bench
set -euo pipefail
bench=$1; shift
model=${MODEL:-demo}
program="$(dirname "$0")/../build/release/bin/halfbyte"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
errors=$("$bench" --mib 0)
perplexity() { "$program" eval perplexity -q --json --model "$1" --documents "$2" --quantization "$3" --exact | python3 -c 'import json,sys; print("%.5f" % json.load(sys.stdin)["perplexity"])'; }
header="| conversion | relative RMSE on Gaussian weights |"; rule="|---|---|"
for d in "$@"; do header+=" perplexity: $(basename "$d" .jsonl) |"; rule+="---|"; done
echo "$header"; echo "$rule"
row="| none (BF16) | 0 |"
for d in "$@"; do row+=" $(perplexity "$model" "$d" none) |"; done
echo "$row"
while IFS='|' read -r name bench_name flags; do
  rm -rf "$out/m"
  # shellcheck disable=SC2086
  "$program" quantize -q --model "$model" --out "$out/m" $flags > /dev/null
  row="| \`$flags\`$name | $(grep "^$bench_name *relative" <<< "$errors" | sed 's/.*RMSE \([0-9.]*\).*/\1/') |"
  for d in "$@"; do row+=" $(perplexity "$out/m" "$d" w4a16) |"; done
  echo "$row"
done <<'ROWS'
 (default)|modelopt|--scale-search none
|modelopt 4over6|--scale-search 4over6
|modelopt sweep|--scale-search sweep
 (what a load makes)|load-time 4over6|--contract online
ROWS
