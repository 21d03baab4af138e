#!/bin/bash
# usage: rust.sh CRATE [OUTDIR | --verify]
#
# Builds a module for package rustmodule from the folder of a crate, such as graph/engine, with
# the versions of its Cargo.lock and the compiler of its rust-toolchain.toml. It writes the
# module, its data and its manifest to OUTDIR, or to the crate. The bytes do not depend on where
# this runs. --verify compares them with the committed ones. RUST_TARGET keeps what Cargo builds
# for the next time.
set -euo pipefail

REPO=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)

main() {
  [[ $# -eq 1 || $# -eq 2 ]] || { sed -n 2p "${BASH_SOURCE[0]}" >&2; exit 2; }
  local crate work out
  crate=$(cd -- "$1" && pwd)
  out=${2:-$crate}
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory's name is known now
  trap "rm -rf '$work'" EXIT
  [[ $out != --verify ]] || out=$work/out
  mkdir -p "$out"
  out=$(cd -- "$out" && pwd)

  cd "$crate"
  local target=${RUST_TARGET:-$work/target} cargo=${CARGO_HOME:-$HOME/.cargo}
  # Paths are in the texts of panics. These flags replace those of .cargo/config.toml.
  local flags name
  flags=$(sed -n 's/^ *"-C", "\(.*\)",$/-C \1/p' .cargo/config.toml | tr '\n' ' ')
  name=$(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | head -n 1 | tr - _)
  # Without it, crate const-random puts other numbers into each build.
  CONST_RANDOM_SEED=rlm \
    RUSTFLAGS="$flags --remap-path-prefix=$cargo=/cargo --remap-path-prefix=$crate=/engine" \
    CARGO_TARGET_DIR=$target cargo build --release --locked --target wasm32-wasip1

  cd "$REPO"
  scripts/run.sh wasm/packrust "$target/wasm32-wasip1/release/$name.wasm" \
    "$(cd "$crate" && rustc --version)" "$out"
  [[ ${2:-} == --verify ]] || return 0
  local file
  for file in engine.wasm.zst data.zst manifest.json; do
    cmp "$crate/$file" "$out/$file"
  done
  echo "the committed module is what the recipe makes"
}

main "$@"
