#!/bin/sh
# Fetches Debian packages with their dependencies and writes their files to standard
# output, as a tar stream. It needs apt, but no root and no registry: apt works in a
# separate folder, as if nothing were installed, and verifies downloads by Debian's
# keys. No script of a package is run.
#
#   fetch.sh WORKDIR SUITE ARCHITECTURE MIRROR PACKAGE...
#
# Downloads stay in WORKDIR/cache and are used again.
set -eu

work=$1 suite=$2 arch=$3 mirror=$4
shift 4

say() { echo "$*" >&2; }

keys=/usr/share/keyrings/debian-archive-keyring.gpg
for tool in apt-get apt-cache dpkg-deb tar; do
	command -v "$tool" >/dev/null || { say "cannot fetch packages: $tool is missing, build the image on Debian or Ubuntu"; exit 1; }
done
[ -f "$keys" ] || { say "cannot fetch packages: $keys is missing, install debian-archive-keyring"; exit 1; }

mkdir -p "$work/etc/apt.conf.d" "$work/etc/preferences.d" "$work/state/lists/partial" "$work/cache/archives/partial"
: >"$work/status"
source_of() { echo "deb [signed-by=$keys] $1 $2 main"; }
{
	source_of "$mirror/debian" "$suite"
	source_of "$mirror/debian" "$suite-updates"
	source_of "$mirror/debian-security" "$suite-security"
} >"$work/etc/sources.list"
cat >"$work/apt.conf" <<EOF
Dir "/";
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Dir::Etc "$work/etc";
Dir::Etc::parts "apt.conf.d";
Dir::Log "$work";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
EOF
APT_CONFIG=$work/apt.conf
export APT_CONFIG DEBIAN_FRONTEND=noninteractive

say "reading the lists of Debian $suite"
apt-get -qq update >&2
say "fetching $# packages and their dependencies"
apt-get -qq --yes --download-only --no-install-recommends install "$@" >&2

# Only what apt has chosen this time: the cache may hold more.
rm -rf "$work/tree"
mkdir -p "$work/tree/usr/share/rlm"
apt-get -qq --simulate --no-install-recommends install "$@" |
	sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*\[\([a-z0-9][a-z0-9]*\)\].*/\1 \2 \3/p' | LC_ALL=C sort >"$work/tree/usr/share/rlm/packages.txt"
say "unpacking $(wc -l <"$work/tree/usr/share/rlm/packages.txt") packages"
while read -r name version of; do
	file=$work/cache/archives/${name}_$(echo "$version" | sed 's/:/%3a/g')_$of.deb
	dpkg-deb --extract "$file" "$work/tree"
done <"$work/tree/usr/share/rlm/packages.txt"
tar -C "$work/tree" --sort=name --numeric-owner --owner=0 --group=0 -cf - .
rm -rf "$work/tree"
