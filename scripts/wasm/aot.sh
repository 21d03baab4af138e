#!/bin/bash
# usage: aot.sh [--relock | --train | --verify] [WORKDIR [OUTDIR]]
#
# From the committed module and image of internal/machine/cpython to machine code: wasm2c, our changes
# to its output (see aot/rewrite.go), and clang with a profile. OUTDIR is the repository, unless
# another folder is given. The bytes do not depend on WORKDIR, where finished steps are not
# repeated. --relock accepts what Debian offers now. --train makes the profile anew, which is
# needed when the module has changed. --verify builds in a fresh folder and compares. JOBS is
# the number of compilers at a time.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

REPO=$(cd -- "$SCRIPTS/../.." && pwd)
AOT=$SCRIPTS/aot
LOCK=$AOT/inputs.sha256
ARCHITECTURES=(amd64 arm64)

TOOLS=(
  clang-19/bookworm llvm-19/bookworm lld-19/bookworm libclang-cpp19/bookworm
  libllvm19/bookworm libclang-common-19-dev/bookworm libclang1-19/bookworm
  llvm-19-linker-tools/bookworm libclang-rt-19-dev/bookworm
)
# wasm2c of trixie wants trixie's C library, which it gets in a folder of its own.
WABT=(wabt/trixie libc6/trixie libgcc-s1/trixie libssl3t64/trixie libstdc++6/trixie)

FLAGS=(
  -std=gnu99 -O2 -Wno-everything -ffreestanding -fPIE -ffp-contract=off -fno-math-errno
  -fno-stack-protector -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-ident
  -ffunction-sections -fno-finite-loops
  # A call that becomes a jump counts neither fuel nor stack: a guest could go on for ever.
  -fno-optimize-sibling-calls
  # The stack's margin is for frames of at most this size: see internal/machine/aot. -w would hide it.
  -Wframe-larger-than=65536 -Werror=frame-larger-than
  -DWASM_RT_NONCONFORMING_UNCHECKED_STACK_EXHAUSTION=1 # the rewritten code checks it
)
# On arm64, x28 is Go's even while a guest runs, and x18 belongs to some systems. Processors of
# the kind Cortex-A53 make mistakes, which code can avoid.
declare -A TARGET=(
  [amd64]="--target=x86_64-unknown-linux -march=x86-64-v2"
  [arm64]="--target=aarch64-unknown-linux -march=armv8-a -ffixed-x18 -ffixed-x28 \
-fomit-frame-pointer -mfix-cortex-a53-835769"
)
# On amd64, an access outside the memory faults, and internal/machine/aot makes a trap of it. On arm64, the
# code checks each access.
declare -A CHECKS=(
  [amd64]="-DWASM_RT_MEMCHECK_GUARD_PAGES=1 -DWASM_RT_USE_MMAP=1 \
-DWASM_RT_SKIP_SIGNAL_RECOVERY=1 -DAOT_FORCE_READS=1"
  [arm64]="-DWASM_RT_MEMCHECK_BOUNDS_CHECK=1 -DWASM_RT_USE_MMAP=0"
)
declare -A LINK=([amd64]="-m elf_x86_64 -u aot_guarded" [arm64]="-m aarch64linux --fix-cortex-a53-843419")

# ---- tools ------------------------------------------------------------------------

get_tools() {
  fetch_debs "${TOOLS[@]}" "${WABT[@]}"
  [[ -n ${RELOCK-} ]] || verify "${TOOLS[@]}" "${WABT[@]}"
  local package deb
  for package in "${TOOLS[@]}" "${WABT[@]}"; do
    for deb in "$WORK/inputs/${package%/*}"_*.deb; do
      if [[ $package == */trixie ]]; then
        dpkg -x "$deb" "$WORK/wabt"
      else
        dpkg -x "$deb" "$WORK/tool"
      fi
    done
  done
}

llvm() {
  local tool=$1
  shift
  LD_LIBRARY_PATH=$WORK/tool/usr/lib/x86_64-linux-gnu:$WORK/tool/usr/lib/llvm-19/lib \
    "$WORK/tool/usr/lib/llvm-19/bin/$tool" "$@"
}

wabt() {
  local tool=$1
  shift
  "$WORK/wabt/usr/lib64/ld-linux-x86-64.so.2" \
    --library-path "$WORK/wabt/usr/lib/x86_64-linux-gnu" "$WORK/wabt/usr/bin/$tool" "$@"
}

tool() { (cd "$REPO" && scripts/run.sh wasm/aot "$@"); }

# ---- C ----------------------------------------------------------------------------------

