#!/bin/sh
# The commands against a daemon of their own, with a receiver that takes all but what starts with "bad".
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= receiver= stream=
trap 'kill $daemon $receiver $stream 2>/dev/null; rm -rf "$work"' EXIT

state_is() { # STATE ID [OPTIONS...]
    wanted=$1
    shift
    "$insist" job "$@" -o json | grep -q "\"state\":\"$wanted\""
}
received() { # HEX: a body
    grep -q "\"body\": \"$1\"" "$work/requests"
}

receive
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  orders: { url: "$url/orders", allow_private: true, retry: { max_retries: 1, base: 100ms, floor: 50ms, cap: 1s } }
  held: { transport: pull }
END
serve --init

# ---- add ----
printf 'hello\n' >"$work/in"
run "$insist" add orders --id A-1 - <"$work/in"
check "add prints the id" ended 0 'A-1'
check "the id and nothing else" test "$(cat "$work/out")" = A-1
run "$insist" add orders --id A-1 - <"$work/in"
check "the same again is fine" ended 0 'A-1'
run "$insist" add orders --id A-1 <"$work/in"
check "without a file it reads standard input" ended 0 'A-1'
ask add orders --id A-1 --data other
check "the same id with another content is refused" ended 1 'insist: ' 'another body'
check "it is delivered byte for byte" until_true received 68656c6c6f0a
printf 'b\377\000\n' >"$work/bytes"
ask add orders --id A-2 --tenant t1 -H 'X-One: 1' -H 'X-Two: 2: b' --content-type application/octet-stream --metadata '{"a":1.10}' \
    --correlation-id c-1 --priority high "$work/bytes"
check "any bytes" ended 0 'A-2'
check "they arrive as they are" until_true received 62ff000a
check "with their headers" grep -q '"X-Two": "2: b"' "$work/requests"
ask job A-2 -t t1 --payload
check "the payload again" cmp "$work/bytes" "$work/out"
ask add orders --data x -o json
check "add as JSON" ended 0 '"created":true'
ask add nowhere --data x
check "an unknown destination" ended 2 'insist: there is no destination "nowhere"'
ask add orders --data soon --id L-1 --run-at +1h --deadline +2h
check "later" ended 0 'L-1'
printf '{"id":"x1","payload":{"a":19.90}}\n\n{"id":"x2","payload":"p","destination":"held"}\n{"id":"x3"}\nnonsense\n' >"$work/in"
run "$insist" add orders --batch <"$work/in"
check "a batch" ended 2 '2 accepted, 0 there already, 2 refused' 'insist: line 4: payload is missing' 'insist: line 5: '
check "numbers keep their digits" until_true received 7b2261223a31392e39307d
ask add orders --batch "$work/in" -o json
check "a batch as JSON" ended 2 '{"accepted":0,"duplicates":2,"rejected":[{"index":3,"type":"' '{"index":4,'
i=0
while [ $i -lt 2500 ]; do
    i=$((i + 1))
    echo "{\"id\":\"many-$i\",\"tenant\":\"many\",\"payload\":\"bad\"}"
done >"$work/in"
run "$insist" add held --batch <"$work/in"
check "a large batch" ended 0 '2500 accepted, 0 there already, 0 refused'

# ---- look ----
ask jobs --tenant t1
check "jobs" ended 0 'ID   TENANT  DESTINATION' 'A-2  t1      orders       completed           high'
ask jobs --tenant many --all
check "all jobs" test "$(wc -l <"$work/out")" = 2501
ask jobs --tenant many --limit 1200
check "more than one page" test "$(wc -l <"$work/out")" = 1201
ask jobs --tenant many --all -o json
check "all pages as JSON" test "$(wc -l <"$work/out")" = 3
"$insist" jobs --tenant many --all 2>"$work/err" | head -n 1 >"$work/out"
check "head of a list" grep -q ^ID "$work/out"
check "head of a list, quietly" test ! -s "$work/err"
ask job L-1
check "a job" ended 0 'id               L-1' 'state            pending' 'deadline'
ask job nothing
check "no such job" ended 1 'insist: there is no job "nothing"'
ask why L-1
check "why" ended 0 'L-1 is pending at orders' 'because' 'then'

