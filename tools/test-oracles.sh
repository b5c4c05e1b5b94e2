#!/usr/bin/env bash
# Tests against Python libraries that Debian lacks, run live: the suite itself uses golden files. Needs PyPI; run before an issue is called resolved.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/oracles
[ -x $venv/bin/pip ] || python3 -m venv $venv

# The official openai client drives the server.
$venv/bin/pip -q install openai
keys=$(mktemp); log=$(mktemp)
echo "oracle-key" > "$keys"
build/release/bin/halfbyte serve -q --model demo --port 0 --api-key-file "$keys" 2> "$log" &
server=$!
trap 'kill $server 2>/dev/null || true; rm -f "$keys" "$log"' EXIT
for _ in $(seq 100); do grep -q 'serving' "$log" && break; sleep 0.1; done
$venv/bin/python tests/e2e/server/openai_client.py "$(grep -o 'http://.*' "$log")" oracle-key build/release/bin/halfbyte