# translate MODULE DIR UNITS: the C code of a module, in that many files.
translate() {
  rm -rf "$2"
  mkdir -p "$2/raw"
  wabt wasm2c "$1" -o "$2/raw/guest.c" -n guest --num-outputs="$3"
  tool rewrite "$2/raw" "$2/c"
}

# clang_for ARCH DIR OPTION...: clang for the code of a guest, in the folder of its C: a profile
# has the names of files. CHECKED is the architecture whose checks the code has, if not its own.
clang_for() (
  arch=$1 dir=$2
  shift 2
  cd "$dir/c"
  # shellcheck disable=SC2086 # the target and the checks are words
  llvm clang ${TARGET[$arch]} ${CHECKS[${CHECKED:-$arch}]} "${FLAGS[@]}" "-ffile-prefix-map=$WORK=/build" \
    "-ffile-prefix-map=$AOT=/build/aot" -isystem "$AOT/c/include" \
    -isystem "$WORK/wabt/usr/include" -I"$dir/c" -I"$AOT/c" "$@"
)

# compile ARCH DIR OUT OPTION...: the objects of a guest.
compile() {
  local arch=$1 dir=$2 out=$3 unit
  shift 3
  mkdir -p "$out"
  for unit in "$dir"/c/*.c; do
    while (($(jobs -rp | wc -l) >= ${JOBS:-$(nproc)})); do wait -n; done
    compile_unit "$arch" "$dir" "$out" "$(basename "$unit" .c)" "$@" &
  done
  for unit in $(jobs -p); do wait "$unit"; done
  clang_for "$arch" "$dir" -c "$dir/c/table.S" -o "$out/table.o"
}

# compile_unit ARCH DIR OUT NAME OPTION...: one object. Where the code forces loads, clang must
# know that this changes no memory of the guest. Otherwise it would read all anew behind each load.
# C has no words for that, but clang's intermediate code has.
compile_unit() {
  local arch=$1 dir=$2 out=$3 name=$4
  shift 4
  if [[ ${CHECKS[${CHECKED:-$arch}]} != *AOT_FORCE_READS* ]]; then
    clang_for "$arch" "$dir" "$@" -c "$name.c" -o "$out/$name.o"
    return
  fi
  clang_for "$arch" "$dir" "$@" -Xclang -disable-llvm-passes -S -emit-llvm "$name.c" -o "$out/$name.ll"
  sed -E -i 's/(call void asm sideeffect "", "[rx],[^"]*"\([^)]*\)) (#[0-9]+)/\1 memory(inaccessiblemem: readwrite) \2/' \
    "$out/$name.ll"
  clang_for "$arch" "$dir" "$@" -x ir -c "$out/$name.ll" -o "$out/$name.o"
}

# link ARCH DIR OUT BLOB: a blob of the objects in OUT.
link() {
  local arch=$1 dir=$2 out=$3 entry keep=()
  clang_for "$arch" "$dir" -fno-builtin -c "$AOT/c/runtime.c" -o "$out/runtime.o"
  clang_for "$arch" "$dir" -c "$AOT/c/enter_$arch.S" -o "$out/enter.o"
  while read -r entry; do
    keep+=(-u "$entry")
  done < <(sed -n 's/^void \(aot_export_[0-9]*\)(.*/\1/p' "$dir/c/glue.c")
  # shellcheck disable=SC2086 # the options are words
  llvm lld -flavor gnu ${LINK[$arch]} -static --image-base=0 --emit-relocs \
    --gc-sections -z noexecstack -z separate-code -z max-page-size=4096 -e aot_begin \
    -u aot_resume -u aot_start -u aot_offsets "${keep[@]}" -o "$out/code.elf" "$out"/*.o
  [[ $arch != arm64 ]] || check_registers "$out/code.elf"
  tool pack "$out/code.elf" "$dir/c" "$4"
}

# check_registers ELF: the code for arm64 has two registers less, see TARGET.
check_registers() {
  if llvm llvm-objdump -d --no-show-raw-insn "$1" | grep -E '[^a-z0-9_][xw](18|28)\b' >&2; then
    die "$1 uses a register that is not the guest's"
  fi
}

# ---- profile --------------------------------------------------------------------------

# train: the profiles of programs that are not those of the benchmarks.
train() {
  local arch
  for arch in "${ARCHITECTURES[@]}"; do
    CHECKED=$arch train_for "$arch"
  done
}

# train_for ARCH: the profile of code with the checks of ARCH, which runs here.
train_for() {
  local out=$WORK/train-$1
  compile amd64 "$WORK/python" "$out" -fprofile-generate -Wno-frame-larger-than
  # shellcheck disable=SC2086 # the checks are words
  llvm clang --target=x86_64-linux-gnu "${FLAGS[@]:0:3}" "${FLAGS[@]: -1}" ${CHECKS[$1]} \
    -isystem "$WORK/wabt/usr/include" -I"$WORK/python/c" -I"$AOT/c" -c "$AOT/train/host.c" -o "$out/host.o"
  llvm clang --target=x86_64-linux-gnu -fprofile-generate -no-pie -o "$out/host" "$out"/*.o
  (
    ulimit -S -s "$(ulimit -H -s)" # some programs recurse deeply
    LLVM_PROFILE_FILE=$out/raw quiet "$WORK/logs/train-$1.log" "$out/host" "$WORK/image.bin" \
      "$AOT"/train/*.py "$REPO"/internal/testing/tiersuite/testdata/lang/*.py
  )
  llvm llvm-profdata merge -o "$WORK/profile_$1" "$out/raw"
}

# ---- all of it ------------------------------------------------------------------------------

flags() {
  local arch
  printf 'compile=%s\n' "${FLAGS[*]}"
  for arch in "${ARCHITECTURES[@]}"; do
    printf 'target_%s=%s\n' "$arch" "${TARGET[$arch]}"
    printf 'checks_%s=%s\n' "$arch" "${CHECKS[$arch]}"
    printf 'profile_%s=%s\n' "$arch" "-fprofile-use=/build/profile_$arch"
    printf 'link_%s=%s\n' "$arch" "${LINK[$arch]}"
  done
}

# clang changes single functions before it reads the profile, and compiles these without it.
python_code() { # ARCH
  [[ -e $WORK/profile_$1 ]] || die "the profiles are of another module: use --train"
  compile "$1" "$WORK/python" "$WORK/python-$1" "-fprofile-use=$WORK/profile_$1"
  link "$1" "$WORK/python" "$WORK/python-$1" "$WORK/code_$1.blob"
}

# A guest for the tests, by the same way but for the profile.
hostile_code() { # ARCH
  compile "$1" "$WORK/hostile" "$WORK/hostile-$1"
  link "$1" "$WORK/hostile" "$WORK/hostile-$1" "$OUT/internal/machine/aot/testdata/hostile_$1.blob"
}

parse_arguments() {
  RELOCK='' TRAIN='' VERIFY=''
  case ${1-} in
  --relock) RELOCK=1 && shift ;;
  --train) TRAIN=1 && shift ;;
  --verify) VERIFY=1 && shift ;;
  esac
  [[ $# -le 2 ]] || die "usage: aot.sh [--relock | --train | --verify] [WORKDIR [OUTDIR]]"
  local work=${1:-${TMPDIR:-/tmp}/rlm-aot}
  if [[ -n $VERIFY ]]; then
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # the directory's name is known now
    trap "rm -rf '$work'" EXIT
    OUT=$work/out
  else
    OUT=${2:-$REPO}
  fi
  mkdir -p "$work" "$OUT"/internal/{cpython,aot/testdata}
  WORK=$(cd -- "$work" && pwd)
  OUT=$(cd -- "$OUT" && pwd)
}

compare() {
  local file differing=()
  while read -r file; do
    cmp -s "$REPO/$file" "$OUT/$file" || differing+=("$file")
  done < <(cd "$OUT" && find . -type f)
  [[ ${#differing[@]} -eq 0 ]] || die "not what the recipe makes: ${differing[*]}"
  note "the committed machine code is what the recipe makes"
}

main() {
  need_debian
  need_tools go
  parse_arguments "$@"
  once tools get_tools
  [[ -z $RELOCK ]] || relock
  export LC_ALL=C TZ=UTC
  tool unpack "$WORK"
  once python-c translate "$WORK/python.wasm" "$WORK/python" 8
  [[ -z $TRAIN ]] || train
  wabt wat2wasm "$REPO/internal/machine/aot/testdata/hostile.wat" -o "$OUT/internal/machine/aot/testdata/hostile.wasm"
  translate "$OUT/internal/machine/aot/testdata/hostile.wasm" "$WORK/hostile" 2
  flags >"$WORK/flags.txt"
  local arch blobs=() profile
  for arch in "${ARCHITECTURES[@]}"; do
    read -r profile _ < <(sha256sum "$WORK/profile_$arch") || true # python_code explains it
    once "python-$arch-${profile:0:16}" python_code "$arch"
    hostile_code "$arch"
    blobs+=("$arch=$WORK/code_$arch.blob")
  done
  tool describe "$LOCK" "$WORK/flags.txt" "$WORK" "$OUT/internal/machine/cpython" "${blobs[@]}"
  [[ -z $VERIFY ]] || compare
}

# conform.sh uses the steps.
[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"
