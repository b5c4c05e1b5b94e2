#!/usr/bin/env bash
# Tests against Python libraries that Debian lacks, run live: the suite itself uses golden files. Needs PyPI; run before an issue is called resolved.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/oracles
[ -x $venv/bin/pip ] || python3 -m venv $venv

# What `quantize` writes, read by ModelOpt and compressed-tensors and run by transformers; the demo model, and the reference models where they stand beside.
$venv/bin/pip -q install torch compressed-tensors nvidia-modelopt transformers safetensors requests
models=(demo)
for m in producers/source-bf16 models/mixtral models/mixtral-fp8-block models/qwen3_moe-fp8-tensor models/qwen3_moe-fp8-channel; do
  if [ -d "../shared/reference/$m" ]; then models+=("../shared/reference/$m"); fi
done
$venv/bin/python tests/convert/decode_oracles.py build/release/bin/halfbyte "${models[@]}"

# serve FLAGS...: a server over the demo model; its address is in $url.
work=$(mktemp -d); servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
echo "oracle-key" > "$work/keys"
serve() {
  local log="$work/log-${#servers[@]}"
  build/release/bin/halfbyte serve -q --model demo --port 0 --api-key-file "$work/keys" "$@" 2> "$log" &
  servers+=($!)
  for _ in $(seq 300); do grep -q 'serving' "$log" && break; sleep 0.1; done
  url=$(grep -o 'http://.*' "$log")
}

# The official openai client drives every route.
$venv/bin/pip -q install openai
serve --max-batch 1 --max-queue 1 --request-timeout 2 --device reference; small=$url
serve --allow-weight-root models
$venv/bin/python tests/e2e/server/openai_client.py "$url" oracle-key build/release/bin/halfbyte "$small"

# The chat page in headless Chromium: Debian's browser, driven by Playwright. On the slow device, so that a stream can be seen and stopped.
if command -v chromium > /dev/null; then
  $venv/bin/pip -q install playwright
  serve --device reference
  $venv/bin/python tests/e2e/server/chat_page.py "$url" oracle-key "$(command -v chromium)"
else
  echo "chat page: not tested, there is no chromium (apt-get install chromium)"
  exit 1
fi
