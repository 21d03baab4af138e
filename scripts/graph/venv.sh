#!/usr/bin/env bash
# usage: venv.sh [DIR]
#
# Makes a virtual environment with the engines of requirements.txt, unless there is one, and
# prints the path of its Python.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/rlm/graph-engines}

if ! cmp -s "$here/requirements.txt" "$dir/requirements.txt"; then
	python3 -m venv --clear "$dir"
	"$dir/bin/pip" install -q --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
		-r "$here/requirements.txt"
	cp "$here/requirements.txt" "$dir/requirements.txt"
fi
printf '%s\n' "$dir/bin/python"
