#!/bin/bash
# usage: native-python.sh DIR
#
# Builds CPython natively from the Debian source that the WebAssembly build uses
# too, and prints the path of the binary. What DIR has already is not rebuilt.
# The binary freezes the standard library, and is what benchmarks compare with.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=wasm/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/wasm/lib.sh"

configure_native() {
  mkdir -p "$WORK/native"
  (cd "$WORK/native" && quiet "$WORK/logs/native-configure.log" ../src/python/configure \
    --disable-test-modules --without-ensurepip CFLAGS=-O2)
}

make_native() {
  quiet "$WORK/logs/native-make.log" make -C "$WORK/native" -j"$(nproc)"
}

main() {
  [[ $# -eq 1 ]] || die "usage: native-python.sh DIR"
  mkdir -p "$1"
  WORK=$(cd -- "$1" && pwd)
  need_debian
  once python-source get_python_source
  reproducible
  once native-configure configure_native
  once native-make make_native
  printf '%s\n' "$WORK/native/python"
}

main "$@"
