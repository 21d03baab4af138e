#!/bin/sh
# Fetches the Go toolchain, which the Go project publishes as a module, and writes its
# files to standard output, as a tar stream. The go command downloads it from the
# user's module proxy and verifies it by the checksum database. The sum must also be
# the one that is given here. Nothing of the toolchain is run.
#
#   fetch.sh WORKDIR ARCHITECTURE VERSION SUM
#
# Downloads stay in WORKDIR/modules and are used again.
set -eu

work=$1 module=golang.org/toolchain@v0.0.1-$3.linux-$2 sum=$4

say() { echo "$*" >&2; }

for tool in go tar; do
	command -v "$tool" >/dev/null || { say "cannot fetch the Go toolchain: $tool is missing, install it"; exit 1; }
done

# A separate module, so that no module around it is changed.
mkdir -p "$work/modules/none"
echo "module none" >"$work/modules/none/go.mod"
cd "$work/modules/none"
GOMODCACHE=$work/modules/cache GOFLAGS=-modcacherw GOWORK=off GOTOOLCHAIN=local GO111MODULE=on
export GOMODCACHE GOFLAGS GOWORK GOTOOLCHAIN GO111MODULE
say "fetching $module"
said=$(go mod download -json "$module") || { say "cannot fetch $module: $said"; exit 1; }
field() { printf '%s\n' "$said" | sed -n "s/^[[:space:]]*\"$1\": \"\([^\"]*\)\".*/\1/p"; }
[ "$(field Sum)" = "$sum" ] || { say "cannot use $module: its sum is $(field Sum), not $sum"; exit 1; }

# The go command does this itself when it switches to a toolchain: a module holds no
# file modes and no other module.
cd "$(field Dir)"
chmod -R a+x bin pkg/tool
[ -f src/go.mod ] || cp src/_go.mod src/go.mod
tar --sort=name --numeric-owner --owner=0 --group=0 --exclude=testdata --exclude='*_test.go' --exclude=src/cmd --transform='s,^,usr/lib/go/,' \
	-cf - VERSION bin/go go.env lib/time pkg/include pkg/tool src
