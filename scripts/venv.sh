#!/usr/bin/env bash
# usage: venv.sh NAME
#
# Makes a virtual environment with the packages of scripts/NAME/requirements.txt, unless there
# is one, and prints the path of its Python.
set -euo pipefail

[[ $# -eq 1 ]] || { sed -n 2p "${BASH_SOURCE[0]}" >&2; exit 2; }
wanted=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/$1/requirements.txt
dir=${XDG_CACHE_HOME:-$HOME/.cache}/rlm/$1-packages

if ! cmp -s "$wanted" "$dir/requirements.txt"; then
	python3 -m venv --clear "$dir"
	"$dir/bin/pip" install -q --disable-pip-version-check --no-cache-dir --no-compile --no-deps \
		--require-hashes -r "$wanted"
	cp "$wanted" "$dir/requirements.txt"
fi
printf '%s\n' "$dir/bin/python"
