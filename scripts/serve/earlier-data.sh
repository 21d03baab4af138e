#!/usr/bin/env bash
# Lets an earlier rlm serve fill a data folder, which server/earlier_test.go opens with the present
# program. It needs curl and jq.
#
#     scripts/serve/earlier-data.sh PATH_OF_EARLIER_RLM server/testdata/earlier.tar.zst
set -euo pipefail
rlm=$(realpath "$1")
out=$(realpath -m "$2")
work=$(mktemp -d)
data=$work/data
address=127.0.0.1:7971
server=
trap 'if [[ -n $server ]]; then kill "$server" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
cd "$work"
export RLM_CACHE_DIR=$work/cache

cat >replies.yaml <<'YAML'
version: 1
model: scripted
rules:
  - when: {purpose: direct}
    reply: Hello.
  - when: {purpose: bypass}
    reply: NEEDS_CODE
  - reply: "```repl\nFINAL(str(context.count('needle')))\n```"
YAML

start() {
	"$rlm" serve --data "$data" --listen "$address" --require-key --model scripted/replies.yaml \
		--price 1000:1000 --quiet &
	server=$!
	curl -s --retry 50 --retry-connrefused --retry-delay 1 "http://$address/readyz" >/dev/null
}

key=$("$rlm" keys create alice --data "$data" --max-usd 1000/month 2>/dev/null | grep -o 'rlm_[A-Za-z0-9_]*' | head -n 1)

# call METHOD PATH [CURL_ARGUMENTS...]
call() { curl -sS --fail-with-body -X "$1" "http://$address$2" -H "Authorization: Bearer $key" "${@:3}"; }
send() { call "$1" "$2" -H 'Content-Type: application/json' -d "$3"; }

start
printf 'a needle in hay, another needle\n' >hay.txt
file=$(call POST /v1/files -F purpose=user_data -F file=@hay.txt | jq -r .id)
run=$(send POST /v1/runs "{\"question\": \"How many needles?\", \"contexts\": [{\"name\": \"hay\", \"file\": \"$file\"}]}" | jq -r .id)
until [[ $(call GET "/v1/runs/$run" | jq -r .status) =~ ^(completed|answered|failed)$ ]]; do sleep 0.2; done
response=$(send POST /v1/responses '{"model": "rlm/default", "input": "Hello"}' | jq -r .id)
session=$(send POST /v1/sessions "{\"name\": \"kept\", \"contexts\": [{\"name\": \"hay\", \"file\": \"$file\"}]}" | jq -r .id)
send POST "/v1/sessions/$session/exec" '{"source": "n = 41\nwords = hay.split()\ndef more(): return n + 1"}' >/dev/null
snapshot=$(send POST "/v1/sessions/$session/snapshots" '{}' | jq -r .id)
send POST "/v1/sessions/$session/exec" '{"source": "n += 1"}' >/dev/null
kill "$server"
wait "$server" || true
server=

jq -n --arg key "$key" --arg file "$file" --arg run "$run" --arg response "$response" \
	--arg session "$session" --arg snapshot "$snapshot" --arg version "$("$rlm" version | head -n 1)" \
	'$ARGS.named' >"$data/made.json"
tar -C "$work" --hard-dereference --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - data | zstd -19 -q -f -o "$out"
cat "$data/made.json"
