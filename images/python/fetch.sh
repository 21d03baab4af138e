#!/bin/sh
# Fetches the locked Debian packages and writes their files to standard output, as a tar
# stream. It needs neither root nor a registry. Each package must have the locked hash. No
# script of a package is run.
#
#   fetch.sh WORKDIR LOCK MIRROR SNAPSHOTS
#
# lock.sh describes the LOCK. A package that has left the MIRROR comes from SNAPSHOTS, the
# archive of all that Debian has ever offered. Downloads stay in WORKDIR/cache and are used
# again.
set -eu

work=$1 lock=$2 mirror=$3 snapshots=$4
cache=$work/cache helper=/usr/lib/apt/apt-helper

say() { echo "$*" >&2; }

for tool in "$helper" dpkg-deb sha256sum tar; do
	command -v "$tool" >/dev/null || { say "cannot fetch packages: $tool is missing, build the image on Debian or Ubuntu"; exit 1; }
done

mkdir -p "$cache"
cat >"$work/helper.conf" <<CONF
Dir::Etc::parts "/dev/null";
APT::Sandbox::User "";
Acquire::Retries "2";
Acquire::http::Timeout "10";
CONF
APT_CONFIG=$work/helper.conf
export APT_CONFIG

# packages: the lines of the lock without the time.
packages() { sed 1d "$lock"; }
time=$(sed -n 1p "$lock")

# whole HASH: the cache has that file.
whole() { echo "$1  $cache/$1.deb" | sha256sum --check --status 2>/dev/null; }

# mirrored PATH, archived PATH: where a package is.
mirrored() { echo "$mirror/$1"; }
archived() { echo "$snapshots/${1%%/*}/$time/${1#*/}"; }

# fetch_missing WHERE: what the cache lacks, as far as it is there.
fetch_missing() {
	where=$1
	set --
	while read -r name version of sum path; do
		if ! whole "$sum"; then
			rm -f "$cache/$sum.deb"
			set -- "$@" "$($where "$path")" "$cache/$sum.deb" "SHA256:$sum"
		fi
	done <"$work/packages"
	[ $# -eq 0 ] || "$helper" -qq download-file "$@" >&2 || true # list_missing says what failed
}

# list_missing: names and versions that the cache lacks.
list_missing() {
	while read -r name version of sum path; do
		whole "$sum" || printf ' %s=%s' "$name" "$version"
	done <"$work/packages"
}

packages >"$work/packages"
say "fetching $(wc -l <"$work/packages") packages"
fetch_missing mirrored
missing=$(list_missing)
if [ -n "$missing" ]; then
	say "$mirror does not have$missing: trying $snapshots"
	fetch_missing archived
	missing=$(list_missing)
fi
if [ -n "$missing" ]; then
	say "cannot fetch the locked packages$missing: neither $mirror nor $snapshots has them; use --latest to build with the versions that Debian offers today"
	exit 1
fi

rm -rf "$work/tree"
mkdir -p "$work/tree/usr/share/rlm"
say "unpacking the packages"
while read -r name version of sum path; do
	echo "$name $version $of"
	dpkg-deb --extract "$cache/$sum.deb" "$work/tree"
done <"$work/packages" >"$work/tree/usr/share/rlm/packages.txt"
tar -C "$work/tree" --sort=name --numeric-owner --owner=0 --group=0 -cf - .
rm -rf "$work/tree"