# ---- act ----
ask prioritize L-1 critical
check "prioritize" ended 0 'L-1: pending, priority critical'
ask cancel L-1
check "cancel" ended 0 'L-1: cancelled'
ask cancel L-1
check "cancel twice" ended 1 'insist: the job is cancelled'
ask add orders --id D-1 --tenant t2 --data 'bad order'
check "a bad one dies" until_true state_is dead D-1 -t t2
ask job D-1 -t t2
check "its attempts" ended 0 'ATTEMPT' 'transient  http:503' 'dead because     MAX_RETRIES_EXCEEDED'
ask dead list
check "dead list" ended 0 'D-1' 'MAX_RETRIES_EXCEEDED'
ask dead list --code http:404
check "dead list with a filter" sh -c "! grep -q D-1 '$work/out'"
ask dead summary
check "dead letters by code" ended 0 'CODE      JOBS' 'http:503     1'
ask dead summary --by fingerprint -o json
check "dead letters by fingerprint" ended 0 '"by":"fingerprint"' '"sample":'
ask dead summary --by colour
check "by something else" ended 2 'by must be code, tenant, destination or fingerprint'
ask dead list --by code
check "--by is for the summary" ended 2 '--by goes with summary'
ask dead export
check "dead export" ended 0 '"jobId":"D-1"' '"originalData":"bad order"'
cp "$work/out" "$work/exported"
ask dead export --destination orders --out "$work/dead.ndjson"
check "dead export to a file" cmp "$work/exported" "$work/dead.ndjson"
echo 'good order' >"$work/in"
run "$insist" retry D-1 -t t2 --payload - <"$work/in"
check "retry with another payload" ended 0 'D-1: '
ask job D-1 -t t2
check "attempts tell their generation" ended 0 'GENERATION'
check "and it arrives" until_true state_is completed D-1 -t t2
ask dest pause held --reason 'a certificate'
check "pause" ended 0 'held: paused'
ask dest show held
check "show" ended 0 'mode         paused' ': a certificate' 'held         by paused since ' ' waiting, '
ask why many-1 -t many
check "why, paused" ended 0 'a certificate'
ask dest resume held
check "resume" ended 0 'held: normal'
ask dest pause held --tenant many --reason 'not paid'
check "pause a tenant" ended 0 'held: normal, 1 tenant paused'
ask dest show held
check "and see which" ended 0 'PAUSED TENANT  SINCE' 'many           20' 'not paid'
ask why many-1
check "whose job it is need not be said" ended 0 'tenant many is paused'
ask dest resume held --tenant many
check "resume it" sh -c "test \"\$(cat '$work/out')\" = 'held: normal'"
ask dest list
check "dest list" ended 0 'NAME    MODE' 'orders  normal' 'held    normal'
ask dest show hel
check "a destination that is not there" ended 1 'did you mean "held"?'
ask dest contingency held --reason 'they called'
check "contingency" ended 0 'held: contingency'
ask why many-1 -t many
check "why, contingency" ended 0 'they called' 'insist dest contingency held --leave'
ask dest pause held --reason 'and lunch'
ask why many-1 -t many
check "why, contingency behind a pause" ended 0 'is paused (and lunch), and besides in contingency because' 'they called' \
    'insist dest resume held' 'insist dest contingency held --leave'
