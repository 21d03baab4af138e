#!/usr/bin/env bash
# usage: image.sh BINARY NAME
#
# Makes the container image NAME of rlm, without a registry: the static file BINARY, the
# certificates of authorities of this machine, and a user without rights. Equal files make equal
# layers. DOCKER_HOST names the daemon.
set -euo pipefail

binary=$1 name=$2
authorities=/etc/ssl/certs/ca-certificates.crt
user=65532

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{data,tmp,etc/ssl/certs}
install -m 0755 "$binary" "$work/rlm"
install -m 0644 "$authorities" "$work/etc/ssl/certs/"
printf 'root:x:0:0::/:\nrlm:x:%d:%d::/data:\n' "$user" "$user" >"$work/etc/passwd"
printf 'root:x:0:\nrlm:x:%d:\n' "$user" >"$work/etc/group"
chmod 0755 "$work" "$work"/etc{,/ssl,/ssl/certs}
chmod 0644 "$work"/etc/{passwd,group}
chmod 0700 "$work/data"
chmod 1777 "$work/tmp"

plain=(--sort=name --mtime=@1700000000 --numeric-owner --format=ustar)
{
	tar "${plain[@]}" --owner=0 --group=0 -C "$work" -cf "$work/files" --exclude=./files --exclude=./data .
	tar "${plain[@]}" --owner="$user" --group="$user" -C "$work" -rf "$work/files" ./data
} >&2

docker import \
	--change "USER $user:$user" --change 'ENTRYPOINT ["/rlm"]' --change 'WORKDIR /data' --change 'VOLUME /data' \
	--change 'ENV HOME=/data XDG_STATE_HOME=/data XDG_CACHE_HOME=/data/cache' --change 'EXPOSE 7070' \
	"$work/files" "$name"
