#!/bin/bash
# usage: verify.sh [WORKDIR]
#
# Rebuilds everything from nothing and compares with the committed artefacts,
# byte for byte. Without WORKDIR, in a fresh directory that is removed after.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

COMMITTED=$(cd -- "$SCRIPTS/../../internal/machine/cpython" && pwd)
FILES=(python.wasm.zst image.zst manifest.json LICENSE.cpython LICENSE.linked)

compare() {
  local file differing=()
  for file in "${FILES[@]}"; do
    cmp -s "$COMMITTED/$file" "$1/$file" || differing+=("$file")
  done
  [[ ${#differing[@]} -eq 0 ]] || die "not what the recipe makes: ${differing[*]}"
  note "the committed artefacts are what the recipe makes"
}

main() {
  [[ $# -le 1 ]] || die "usage: verify.sh [WORKDIR]"
  local work=${1-}
  if [[ -z $work ]]; then
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # the directory's name is known now
    trap "rm -rf '$work'" EXIT
  elif [[ -e $work/stamps ]]; then
    die "$work has been built in; the proof needs a fresh directory"
  fi
  "$SCRIPTS/build.sh" "$work" "$work/out"
  compare "$work/out"
}

main "$@"
