#!/bin/bash
# usage: graph.sh OUTDIR | --verify
#
# Builds the engine of package graph from graph/engine, with the versions of Cargo.lock and the
# compiler of rust-toolchain.toml, and writes its module, data and manifest to OUTDIR. The bytes
# do not depend on where this runs. --verify compares them with the committed ones.
# GRAPH_TARGET keeps what Cargo builds for the next time.
set -euo pipefail

REPO=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
ENGINE=$REPO/graph/engine

main() {
  [[ $# -eq 1 ]] || { sed -n 2p "${BASH_SOURCE[0]}" >&2; exit 2; }
  local out=$1 work
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory's name is known now
  trap "rm -rf '$work'" EXIT
  [[ $out != --verify ]] || out=$work/out
  mkdir -p "$out"
  out=$(cd -- "$out" && pwd)

  cd "$ENGINE"
  local target=${GRAPH_TARGET:-$work/target} cargo=${CARGO_HOME:-$HOME/.cargo}
  # Paths are in the texts of panics. These flags replace those of .cargo/config.toml.
  local flags
  flags=$(sed -n 's/^ *"-C", "\(.*\)",$/-C \1/p' .cargo/config.toml | tr '\n' ' ')
  RUSTFLAGS="$flags --remap-path-prefix=$cargo=/cargo --remap-path-prefix=$ENGINE=/engine" \
    CARGO_TARGET_DIR=$target cargo build --release --locked --target wasm32-wasip1

  cd "$REPO"
  go run ./scripts/wasm/packgraph "$target/wasm32-wasip1/release/graph_engine.wasm" \
    "$(cd "$ENGINE" && rustc --version)" "$out"
  [[ $1 == --verify ]] || return 0
  local file
  for file in engine.wasm.zst data.zst manifest.json; do
    cmp "$ENGINE/$file" "$out/$file"
  done
  echo "the committed engine is what the recipe makes"
}

main "$@"
