#!/usr/bin/env bash
# Shows the two main jobs over a text far larger than memory should hold: a
# model-style program in a sandbox, and a run in which a model writes such programs
# and they call models. RLM_DEMO_BYTES makes the text smaller or larger.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export RLM_NO_KEEP=true # the store of the user stays as it is
size=${RLM_DEMO_BYTES:-1GiB}
text=$(mktemp "${TMPDIR:-/tmp}/rlm-demo.XXXXXX")
trap 'rm -f "$text"' EXIT

echo "--- a text of $size: help-desk tickets in more than twenty languages"
scripts/run.sh corpus -bytes "$size" -seed 7 -o "$text"

echo
echo "--- rlm exec --context TEXT examples/tickets.py"
time bin/rlm exec --context "$text" --timeout 120s examples/tickets.py

echo
echo "--- rlm ask \"How urgent are the tickets?\" --context TEXT --model scripted/examples/tickets.yaml"
echo "    (the model is SCRIPTED: examples/tickets.yaml holds its replies, and a table of words judges"
echo "    the tickets. All the rest is real: the loop, the sandbox, 400 typed sub-calls, the budget.)"
time bin/rlm ask "How urgent are the tickets?" --context "$text" --model scripted/examples/tickets.yaml --timeout 120s

if bin/rlm tiers --json | grep -q '"name":"docker"[^}]*"usable":true'; then
	echo
	echo '--- the same run, its snippets in a container: --tier docker'
	time bin/rlm ask "How urgent are the tickets?" --context "$text" --model scripted/examples/tickets.yaml --timeout 120s --tier docker
fi
