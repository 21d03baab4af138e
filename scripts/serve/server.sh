# shellcheck shell=bash
# Starts bin/rlm serve with a scripted model, for the script that sources this file, and ends it
# with the script. Sets rlm, work (a folder for the script's files) and address (with /v1).
serve=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
rlm=$(cd -- "$serve/../.." && pwd)/bin/rlm

work=$(mktemp -d)
stop() {
	[[ -z ${server:-} ]] || kill "$server" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap stop EXIT

"$rlm" serve --listen 127.0.0.1:0 --data "$work/data" --model "scripted/$serve/replies.yaml" 2>"$work/notes" &
server=$!
until grep -q '/v1$' "$work/notes"; do
	kill -0 "$server" || { cat "$work/notes"; exit 1; }
	sleep 0.1
done
# shellcheck disable=SC2034 # the other script uses it
address=$(grep -o 'http://.*' "$work/notes")
