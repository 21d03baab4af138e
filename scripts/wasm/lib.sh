# Shared by build.sh, verify.sh and native-python.sh: messages, and fetching the
# inputs from Debian. To be sourced; the caller sets WORK to an absolute path.
# shellcheck shell=bash

SCRIPTS=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
LOCK=$SCRIPTS/inputs.sha256

# The package names of the inputs, with the Debian release each is taken from.
PYTHON_SOURCE=python3.13/trixie
# shellcheck disable=SC2034 # for build.sh
ZLIB_SOURCE=zlib/trixie
# shellcheck disable=SC2034 # for build.sh
EXPAT_SOURCE=expat/trixie
# shellcheck disable=SC2034 # for build.sh
TOOLCHAIN_DEBS=(
  clang-19/bookworm llvm-19/bookworm lld-19/bookworm libclang-cpp19/bookworm
  libllvm19/bookworm libclang-common-19-dev/bookworm libclang1-19/bookworm
  llvm-19-linker-tools/bookworm libclang-rt-19-dev-wasm32/bookworm
  wasi-libc/trixie
)

note() { printf '[%s] %s\n' "$(date +%T)" "$*" >&2; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# need_tools TOOL...: all of them, or a list of those missing.
need_tools() {
  local tool missing=()
  for tool in "$@"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [[ ${#missing[@]} -eq 0 ]] || die "not installed: ${missing[*]}"
}

need_debian() {
  need_tools apt-get dpkg dpkg-source dpkg-parsechangelog patch xz sha256sum gcc make
  [[ -e $KEYRING ]] || die "$KEYRING is missing (package debian-archive-keyring)"
}

# quiet LOG COMMAND...: run with all output to a log; show its end on failure.
quiet() {
  quiet_try "$@" || {
    tail -n 30 "$1" >&2
    die "failed: ${*:2} (all of it: $1)"
  }
}

# quiet_try LOG COMMAND...: run with all output to a log; failure is the caller's.
quiet_try() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1
}

# once NAME COMMAND...: run only if it has not succeeded in this work directory.
once() {
  local stamp=$WORK/stamps/$1
  shift
  [[ -e $stamp ]] && return
  note "$(basename "$stamp")"
  "$@"
  mkdir -p "$WORK/stamps"
  : >"$stamp"
}

# ---- the machine says where Debian is -----------------------------------------

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# mirror: the archive that this machine's APT is configured to use.
mirror() {
  if [[ -n ${RLM_DEBIAN_MIRROR-} ]]; then
    printf '%s\n' "$RLM_DEBIAN_MIRROR"
    return
  fi
  local uri
  # shellcheck disable=SC2016 # the dollar is for APT
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
    grep -m 1 -E '/debian/?$') ||
    die "APT is not configured for a Debian archive; set RLM_DEBIAN_MIRROR to one's URI"
  printf '%s\n' "${uri%/}"
}

# apt_root: a private APT under WORK that knows both releases and their sources.
apt_root() {
  local root=$WORK/apt uri suite
  uri=$(mirror)
  mkdir -p "$root"/{etc,lists/partial,cache/archives/partial}
  : >"$root/status"
  for suite in bookworm trixie; do
    printf 'deb [signed-by=%s] %s %s main\n' "$KEYRING" "$uri" "$suite"
  done >"$root/etc/sources.list"
  printf 'deb-src [signed-by=%s] %s trixie main\n' "$KEYRING" "$uri" >>"$root/etc/sources.list"
  cat >"$root/apt.conf" <<CONF
Dir::Etc::sourcelist "$root/etc/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
Dir::State::lists "$root/lists";
Dir::State::status "$root/status";
Dir::Cache "$root/cache";
APT::Architecture "amd64";
APT::Sandbox::User "$(id -un)";
CONF
  quiet "$WORK/logs/apt-update.log" private_apt update
}

private_apt() { APT_CONFIG=$WORK/apt/apt.conf apt-get -q "$@"; }

# ---- inputs ---------------------------------------------------------------------

# fetch_debs PACKAGE/RELEASE... and fetch_source PACKAGE/RELEASE: into WORK/inputs.
fetch_debs() {
  once apt-root apt_root
  mkdir -p "$WORK/inputs"
  (cd "$WORK/inputs" && quiet "$WORK/logs/fetch-debs.log" private_apt download "$@")
}

fetch_source() {
  once apt-root apt_root
  mkdir -p "$WORK/inputs"
  [[ -n ${RELOCK-} ]] || ! fetch_locked "${1%/*}" || return 0
  (cd "$WORK/inputs" &&
    quiet "$WORK/logs/fetch-source.log" private_apt source --download-only "$1")
  rm -f "$WORK"/inputs/*.asc # upstream's signature; the hash is what counts
}

# fetch_locked PACKAGE: the files of a source package that the lock names, while the archive
# keeps them. APT knows only the latest version.
fetch_locked() {
  local hash file
  while read -r hash file; do
    quiet_try "$WORK/logs/fetch-locked.log" /usr/lib/apt/apt-helper download-file \
      "$(mirror)/pool/main/${1:0:1}/$1/$file" "$WORK/inputs/$file" "SHA256:$hash" || return 1
  done < <(locked "$1")
}

# locked PREFIX: the lock file's lines for the inputs of one package.
locked() { grep -F "  $1_" "$LOCK"; }

# verify PACKAGE/RELEASE...: all that was fetched of these is what is locked.
verify() {
  local package failed=0
  for package in "$@"; do
    verify_package "${package%/*}" || failed=1
  done
  [[ $failed -eq 0 ]] ||
    die "the inputs are not the locked ones; after a review, build.sh --relock accepts them"
}

verify_package() {
  local package=$1 hash file got failed=0
  while read -r hash file; do
    if [[ ! -e $WORK/inputs/$file ]]; then
      note "$package: $file is wanted, but Debian now has: $(offered "$package")"
      failed=1
      continue
    fi
    read -r got _ < <(sha256sum "$WORK/inputs/$file")
    if [[ $got != "$hash" ]]; then
      note "$package: $file has SHA-256 $got, not $hash"
      failed=1
    fi
  done < <(locked "$package" || printf -- '- %s_(not in the lock file)\n' "$package")
  return "$failed"
}

offered() { (cd "$WORK/inputs" && printf '%s ' "$1"_*); }

relock() {
  (cd "$WORK/inputs" && find . -maxdepth 1 -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) \
    >"$LOCK"
  note "wrote $LOCK"
}

# unpack_source NAME DIR: the one source package of that name, into WORK/src/DIR.
unpack_source() {
  local dsc=("$WORK/inputs/$1"_*.dsc)
  mkdir -p "$WORK/src"
  rm -rf "$WORK/src/$2"
  # The hashes are checked; the uploader's key need not be on this machine.
  quiet "$WORK/logs/unpack-$2.log" dpkg-source --no-check -x "${dsc[0]}" "$WORK/src/$2"
}

get_python_source() {
  fetch_source "$PYTHON_SOURCE"
  [[ -n ${RELOCK-} ]] || verify "$PYTHON_SOURCE"
  unpack_source python3.13 python
}

# reproducible: an environment that says the same everywhere.
reproducible() {
  unset CC CXX CPP AR LD CFLAGS CPPFLAGS CXXFLAGS LDFLAGS MAKEFLAGS PYTHONPATH PYTHONHOME
  export LC_ALL=C TZ=UTC PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
  SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$WORK/src/python/debian/changelog" -S Timestamp)
  export SOURCE_DATE_EPOCH
}
