#!/bin/bash
# usage: build.sh [--relock] [WORKDIR [OUTDIR]]
#
# From Debian's packages to the artefacts of internal/machine/cpython: a toolchain, a
# native CPython, CPython for WebAssembly with the frozen standard library, and
# what pack makes of it. The bytes do not depend on WORKDIR, which may be used
# again: finished steps are skipped. --relock accepts what Debian offers now and
# rewrites inputs.sha256.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

REPO=$(cd -- "$SCRIPTS/../.." && pwd)

TARGET_FLAGS="-mbulk-memory -msign-ext -mnontrapping-fptoint -g0"
CONFIGURE_FLAGS=(
  --host=wasm32-wasi --build=x86_64-pc-linux-gnu --prefix=/usr/local
  --disable-test-modules --without-ensurepip --disable-ipv6 --with-pkg-config=no
  --with-pymalloc # off by default for WASI, which costs up to a third
  --with-system-expat # Debian's, with its security updates; CPython's copy gets none
)
# An 8 MB stack is what CPython's own limits on C recursion are made for; at the
# bottom of the memory an overflow traps instead of running into data.
# shellcheck disable=SC2054 # the commas are the linker's
LINK_FLAGS=(
  -mexec-model=reactor -z stack-size=8388608 -Wl,--stack-first
  -Wl,--initial-memory=20971520 -Wl,--export=__stack_pointer -Wl,--strip-all
)
LIBPYTHON=(
  libpython3.13.a Modules/_decimal/libmpdec/libmpdec.a
  Modules/_hacl/libHacl_Hash_SHA2.a
)
WASI_LIBS=(-ldl -lm -lwasi-emulated-signal -lwasi-emulated-getpid -lwasi-emulated-process-clocks)

# ---- toolchain --------------------------------------------------------------------

