#!/usr/bin/env bash
# Does what a stranger with a clone does: as a new user with an empty home, without Docker, a
# delegated cgroup or an API key, it runs the two commands of the README. It needs root, makes the
# user and leaves the home, whose build cache the caller may use. With --again it goes on in the home
# that an earlier run left: Go keeps the results of packages that passed.
#
#     scripts/ordinary-user.sh NAME [--again]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

user=$1
id -u "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
home=$(getent passwd "$user" | cut -d: -f6)

if [[ ${2-} != --again ]]; then
	if [[ -d $home ]]; then
		chmod -R u+w "$home" # the cache of modules is read-only
		rm -rf "$home"
	fi
	mkdir -m 700 "$home"
	git clone --quiet . "$home/rlm"
	chown -R "$user:" "$home"
fi

# Only what the network needs comes along from this environment.
settings=("HOME=$home" "USER=$user" "PATH=$(go env GOROOT)/bin:/usr/local/bin:/usr/bin:/bin"
	DOCKER_HOST=unix:///nonexistent TERM=dumb LANG=C.UTF-8)
for name in GOPROXY GOSUMDB GONOSUMDB GONOSUMCHECK GOPRIVATE GOTOOLCHAIN HTTP_PROXY HTTPS_PROXY NO_PROXY \
	http_proxy https_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR; do
	if [[ -n ${!name-} ]]; then settings+=("$name=${!name}"); fi
done

as_user() { (cd "$home/rlm" && setpriv --reuid "$user" --regid "$user" --init-groups env -i "${settings[@]}" "$@"); }

for target in build test; do
	started=$SECONDS
	as_user make "$target"
	printf 'make %s as an ordinary user: %d s\n' "$target" $((SECONDS - started))
done
