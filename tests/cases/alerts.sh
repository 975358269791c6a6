#!/bin/sh
# Alerts of a daemon of their own, and the webhook that is told: S3-015, S3-063.
. "$(dirname "$0")/../tap.sh"

told() { # TYPE ALERT: how often
    python3 - "$work/requests" "$1" "$2" <<'END'
import json, sys
count = 0
for line in open(sys.argv[1], encoding="utf-8"):
    request = json.loads(line)
    if request["path"] == "/hook":
        body = json.loads(bytes.fromhex(request["body"]))
        assert request["headers"]["webhook-signature"].startswith("v1,"), request["headers"]
        count += body["type"] == sys.argv[2] and body["data"]["alert"] == sys.argv[3] and body["data"]["destination"] == "claims"
print(count)
END
}
told_once() {
    [ "$(told "$@")" = 1 ]
}
listed() { # STATE TEXT
    "$insist" alerts --state "$1" | grep -qF "$2"
}

python3 "$root/tests/cases/receiver.py" "$work" &
receiver=$!
wait_for test -s "$work/port"
: >"$work/requests"
url=http://127.0.0.1:$(cat "$work/port")
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
notify:
  - { name: ops, webhook: "$url/hook", allow_private: true, on: [critical], sign: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw] } }
destinations:
  claims: { preset: http, url: "$url/claims", allow_private: true, contingency: { ramp: [5], stable: 1s, check: 1s }, retry: { max_retries: 0 } }
END
ask check -c "$work/insist.yaml"
check "the file is valid, and a webhook is no destination of the user's" ended 0 '1 destination,'
serve --init
ask alerts
check "nothing stands" ended 0
ask doctor -c "$work/insist.yaml"
check "and the doctor says so" ended 0 'ok    alerts         there is none'

# ---- contingency ----
ask dest contingency claims --reason 'they called'
check "contingency is entered" ended 0 'claims: contingency'
check "the webhook is told, signed" until_true told_once alert.raised contingency
check "it stands" until_true listed standing 'they called'
ask doctor -c "$work/insist.yaml"
check "the doctor does not say that all is well" ended 0 'warn  alerts         1 that nobody has acknowledged, 1 of them critical; 0 dead letters' ', 1 warning,'
ask alerts --severity critical -o json
check "as JSON" ended 0 '"alert":"contingency"' '"severity":"critical"' '"state":"standing"' '"destination":"claims"' '"incident":"2'
ask alerts --severity warning
check "and is no warning" sh -c "! grep -q contingency '$work/out'"
ask dest list
check "the webhook's destination shows" ended 0 'notify.ops'
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
serve --init
check "after a crash it stands" until_true listed standing 'they called'
ask dest contingency claims --leave
check "the way back" ended 0 'claims: recovering'
check "the webhook is told of its end" until_true told_once alert.cleared contingency
check "and of its beginning once only" told_once alert.raised contingency
check "it is over" until_true listed cleared 'contingency is over after'
ask alerts
check "and stands no more" sh -c "! grep -q contingency '$work/out'"
ask events -o json --limit 1000
check "the trail has both" ended 0 'alert_raised' 'alert_cleared'
ask audit verify -c "$work/insist.yaml"
check "and is whole" ended 0

# ---- jobs ----
ask add claims --id B-1 --data 'never this claim' # judged, and alone: no outage
check "a job dies" until_true sh -c "'$insist' job B-1 -o json | grep -q '\"state\":\"dead\"'"
check "and that is told" until_true told_once alert.raised max_retries_exceeded
check "it stands" until_true listed standing 'used up its retries'
ask doctor -c "$work/insist.yaml"
check "the doctor does not call that well either" ended 0 'warn  alerts' 'nobody has acknowledged' '1 dead letter:'
id=$("$insist" alerts --alert max_retries_exceeded -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["alerts"][0]["id"])')
ask alerts ack
check "which one must be said" ended 2 'name the alert'
ask alerts ack "$id" --note 'told billing'
check "somebody knows" ended 0 "$id: cleared, acknowledged"
ask alerts
check "so it stands no more" sh -c "! grep -q max_retries '$work/out'"
ask doctor -c "$work/insist.yaml"
check "nor does the doctor warn of it" ended 0 'ok    alerts'
ask alerts ack "$id"
check "and cannot be acknowledged again" ended 1 'no alert'
ask events -o json --limit 1000
check "the trail has it" ended 0 'alert_acknowledged' 'told billing'
ask add notify.ops --data x
check "nobody adds to the webhook" ended 2 'only tells of alerts'
ask alerts --state nonsense
check "a state that is none" ended 2 'standing, cleared or all'
finish