get_toolchain() {
  fetch_debs "${TOOLCHAIN_DEBS[@]}"
  [[ -n ${RELOCK-} ]] || verify "${TOOLCHAIN_DEBS[@]}"
  local deb
  for deb in "$WORK"/inputs/*.deb; do
    dpkg -x "$deb" "$WORK/tool"
  done
}

# wrapper NAME TOOL [OPTION...]: a command in WORK/bin that runs an unpacked tool.
wrapper() {
  local name=$1 tool=$2 llvm=$WORK/tool/usr/lib/llvm-19
  shift 2
  cat >"$WORK/bin/$name" <<SH
#!/bin/sh
export LD_LIBRARY_PATH='$WORK/tool/usr/lib/x86_64-linux-gnu:$llvm/lib'
exec '$llvm/bin/$tool' $* "\$@"
SH
  chmod +x "$WORK/bin/$name"
}

make_wrappers() {
  # Clang looks for its linker on the PATH under the name it has in Debian, and
  # resource files beside itself.
  local target=(--target=wasm32-wasi "--sysroot='$WORK/tool/usr'" "-ffile-prefix-map='$WORK'=/build")
  mkdir -p "$WORK/bin"
  wrapper clang clang "${target[@]}"
  wrapper clang++ clang++ "${target[@]}"
  wrapper clang-cpp clang-cpp "${target[@]}"
  wrapper wasm-ld wasm-ld
  wrapper wasm-ld-19 wasm-ld
  wrapper llvm-ar llvm-ar
  wrapper llvm-ranlib llvm-ranlib
}

# ---- libraries --------------------------------------------------------------------

# get_library NAME SOURCE: the source package of a library, into WORK/src/NAME.
get_library() {
  fetch_source "$2"
  [[ -n ${RELOCK-} ]] || verify "$2"
  unpack_source "$1" "$1"
}

# make_library NAME FOLDER OPTIONS UNIT...: WORK/NAME/libNAME.a of the C files in a folder.
make_library() {
  local name=$1 folder=$2 options=$3 unit
  shift 3
  mkdir -p "$WORK/$name"
  for unit in "$@"; do
    # shellcheck disable=SC2086 # the flags are words
    clang -O2 $TARGET_FLAGS $options -I"$folder" -c "$folder/$unit.c" -o "$WORK/$name/$unit.o"
  done
  (cd "$WORK/$name" && llvm-ar rcs "lib$name.a" "${@/%/.o}")
}

make_zlib() {
  make_library z "$WORK/src/zlib" "" \
    adler32 crc32 deflate infback inffast inflate inftrees trees zutil compress uncompr
}

# expat is configured as CPython configures its own copy, which needs CPython's pyconfig.h.
make_expat() {
  mkdir -p "$WORK/expat"
  cp "$WORK/src/python/Modules/expat/expat_config.h" "$WORK/expat"
  make_library expat "$EXPAT" "-I$WORK/expat -I$WORK/wasm" \
    xmlparse xmlrole xmltok random_getentropy
}

# ---- CPython ------------------------------------------------------------------------

# patch_python: what the guest's CPython needs and the native one does not.
patch_python() {
  rm -rf "$WORK/src/patched"
  cp -a "$WORK/src/python" "$WORK/src/patched"
  local change
  for change in long-str host-hash; do
    patch --quiet --strip 1 --directory "$WORK/src/patched" <"$SCRIPTS/$change.patch"
  done
}

# The emulated clock_nanosleep asks for absolute times, which runtimes refuse.
config_site() {
  cat <<SITE
. '$WORK/src/python/Tools/wasm/config.site-wasm32-wasi'
ac_cv_func_clock_nanosleep=no
ac_cv_lib_rt_clock_nanosleep=no
SITE
}

configure_python() {
  mkdir -p "$WORK/wasm"
  config_site >"$WORK/wasm/config.site"
  (cd "$WORK/wasm" && quiet "$WORK/logs/wasm-configure.log" env \
    CC=clang CXX=clang++ CPP=clang-cpp AR=llvm-ar RANLIB=llvm-ranlib LD=wasm-ld \
    CONFIG_SITE="$WORK/wasm/config.site" CFLAGS="-O2 $TARGET_FLAGS" \
    ZLIB_CFLAGS="-I$WORK/src/zlib" ZLIB_LIBS="-L$WORK/z -lz" \
    LIBEXPAT_CFLAGS="-I$EXPAT" \
    ../src/patched/configure "${CONFIGURE_FLAGS[@]}" --with-build-python="$NATIVE")
}

make_python() {
  quiet "$WORK/logs/wasm-make.log" make -C "$WORK/wasm" -j"$(nproc)" "${LIBPYTHON[@]}" pybuilddir.txt
}

freeze_stdlib() {
  local sysconfigdata=("$WORK"/wasm/build/lib.*/_sysconfigdata__*.py)
  mkdir -p "$WORK/frozen"
  "$NATIVE" -I -X no_debug_ranges "$SCRIPTS/freeze.py" \
    "$WORK/src/python/Lib" "${sysconfigdata[0]}" "$WORK/frozen" >&2
}

# ---- reactor --------------------------------------------------------------------------

compile() {
  # shellcheck disable=SC2086 # the flags are words
  clang -O2 -Wall $TARGET_FLAGS "-ffile-prefix-map=$SCRIPTS=/build/scripts" -I"$WORK/src/python/Include" \
    -I"$WORK/src/python/Include/internal" -I"$WORK/wasm" "$@"
}

link_reactor() {
  compile -std=gnu23 -Wno-c23-extensions -c "$WORK/frozen/frozen.c" -o "$WORK/frozen.o"
  compile -D_WASI_EMULATED_SIGNAL -c "$SCRIPTS/runner.c" -o "$WORK/runner.o"
  # shellcheck disable=SC2086 # the flags are words
  (cd "$WORK/wasm" && clang -O2 $TARGET_FLAGS "${LINK_FLAGS[@]}" -o "$WORK/reactor.wasm" \
    "$WORK/runner.o" "$WORK/frozen.o" "${LIBPYTHON[@]}" "$WORK/expat/libexpat.a" \
    "$WORK/z/libz.a" "${WASI_LIBS[@]}")
}

