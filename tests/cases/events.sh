#!/bin/sh
# What goes out by itself: events as jobs, the news of a job's end, jobs of one key in order; also over a kill.
. "$(dirname "$0")/../tap.sh"

post() { # JOB
    curl -s -X POST -H 'Content-Type: application/json' --data "$1" "$INSIST_SERVER/v1/jobs"
}
state_is() { # STATE ID
    "$insist" job "$2" -o json | grep -q "\"state\":\"$1\""
}
said() { # PATH EXPRESSION: how many requests of that path, whose body is `b`, the expression is true of
    python3 - "$work/requests" "$1" "$2" <<'END'
import json, sys
found = set() # what a kill left in doubt may come twice
for line in open(sys.argv[1]):
    request = json.loads(line)
    if request["path"] == sys.argv[2]:
        try:
            b = json.loads(bytes.fromhex(request["body"]))
        except ValueError:
            b = {}
        if eval(sys.argv[3], {"b": b, "h": request["headers"]}):
            found.add(request["body"])
print(len(found))
END
}
is_said() { # COUNT PATH EXPRESSION
    test "$(said "$2" "$3")" = "$1"
}
in_order() { # each job's events, by their numbers, came once and in order
    python3 - "$work/requests" <<'END'
import json, sys
last, seen = {}, set()
for line in open(sys.argv[1]):
    request = json.loads(line)
    if request["path"] != "/events":
        continue
    b = json.loads(bytes.fromhex(request["body"]))
    number = int(b["id"])
    if number < last.get(b["subject"], 0):
        sys.exit(f"{b['subject']}: {number} after {last[b['subject']]}")
    last[b["subject"]] = number
    seen.add(number)
print(len(seen))
END
}

python3 "$root/tests/cases/receiver.py" "$work" &
receiver=$!
wait_for test -s "$work/port"
port=$(cat "$work/port")
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
events:
  - { name: all, to: bus, on: [all] }
  - { name: lost, to: desk, on: [dead], where: { dead_code: [PERMANENT_ERROR], code: ["http:4xx"] }, format: documents }
callbacks: { allow: ["http://127.0.0.1:$port/told"], allow_private: true, sign: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw] } }
destinations:
  web: { url: "http://127.0.0.1:$port/web", allow_private: true, errors: { permanent: ["499"] }, retry: { base: 50ms, floor: 50ms, cap: 50ms, max_retries: 2 } }
  bus: { url: "http://127.0.0.1:$port/events", allow_private: true }
  desk: { url: "http://127.0.0.1:$port/desk", allow_private: true }
END
ask check -c "$work/insist.yaml"
check "the configuration is valid" ended 0 'valid; 3 destinations'
printf 'events:\n  - { name: a, to: nobody, on: [dying] }\n' >"$work/bad.yaml"
ask check -c "$work/bad.yaml"
check "what is wrong with an entry is told where it is written" ended 2 'bad.yaml:2:' 'must be all, attempt, or the type' \
    'goes to "nobody", which is no destination'
serve --init

check "a job is told of" test "$(post '{"destination": "web", "id": "a", "payload": "fine", "callback": {"destination": "desk"}}' | grep -c '"id":"a"')" = 1
check "in every step" until_true is_said 1 /events 'b["type"] == "insist.job.completed" and b["subject"] == "a" and b["data"]["destination"] == "web"'
check "from the first" is_said 1 /events 'b["type"] == "insist.job.accepted" and b["subject"] == "a"'
check "and its end to whom it names" until_true is_said 1 /desk 'b["type"] == "job.completed" and b["data"]["id"] == "a"'
check "of which the entry that tells of desk's dead ones says nothing" is_said 0 /desk '"claimId" in b'
post '{"destination": "web", "id": "n", "payload": "never", "callback": {"url": "http://127.0.0.1:'"$port"'/told"}}' >"$work/answer"
check "a url that is allowed is told, signed" until_true is_said 1 /told 'b["type"] == "job.dead" and b["data"]["dead_code"] == "PERMANENT_ERROR" and "webhook-signature" in {k.lower() for k in h}'
check "and its record goes to the desk in the documents' words" until_true is_said 1 /desk 'b.get("type") == "PermanentErrorDetectedEvent" and b["claimId"] == "n" and b["severity"] == "CRITICAL"'
post '{"destination": "web", "id": "x", "payload": "fine", "callback": {"url": "http://127.0.0.1:'"$port"'/other"}}' >"$work/answer"
check "another is refused" grep -q '"type":"[^"]*callback_not_allowed"' "$work/answer"

ask dest pause web --reason "until all are there: who comes when the bad one is dead waits behind nobody"
for i in 1 2 3 4 5 6; do
    post '{"destination": "web", "id": "k'$i'", "payload": "'"$(test $i = 2 && echo bad || echo fine)"'", "key": "order-7"}' >/dev/null
done
ask dest resume web
check "jobs of one key go on when one dies" until_true state_is completed k6
check "the next is marked" test "$(for i in 1 2 3 4 5 6; do "$insist" job k$i -o json | grep -o '"gap":true' | sed "s/^/k$i /"; done)" = 'k3 "gap":true'
arrived=$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    key = {k.lower(): v for k, v in r["headers"].items()}.get("idempotency-key", "")
    if r["path"] == "/web" and "/k" in key: print(key.split("/")[1])' "$work/requests" | uniq | tr '\n' ' ')
check "and they came in order" test "$arrived" = 'k1 k2 k3 k4 k5 k6 '

# Killed on the way, again and again: none is lost, none is out of order.
sent=0
for round in 1 2 3; do
    for i in 1 2 3 4 5 6 7 8; do
        sent=$((sent + 1))
        post '{"destination": "web", "id": "r'$sent'", "payload": "fine"}' >"$work/answer"
    done
    kill -9 $daemon
    wait $daemon 2>/dev/null
    serve --init
done
check "after kills every job is told of to its end" until_true is_said 24 /events 'b["subject"].startswith("r") and b["type"] == "insist.job.completed"'
check "and from its beginning" is_said 24 /events 'b["subject"].startswith("r") and b["type"] == "insist.job.accepted"'
check "in order" in_order
check "nothing tells of what tells" is_said 0 /events 'b["data"]["destination"] in ("bus", "desk")'
kill $daemon
wait $daemon 2>/dev/null
finish
