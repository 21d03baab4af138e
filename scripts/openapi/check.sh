#!/usr/bin/env bash
# usage: check.sh
#
# Sends requests that Schemathesis makes from the document of bin/rlm serve, and compares the
# answers with it. A run of models is scripted.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
rlm=$(cd -- "$here/../.." && pwd)/bin/rlm
python=$("$here/../venv.sh" openapi | tail -n 1)

work=$(mktemp -d)
stop() {
	[[ -z ${server:-} ]] || kill "$server" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap stop EXIT

"$rlm" serve --listen 127.0.0.1:0 --data "$work/data" --model "scripted/$here/../serve/replies.yaml" 2>"$work/notes" &
server=$!
until grep -q '/v1$' "$work/notes"; do
	kill -0 "$server" || { cat "$work/notes"; exit 1; }
	sleep 0.1
done
address=$(grep -o 'http://.*' "$work/notes")

# The other checks of Schemathesis do not hold: loopback needs no key, an unknown method is not
# found, and limits that depend on the server are not in the document. connect is a WebSocket.
cd "$work"
"$(dirname "$python")/schemathesis" run "${address%/v1}/openapi.json" --exclude-operation-id connect \
	--checks not_a_server_error,status_code_conformance,content_type_conformance \
	--checks response_headers_conformance,response_schema_conformance,use_after_free,ensure_resource_availability \
	--max-examples "${RLM_EXAMPLES:-20}" --seed 1 --continue-on-failure --warnings off --request-timeout 60