# ---- artefacts ---------------------------------------------------------------------------

flags() {
  cat <<FLAGS
compile=-O2 $TARGET_FLAGS
configure=${CONFIGURE_FLAGS[*]}
link=${LINK_FLAGS[*]} ${WASI_LIBS[*]}
epoch=$SOURCE_DATE_EPOCH
FLAGS
}

pack() {
  flags >"$WORK/flags.txt"
  (cd "$REPO" && scripts/run.sh wasm/pack -reactor "$WORK/reactor.wasm" \
    -preload "$SCRIPTS/preload.py" -inputs "$LOCK" -flags "$WORK/flags.txt" -out "$OUT")
}

# leading_comment FILE: the licence at the head of a C file.
leading_comment() { sed '/\*\//q' "$1"; }

licence() {
  local title=$1
  shift
  printf '\n\n%s\n%s\n\n' "$title" "${title//?/=}"
  "$@"
}

licences() {
  local python=$WORK/src/python doc=$WORK/tool/usr/share/doc
  cat <<'HEAD'
The module python.wasm.zst and the memory image image.zst contain CPython (see
LICENSE.cpython) and, linked to it or part of it, the software below.
HEAD
  # shellcheck disable=SC2016 # the dollar is for sed
  licence "Software incorporated in CPython" sed -n '/^Licenses and Acknowledgements/,$p' "$python/Doc/license.rst"
  licence "zlib" leading_comment "$WORK/src/zlib/zlib.h"
  licence "libmpdec" leading_comment "$python/Modules/_decimal/libmpdec/basearith.c"
  licence "expat" cat "$EXPAT/../COPYING"
  licence "HACL*" leading_comment "$python/Modules/_hacl/Hacl_Hash_SHA2.c"
  licence "wasi-libc" cat "$doc/wasi-libc/copyright"
  licence "LLVM compiler-rt" cat "$doc/libclang-rt-19-dev-wasm32/copyright"
}

write_licences() {
  cp "$WORK/src/python/LICENSE" "$OUT/LICENSE.cpython"
  licences >"$OUT/LICENSE.linked"
}

# ---- all of it ------------------------------------------------------------------------------

parse_arguments() {
  RELOCK=
  if [[ ${1-} == --relock ]]; then
    RELOCK=1
    shift
  fi
  [[ $# -le 2 ]] || die "usage: build.sh [--relock] [WORKDIR [OUTDIR]]"
  export RELOCK # native-python.sh fetches, too
  local work=${1:-${TMPDIR:-/tmp}/rlm-wasm} out=${2:-$REPO/internal/machine/cpython}
  mkdir -p "$work" "$out"
  WORK=$(cd -- "$work" && pwd)
  OUT=$(cd -- "$out" && pwd)
  EXPAT=$WORK/src/expat/expat/lib
  [[ $WORK =~ ^[A-Za-z0-9._/+-]+$ ]] || die "the work directory's path has characters that make cannot handle: $WORK"
}

fetch_all() {
  once python-source get_python_source
  once zlib-source get_library zlib "$ZLIB_SOURCE"
  once expat-source get_library expat "$EXPAT_SOURCE"
  once toolchain get_toolchain
  [[ -z $RELOCK ]] || relock
}

main() {
  need_debian
  need_tools go
  [[ $(dpkg --print-architecture) == amd64 ]] ||
    die "the locked toolchain packages are for amd64"
  parse_arguments "$@"
  fetch_all
  reproducible
  NATIVE=$("$SCRIPTS/../native-python.sh" "$WORK")
  make_wrappers
  PATH=$WORK/bin:$PATH
  once zlib make_zlib
  once wasm-patch patch_python
  once wasm-configure configure_python
  once expat make_expat
  once wasm-make make_python
  note freeze
  freeze_stdlib
  note link
  link_reactor
  note pack
  pack
  write_licences
  note "wrote $OUT"
}

main "$@"
