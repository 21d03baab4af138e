#!/bin/bash
# usage: conform.sh spec [WORKDIR]
#        conform.sh random MINUTES [WORKDIR]
#        conform.sh python MINUTES [WORKDIR]
#
# Sends many modules through the recipe of aot.sh and compares the machine code with wazero,
# see aot/conform. spec takes WebAssembly's own tests, which lie in wazero's source. random
# takes modules of wasm-smith, which needs cargo, and ends after that many minutes. python runs
# random Python in the two engines of tier wasm. WORKDIR can be one of aot.sh. ARCH=arm64 makes
# code for arm64 and runs both engines in QEMU (Debian's qemu-user).
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=aot.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/aot.sh"

ARCH=${ARCH:-amd64}

conform() { "$WORK/bin/conform" "$@"; }

# run_both COMMAND...: conform on the processor of the code.
run_both() {
  if [[ $ARCH == amd64 ]]; then
    conform "$@"
  else
    qemu-aarch64 "$WORK/bin/conform-$ARCH" "$@"
  fi
}

tool() { "$WORK/bin/aot" "$@"; }

build_tools() {
  mkdir -p "$WORK/bin"
  (
    cd "$REPO/scripts"
    go build -o "$WORK/bin/" ./wasm/aot ./wasm/aot/conform
    [[ $ARCH == amd64 ]] ||
      GOARCH=$ARCH go build -o "$WORK/bin/conform-$ARCH" ./wasm/aot/conform
  )
}

# make_blob BASE: machine code of BASE.wasm in BASE.blob, or why there is none in BASE.refused.
make_blob() {
  local base=$1 dir=$1.build
  rm -rf "$dir" "$base.refused"
  mkdir -p "$dir/raw"
  if ! {
    conform guest "$base.wasm" "$dir/guest.wasm" &&
      wabt wasm2c "$dir/guest.wasm" -o "$dir/raw/guest.c" -n guest --num-outputs=2 &&
      tool rewrite "$dir/raw" "$dir/c"
  } 2>"$base.refused"; then
    rm -rf "$dir"
    return
  fi
  rm "$base.refused"
  compile "$ARCH" "$dir" "$dir/out"
  link "$ARCH" "$dir" "$dir/out" "$base.blob"
  rm -rf "$dir"
}

# spec: the tests of version 2 of the standard, but those of vectors and of the links between
# modules, which no guest has. In version 1, the tests of indirect calls have one table, as guests do.
spec() {
  local suite script name dir=$WORK/spec-$ARCH
  suite=$(cd "$REPO" && go list -m -f '{{.Dir}}' github.com/tetratelabs/wazero)
  suite+=/internal/integration_test/spectest
  mkdir -p "$dir"/{v1,v2}
  for script in "$suite"/v1/testdata/call_indirect.wast "$suite"/v2/testdata/*.wast; do
    name=$(basename "$script" .wast)
    [[ $name != simd_* && $name != linking ]] || continue
    [[ $script == */v2/* ]] && name=v2/$name || name=v1/$name
    wabt wast2json "$script" -o "$dir/$name.json"
    while read -r name; do
      [[ -e $name.blob || -e $name.refused ]] || make_blob "$name"
    done < <(sed -n "s|.*\"type\": \"module\",.*\"filename\": \"\(.*\)\.wasm\".*|$dir/${name%/*}/\1|p" "$dir/$name.json")
  done
  run_both spec "$dir"
}

# random MINUTES: batches of modules, each with a seed of its own.
random() {
  local seed dir base end=$((SECONDS + 60 * $1))
  CARGO_TARGET_DIR=$WORK/smith quiet "$WORK/logs/smith.log" \
    cargo build --release --locked --manifest-path "$AOT/smith/Cargo.toml"
  for ((seed = RANDOM * 32768 + RANDOM; SECONDS < end; seed++)); do
    dir=$WORK/random/$seed
    mkdir -p "$dir"
    "$WORK/smith/release/smith" "$seed" 20 "$dir"
    for base in "$dir"/*.wasm; do
      conform fuel "$base"
      make_blob "${base%.wasm}"
    done
    run_both random "$dir" "$seed" || die "a difference: see $dir"
    rm -rf "$dir"
  done
}

conform_main() {
  local what=${1-} minutes=${2-}
  case $what in
  spec) [[ $# -le 2 ]] && shift ;;
  random | python) [[ $minutes =~ ^[0-9]+$ && $# -le 3 ]] && shift 2 ;;
  *) false ;;
  esac || die "usage: conform.sh spec [WORKDIR] | random MINUTES [WORKDIR] | python MINUTES [WORKDIR]"
  need_debian
  need_tools go
  [[ -n ${TARGET[$ARCH]-} ]] || die "unknown ARCH $ARCH"
  [[ $ARCH == amd64 ]] || need_tools qemu-aarch64
  WORK=${1:-${TMPDIR:-/tmp}/rlm-aot}
  mkdir -p "$WORK"
  WORK=$(cd -- "$WORK" && pwd)
  build_tools
  [[ $what == python ]] || once tools get_tools
  case $what in
  spec) spec ;;
  random) random "$minutes" ;;
  python) run_both python $((RANDOM * 32768 + RANDOM)) "$minutes" ;;
  esac
}

conform_main "$@"
