#!/usr/bin/env bash
# usage: scripts/run.sh PROGRAM [ARGUMENT...]
#
# Runs a Go program of this folder, such as corpus or wasm/pack, in the caller's folder. The
# programs are a module of their own, scripts/go.mod, so `go run` does not find them from elsewhere.
set -euo pipefail

if [[ -n ${RUN_FROM-} ]]; then # go run starts this script with the program
	cd "$RUN_FROM"
	unset RUN_FROM
	exec "$@"
fi

program=${1:?give the folder of a program below scripts}
shift
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
RUN_FROM=$PWD exec go run -C "$scripts" -exec "'$scripts/run.sh'" "./$program" "$@"
