#!/bin/sh
# Prints the lock of packages: which versions Debian offers now of the named packages and
# of all that these depend on. It needs apt, but no root: apt works in a separate folder,
# as if nothing were installed, and verifies the lists of packages by Debian's keys.
#
#   lock.sh WORKDIR SUITE ARCHITECTURE MIRROR PACKAGE...
#
# The first line is the time, which names a snapshot of Debian's archives. Each other line
# is a name, a version, an architecture, a SHA-256 and a path on a mirror.
set -eu

work=$1 suite=$2 arch=$3 mirror=$4
shift 4

say() { echo "$*" >&2; }

keys=/usr/share/keyrings/debian-archive-keyring.gpg
for tool in apt-get apt-cache; do
	command -v "$tool" >/dev/null || { say "cannot find packages: $tool is missing, use Debian or Ubuntu"; exit 1; }
done
[ -f "$keys" ] || { say "cannot find packages: $keys is missing, install debian-archive-keyring"; exit 1; }

rm -rf "$work/apt"
mkdir -p "$work/apt/etc/apt.conf.d" "$work/apt/etc/preferences.d" "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial"
: >"$work/apt/status"
source_of() { echo "deb [signed-by=$keys] $1 $2 main"; }
{
	source_of "$mirror/debian" "$suite"
	source_of "$mirror/debian" "$suite-updates"
	source_of "$mirror/debian-security" "$suite-security"
} >"$work/apt/etc/sources.list"
cat >"$work/apt/apt.conf" <<CONF
Dir "/";
Dir::State "$work/apt/state";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
Dir::Etc "$work/apt/etc";
Dir::Etc::parts "apt.conf.d";
Dir::Log "$work/apt";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
APT_CONFIG=$work/apt/apt.conf
export APT_CONFIG DEBIAN_FRONTEND=noninteractive

say "reading the lists of Debian $suite for $arch"
apt-get -qq update >&2
apt-get -qq --simulate --no-install-recommends install "$@" >"$work/apt/plan"
sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*\[[a-z0-9]*\].*/\1=\2/p' "$work/apt/plan" >"$work/apt/chosen"
xargs apt-cache --no-all-versions show <"$work/apt/chosen" >"$work/apt/records"

# A version can be in several archives. The files of debian stay longer than those of
# debian-security, and come first.
awk -v RS= -F '\n' '{
	for (i = 1; i <= NF; i++) {
		at = index($i, ": ")
		field[substr($i, 1, at - 1)] = substr($i, at + 2)
	}
	archive = field["Filename"] ~ /^pool\/updates\// ? "debian-security" : "debian"
	print field["Package"], field["Version"], field["Architecture"], field["SHA256"], archive "/" field["Filename"]
}' "$work/apt/records" | LC_ALL=C sort | LC_ALL=C sort -u -k 1,1 >"$work/apt/lock"
[ "$(wc -l <"$work/apt/lock")" -eq "$(wc -l <"$work/apt/chosen")" ] || { say "cannot find packages: apt describes only some of them"; exit 1; }
date -u +%Y%m%dT%H%M%SZ
cat "$work/apt/lock"
rm -rf "$work/apt"
