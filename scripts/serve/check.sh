#!/usr/bin/env bash
# usage: check.sh
#
# Uses bin/rlm serve with the official clients of OpenAI, for Python and TypeScript, and asks what
# the compliance suite of Open Responses asks.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
python=$("$here/../venv.sh" serve | tail -n 1)

wanted=(openai@7.57.0 ws@8.23.0)
modules=${XDG_CACHE_HOME:-$HOME/.cache}/rlm/serve-modules
if [[ $(cat "$modules/wanted" 2>/dev/null) != "${wanted[*]}" ]]; then
	npm install --silent --no-audit --no-fund --prefix "$modules" "${wanted[@]}"
	printf '%s\n' "${wanted[*]}" >"$modules/wanted"
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
node "$modules/client.mjs" "$address"
node "$modules/socket.mjs" "$address"

# The lines of docs/how-to/serve.md that use curl.
echo 'curl() { command curl -sS "$@"; echo; }' >"$work/lines.sh"
lines "$here/../../docs/how-to/serve.md" sh | sed -n '/^curl/,/^```$/p' |
	grep -v '^```' | sed "s#http://127.0.0.1:7070/v1#$address#" >>"$work/lines.sh"
bash -euo pipefail "$work/lines.sh" | tee "$work/answers"
for want in 'Hello from the model' '"name":"triage"' '"echo":"1"' '"status":"queued"'; do
	grep -q -- "$want" "$work/answers" || { echo "no line of docs/how-to/serve.md answers $want"; exit 1; }
done
echo "the lines of docs/how-to/serve.md work with curl"
