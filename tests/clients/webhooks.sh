#!/bin/sh
# Signed jobs, verified by the reference library of Standard Webhooks in a server of Node's.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= receiver=
trap 'kill $daemon $receiver 2>/dev/null; rm -rf "$work"' EXIT
secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw

. "$root/tests/clients/npm.sh"

: >"$work/log"
node "$folder/verify.mjs" "$secret" "$work/port" "$work/log" 2>"$work/receiver.err" &
receiver=$!
wait_for test -s "$work/port"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  hook:
    url: http://127.0.0.1:$(cat "$work/port")/
    allow_private: true
    sign: { secrets: [$secret] }
    retry: { max_retries: 0 }
END
"$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
server=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)

# Those that a careless sender would make the same, or that a server reads otherwise than they were written.
cat >"$work/jobs" <<'END'
{"destination": "hook", "tenant": "acme", "id": "plain-1", "payload": {"n": 1}}
{"destination": "hook", "tenant": "acme", "id": "blank", "payload": {"n": 2}}
{"destination": "hook", "tenant": "acme", "id": "blank ", "payload": {"n": 3}}
{"destination": "hook", "tenant": "acme", "id": " blank", "payload": {"n": 4}}
{"destination": "hook", "tenant": "acme", "id": "blank%20", "payload": {"n": 5}}
{"destination": "hook", "tenant": " acme", "id": "blank", "payload": {"n": 6}}
{"destination": "hook", "tenant": "clínica", "id": "fatura-ñ-1", "payload": {"n": "ação"}}
{"destination": "hook", "tenant": "病院", "id": "請求-😀", "payload": {"n": 8}}
{"destination": "hook", "tenant": "a/b", "id": "c", "payload": {"n": 9}}
{"destination": "hook", "tenant": "a", "id": "b/c", "payload": {"n": 10}}
{"destination": "hook", "tenant": "", "id": "nobody's", "payload": ["é", "\\u0000"]}
END
run curl -sS -X POST -H 'Content-Type: application/x-ndjson' --data-binary "@$work/jobs" "$server/v1/jobs/batch"
check "all are taken" ended 0 '"accepted":11'
all_came() { [ "$(wc -l <"$work/log")" = 11 ]; }
check "and sent" until_true all_came
verdicts() { # what the library said of those that did not verify
    ! grep -v '"verified":true' "$work/log"
}
check "each is verified by the library" verdicts
distinct() { [ "$(grep -o '"key":"[^"]*"' "$work/log" | sort -u | wc -l)" = 11 ]; }
check "no two have the same key" distinct
the_same() { python3 -c 'import json,sys
for line in open(sys.argv[1]):
    seen = json.loads(line)
    assert seen["key"] == seen["id"] and seen["key"].isascii(), seen' "$work/log"; }
check "the key is what is signed, in ASCII" the_same
check "an ordinary one is itself" grep -q '"key":"acme/plain-1"' "$work/log"
delivered() { [ "$(curl -sS "$server/v1/jobs?state=completed&limit=50" | grep -o '"state":"completed"' | wc -l)" = 11 ]; }
check "each is delivered" until_true delivered
finish