ask dest show held
check "a pause does not hide it" ended 0 'paused: and lunch' 'when resumed' 'contingency since' 'they called'
ask dest resume held
ask dest contingency held --leave
check "the way back" ended 0 'held: recovering'
ask incidents --destination held
check "incidents" ended 0 'DESTINATION' 'operator' 'recovering'
incident=$(awk 'NR == 2 { print $1 }' "$work/out")
ask incidents note "$incident" 'call *them* first'
check "what was learned" ended 0 "$incident: noted"
ask incidents show "$incident"
check "an incident" ended 0 'held is on its way back from contingency' 'the operator said' 'they called' 'call *them* first'
ask incidents report "$incident"
check "its report" ended 0 '# Incident at held, ' '| First sign |' '> they called' '> call \*them\* first' '## Times'
ask incidents show none
check "an incident that is not there" ended 1 'insist: there is no incident of this id'
for order in job why retry cancel resend; do
    "$insist" $order nosuch -o json >"$work/out" 2>"$work/err"
    code=$?
    check "$order of a job that is not there, as JSON" sh -c "[ $code = 1 ] && python3 -c 'import json, sys
sys.exit(json.load(open(sys.argv[1]))[\"type\"] != \"job_not_found\")' '$work/out'"
done
ask tenants --destination orders
check "tenants" ended 0 'TENANT  DESTINATION' 't2      orders'
ask stats
check "stats" ended 0 'version ' 'totals.pending' 'DESTINATION'
ask events --job D-1 --tenant t2
check "events of a job" ended 0 'accepted' 'retry_scheduled' 'redriven' 'http:503'
ask events -n 3
check "the newest events" test "$(wc -l <"$work/out")" = 4
newest=$(tail -n 1 "$work/out" | awk '{ print $1 }')
ask events --tenant t1 -n 2
check "the newest of a tenant, however far back" sh -c "[ \$(grep -c ' t1 ' '$work/out') = 2 ] && [ \$(wc -l <'$work/out') = 3 ]"
cp "$work/out" "$work/two"
ask events --tenant t1
check "they are its last" sh -c "[ \"\$(tail -n 2 '$work/out' | tr -s ' ')\" = \"\$(tail -n 2 '$work/two' | tr -s ' ')\" ]"
ask events --after "$newest"
check "none after the newest" test "$(wc -l <"$work/out")" = 1
"$insist" events --follow --after "$newest" -n 1 -o json >"$work/followed" 2>&1 &
follower=$!
ask dest pause held
check "--follow shows what comes" until_true grep -q '"change":"paused"' "$work/followed"
check "--follow ends after its number" until_true sh -c "! kill -0 $follower"
sh -c 'echo $$ >"$1"; exec "$2" events --follow --job D-1 --tenant t2' sh "$work/follower" "$insist" 2>"$work/err" | head -n 1 >"$work/out" &
wait_for test -s "$work/follower"
check "--follow ends when its reader has left, though nothing comes" until_true sh -c "! kill -0 $(cat "$work/follower")"
check "and says nothing of that" sh -c "[ -s '$work/out' ] && [ ! -s '$work/err' ]"
kill "$(cat "$work/follower")" 2>/dev/null

# ---- the store from outside ----
ask backup "$work/copy.db" -c "$work/insist.yaml"
check "backup beside the daemon" ended 0 "$work/copy.db: " ' pending' 'newest event'
ask backup "$work/copy.db" -c "$work/insist.yaml"
check "a backup is not overwritten" ended 1 'exists and is not overwritten'
ask backup "$work/copy2.db" -c "$work/insist.yaml" -o json
check "backup as JSON" ended 0 '"bytes":' '"dead":0'
ask audit verify -c "$work/insist.yaml"
check "audit verify" ended 0 'Events 1 to ' 'compare later with --expect'
head=$(tail -n 1 "$work/out")
ask audit verify -c "$work/insist.yaml" --expect "$head"
check "audit verify, with what was noted" ended 0 'Events 1 to '
ask audit verify -c "$work/insist.yaml" --expect "1:$(printf '%064d' 0)"
check "and with something else" ended 1 'event 1 is not the one that was noted'
ask audit verify -c "$work/insist.yaml" --expect "999999:$(printf '%064d' 0)"
check "and with one that was cut" ended 1 'the trail was cut' 'event 999999 was noted'
ask audit verify -c "$work/insist.yaml" --expect nonsense
check "and with no head" ended 2 'is no head of a trail'
ask audit export -c "$work/insist.yaml" --out "$work/trail.ndjson"
check "audit export" ended 0
ask audit verify -c "$work/insist.yaml" --file "$work/trail.ndjson" --expect "$head"
check "the export verifies" ended 0 'Events 1 to '
sed -e '3s/"attempt":[0-9]*/"attempt":77/' "$work/trail.ndjson" >"$work/forged.ndjson"
ask audit verify -c "$work/insist.yaml" --file "$work/forged.ndjson"
check "and shows where it was changed" ended 1 'event 2 is not what was written'
sed -e '$d' "$work/trail.ndjson" >"$work/cut.ndjson"
ask audit verify -c "$work/insist.yaml" --file "$work/cut.ndjson" --expect "$(tail -n 1 "$work/trail.ndjson" | sed -e 's/.*"number":\([0-9]*\),.*"hash":"\([0-9a-f]*\)".*/\1:\2/')"
check "and where it was cut" ended 1 'the trail was cut'
python3 - "$work/old.db" <<'END'
import sqlite3, sys
with open("tests/support/store_v1.sql") as dump:
    sqlite3.connect(sys.argv[1]).executescript(dump.read())
END
sed "s|sqlite:.*|sqlite:$work/old.db|" "$work/insist.yaml" >"$work/old.yaml"
ask audit verify -c "$work/old.yaml"
check "events of an older form are valid, and named so" ended 0 'Events 1 to 31 are what was written' '31 are of an older form'
ask doctor -c "$work/insist.yaml" --network
check "doctor" ended 0 'ok    store' 'ok    events' 'daemon and command are both' 'orders answers' ', 0 failed'
ask doctor -c "$work/insist.yaml" -o json
check "doctor as JSON" ended 0 '{"checks":[{"check":"configuration","result":"ok"' '"failed":0}'
{ cat "$work/insist.yaml"; echo 'limits: { disk_free: 100000GB }'; } >"$work/little.yaml"
ask doctor -c "$work/little.yaml"
check "doctor does not praise a daemon that takes jobs with too little room" ended 1 'fail  disk' 'make room' 'warn  daemon         it takes jobs although'

kill "$daemon"
wait "$daemon"
check "the daemon ends in order" test $? = 0
daemon=
head=$(grep '"trail_head"' "$work/serve.err" | tail -n 1 | grep -oE '[0-9]+:[0-9a-f]{64}')
ask audit verify -c "$work/insist.yaml" --expect "$head"
check "its log says where the trail ends" ended 0 "Events 1 to ${head%%:*} "
ask doctor -c "$work/insist.yaml"
check "doctor without the daemon" ended 1 'fail  daemon         cannot reach' 'ok    store'
sed "s|sqlite:.*|sqlite:$work/copy.db|" "$work/insist.yaml" >"$work/copy.yaml"
python3 - "$work/copy.db" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE event SET attempt = attempt + 1 WHERE number = 5")
db.commit()
END
ask audit verify -c "$work/copy.yaml"
check "a changed event shows" ended 1 'event 5 is not what was written'
ask doctor -c "$work/copy.yaml"
check "doctor sees it, too" ended 1 'fail  events         event 5'
echo 'destinations: { a: { urll: x } }' >"$work/bad.yaml"
ask doctor -c "$work/bad.yaml"
check "doctor of a bad configuration" ended 1 "fail  configuration  $work/bad.yaml:1:" 'is not valid'
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 3 -subj /CN=x 2>/dev/null
chmod 644 "$work/key.pem"
cat >"$work/tls.yaml" <<END
store: "memory:"
destinations:
  a: { url: "https://127.0.0.1:1/", allow_private: true, tls: { cert: "$work/cert.pem", key: "$work/key.pem", ca: "$work/none.pem" } }
END
ask --server http://127.0.0.1:1 doctor -c "$work/tls.yaml" --network
check "doctor of certificates" ended 1 'warn  store          memory:' 'warn  certificate    a: ' 'ends in' 'warn  key            a: ' \
    "fail  ca             cannot read $work/none.pem" 'fail  network        a: '

cat >"$work/private.yaml" <<END
store: "memory:"
retention: { audit: 30d }
destinations:
  a: { url: "http://127.0.0.1:1/" }
END
ask --server http://127.0.0.1:1 doctor -c "$work/private.yaml" --network
check "doctor of an address that nothing is sent to" ended 1 'fail  network        a: its address is private' 'allow_private: true'
check "doctor of a short memory" ended 1 'warn  retention      retention.audit is 30d' 'five years'
sed 's/30d/1826d/' "$work/private.yaml" >"$work/long.yaml"
ask --server http://127.0.0.1:1 doctor -c "$work/long.yaml"
check "five years are enough" sh -c "! grep -q retention '$work/out'"

# ---- tokens ----
{
    echo tokens:
    "$insist" token clerk --scope enqueue,read --tenant t1 | tee "$work/clerk" | tail -n 1
    "$insist" token boss --scope admin | tee "$work/boss" | tail -n 1
} >"$work/tokens.yaml"
sed "s|^store|auth: { tokens_file: $work/tokens.yaml }\nstore|" "$work/insist.yaml" >"$work/auth.yaml"
: >"$work/serve.out" # what the one before said
"$insist" serve --init -c "$work/auth.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
check "a daemon with tokens" until_true grep -q 'listens on' "$work/serve.out"
INSIST_SERVER=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
ask jobs
check "no token" ended 1 'wants a token; give one with --token or INSIST_TOKEN'
ask --token wrong jobs
check "a wrong token" ended 1 'does not know this token; give another with --token or INSIST_TOKEN'
ask --token wrong doctor -c "$work/insist.yaml"
check "a wrong token, and the doctor" grep -q 'does not know this token; give another' "$work/out"
clerk=$(head -n 1 "$work/clerk")
ask --token "$clerk" jobs
check "a tenant's token sees its jobs" ended 0 'A-2  t1'
check "and no others" sh -c "! grep -q D-1 '$work/out'"
ask --token "$clerk" dest pause held
check "it may not operate" ended 1 'INSIST_TOKEN'
INSIST_TOKEN=$(head -n 1 "$work/boss")
export INSIST_TOKEN
ask dest pause held
check "who may all may that" ended 0 'held: paused'
ask doctor -c "$work/auth.yaml"
check "doctor of tokens" ended 0 "ok    tokens         $work/tokens.yaml is valid" 'daemon and command are both'
echo 'tokens: [ { name: x, sha256: 12, scopes: [read] } ]' >"$work/tokens.yaml"
ask doctor -c "$work/auth.yaml"
check "doctor of wrong tokens" ended 1 "fail  tokens         $work/tokens.yaml:1:" '64 hexadecimal digits'

# ---- limits that somebody set ----
unset INSIST_TOKEN
kill "$daemon"
wait "$daemon" 2>/dev/null
cat >"$work/limits.yaml" <<END
listen: 127.0.0.1:0
store: memory
limits: { pending: 100, pending_per_tenant: 2, streams: 1 }
destinations: { held: { transport: pull } }
END
: >"$work/serve.out"
"$insist" serve -c "$work/limits.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
INSIST_SERVER=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
for id in 1 2; do "$insist" add held --tenant loud --id "$id" --data x >/dev/null; done
ask add held --tenant loud --id 3 --data x
check "a tenant has as many as limits.pending_per_tenant says" ended 1 'tenant "loud" has as many jobs waiting as limits.pending_per_tenant'
ask add held --tenant quiet --data x
check "others go on" ended 0
curl -sN "$INSIST_SERVER/v1/events/stream?after=0" >"$work/stream" &
stream=$!
wait_for grep -q '^id: ' "$work/stream"
run curl -s "$INSIST_SERVER/v1/events/stream"
check "streams are as many as limits.streams says" ended 0 '"too_many_streams"'
kill "$stream"
finish
