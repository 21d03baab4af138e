#!/usr/bin/env bash
# Shows the main job: a model-style program over a text far larger than memory
# should hold, in a sandbox. RLM_DEMO_BYTES makes the text smaller or larger.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

size=${RLM_DEMO_BYTES:-1GiB}
text=$(mktemp "${TMPDIR:-/tmp}/rlm-demo.XXXXXX")
trap 'rm -f "$text"' EXIT

echo "--- a text of $size: help-desk tickets in more than twenty languages"
go run ./scripts/corpus -bytes "$size" -seed 7 -o "$text"

echo
echo "--- rlm exec --context TEXT examples/tickets.py"
time bin/rlm exec --context "$text" --timeout 120s examples/tickets.py
