#!/bin/sh
# S0-114..S0-121, S1-083, S1-087, S1-088, C-28: job workers for Camunda 8 and 7 against a broker of the test's own, which fails in every way that Camunda's description names.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= stub=
trap 'kill $daemon $stub 2>/dev/null; rm -rf "$work"' EXIT
folder=$root/tests/clients

start_stub() { # [PORT]
    rm -f "$work/port"
    node "$folder/camunda_stub.mjs" "$work/port" "${1:-0}" "$work/journal" 2>>"$work/stub.err" &
    stub=$!
    wait_for test -s "$work/port"
}
start_stub
port=$(cat "$work/port")
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
camunda:
  - { name: c8, engine: 8, url: "http://127.0.0.1:$port/", types: { retry-submission-backoff: tiss, analyze-retry: tiss }, timeout: 3s, token: secret }
  - { name: c8i, engine: 8, url: "http://127.0.0.1:$port", types: { with-incident: tiss }, on_terminal: incident }
  - { name: c8s, engine: 8, url: "http://127.0.0.1:$port", types: { stubborn: tiss }, timeout: 1h }
  - { name: c7, engine: 7, url: "http://127.0.0.1:$port/engine-rest", types: { analyze-retry: tiss }, timeout: 3s, username: demo, password: demo }
END
run "$insist" check -c "$work/insist.yaml"
check "the configuration is valid" ended 0
sed 's/analyze-retry: tiss/analyze-retry: tisss/' "$work/insist.yaml" >"$work/bad.yaml"
run "$insist" check -c "$work/bad.yaml"
check "a policy that is not there is found" ended 2 tisss
# As to destinations, no proxy of the environment is on the way.
http_proxy=http://127.0.0.1:9 "$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
server=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)

stub_post() { curl -fsS "http://127.0.0.1:$port/stub/$1" -d "$2"; }
add() { # ENGINE TYPE CLAIM ERROR COUNT: its key in $key
    key=$(stub_post jobs "{\"engine\": $1, \"type\": \"$2\", \"retries\": 3, \"variables\": {\"claimId\": \"$3\", \"submissionError\": \"$4\", \"retryCount\": $5, \"patient\": \"secret\"}}" |
        tr -d '[]"')
}
job() { curl -fsS "http://127.0.0.1:$port/stub/jobs" | python3 -c 'import json, sys; print(json.dumps([j for j in json.load(sys.stdin) if j["key"] == sys.argv[1]][0]))' "$1"; }
is() { # KEY EXPRESSION about job (its last end: e, variables of that: v)
    job "$1" >"$work/job" && python3 -c 'import json, sys
job = json.load(open(sys.argv[1])); e = job["ended"][-1] if job["ended"] else {"body": {}}; v = e["body"].get("variables", {})
ok = eval(sys.argv[2])
print(job if not ok else "")
sys.exit(not ok)' "$work/job" "$2"
}
becomes() { until_true is "$1" "$2" || { is "$1" "$2"; return 1; }; }

for engine in 8 7; do
    of="engine $engine"
    value=; [ $engine = 7 ] && value='["value"]'
    add $engine analyze-retry CLM-2025-000001 'TIMEOUT - no answer after 30s' 1
    check "$of: a retry completes the job with the decision" becomes "$key" "job['state'] == 'completed' and v['shouldRetry']$value is True and v['retryCount']$value == 2 and v['maxRetries']$value == 5 and v['errorClassification']$value == 'TRANSIENT' and v['nextRetryTime']$value.endswith('Z') and v['backoffMinutes']$value > 0 and v['retryReason']$value and v['originalError']$value.startswith('TIMEOUT')"
    add $engine analyze-retry CLM-2025-000002 'INVALID_PATIENT_DATA - CPF 123.456.789-09' 0
    check "$of: a permanent error is the process's" becomes "$key" "job['state'] == 'error' and e['body']['errorCode'] == 'PERMANENT_ERROR' and 'INVALID_PATIENT_DATA' in e['body']['errorMessage'] and '123.456.789-09' not in e['body']['errorMessage']"
    add $engine analyze-retry CLM-2025-000003 'TIMEOUT' 5
    check "$of: so are exhausted retries" becomes "$key" "job['state'] == 'error' and e['body']['errorCode'] == 'MAX_RETRIES_EXCEEDED'"
    add $engine analyze-retry CLM-2025-000004 'TIMEOUT' '"2"'
    check "$of: a count may be text" becomes "$key" "job['state'] == 'completed' and v['retryCount']$value == 3"
    add $engine analyze-retry CLM-2025-000005 'TIMEOUT' null
    check "$of: without a count it is the first" becomes "$key" "job['state'] == 'completed' and v['retryCount']$value == 1"
    add $engine analyze-retry CLM-2025-000006 '' 0
    check "$of: what is not valid is an incident" becomes "$key" "job['state'] == 'incident' and e['body']['errorMessage'].startswith('INVALID_ERROR_MESSAGE')"
    add $engine analyze-retry CLM-2025-000007 'TIMEOUT' -1
    check "$of: also a count below zero" becomes "$key" "job['state'] == 'incident' and 'INVALID_RETRY_COUNT' in e['body']['errorMessage']"
done
add 8 retry-submission-backoff CLM-2025-000008 'CONNECTION_ERROR' 0
check "the other type" becomes "$key" "job['state'] == 'completed' and v['shouldRetry'] is True and v['retryCount'] == 1"
add 8 with-incident CLM-2025-000009 'DUPLICATE_CLAIM' 0
check "an incident where that is wanted" becomes "$key" "job['state'] == 'incident' and e['body']['retries'] == 0 and 'DUPLICATE_CLAIM' in e['body']['errorMessage']"
curl -fsS "http://127.0.0.1:$port/stub/requests" >"$work/requests"
check "only the variables that are needed are asked for" sh -c "! grep -q patient '$work/requests' && grep -q fetchVariable '$work/requests'"
defaults() { grep -q 'with-incident.\{0,60\}timeout[^0-9]*10000,[^0-9]*maxJobsToActivate[^0-9]*50,' "$work/requests"; }
check "locked for ten seconds, fifty at most" defaults
check "with a token, or name and password" sh -c "grep -q 'Bearer secret' '$work/requests' && grep -q 'Basic ZGVtbzpkZW1v' '$work/requests'"
recorded() { # ID: its decision is in the trail, by whom
    curl -fsS "$server/v1/events?limit=1000" | grep -q "\"claimId\":\"$1\".*\"by\":\"c8\""
}
check "decisions are on record" recorded CLM-2025-000001
counted() { curl -fsS "$server/metrics" | grep -qE 'policy="tiss"|destination="tiss"'; }
check "and counted" counted

# Every status that the description of Camunda names, and every way to break off, for fetching.
for engine in 8 7; do
    path=activation; [ $engine = 7 ] && path=fetchAndLock
    for fault in '"status": 500' '"status": 503' '"status": 401' '"status": 400' '"cut": true' '"half": true'; do
        stub_post faults "{\"path\": \"$path\", $fault, \"times\": 1}" >/dev/null
        add $engine analyze-retry CLM-2025-000010 TIMEOUT 0
        check "engine $engine: fetching fails once: $fault" becomes "$key" "job['state'] == 'completed'"
    done
done

# The same for each of the three answers, all at once, each job with a fault of its own: what is not taken is given again, twice; what is
# another's by now is dropped, and done when the lock has ended and it is given out again.
cat >"$work/answers.py" <<'END'
import json, sys, time, urllib.request

def call(path, body=None):
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/stub/{path}", body and json.dumps(body).encode(), timeout=60) as answer:
        return json.load(answer)

AGAIN = [{"status": 500}, {"status": 503}, {"status": 401}, {"status": 403}, {"status": 408}, {"status": 429}, {"cut": True}, {"half": True},
         {"huge": 3000000}, {"stall": 300}]
DROPPED = [{"status": 400}, {"status": 404}, {"status": 409}]
ENDS = {"completed": ("TIMEOUT", 0), "error": ("DUPLICATE_CLAIM", 0), "incident": ("TIMEOUT", -1)}
wanted = {}
for engine in (8, 7):
    for state, (error, count) in ENDS.items():
        for fault in AGAIN + DROPPED:
            dropped = fault in DROPPED
            key = call("jobs", {"engine": engine, "type": "analyze-retry", "fault": {**fault, "times": 1 if dropped else 2},
                                "variables": {"claimId": "CLM-2025-000011", "submissionError": error, "retryCount": count}})[0]
            wanted[key] = (f"engine {engine}, {state}, {fault}", state, dropped)
ends = time.monotonic() + 60
while call("open") and time.monotonic() < ends:
    time.sleep(0.2)
jobs = {job["key"]: job for job in call("jobs")}
# A lock may end while a slow machine gives an answer again: then it is given out once more, and nothing is wrong with that.
wrong = [(what, jobs[key]) for key, (what, state, dropped) in wanted.items()
         if jobs[key]["state"] != state or len(jobs[key]["ended"]) != 1 or (dropped and jobs[key]["given"] < 2)]
once = sum(jobs[key]["given"] == 1 for key, (_, _, dropped) in wanted.items() if not dropped)
print(f"{len(wanted)} answers, {once} of which were given again in time")
sys.exit(f"not as it should be: {wrong}" if wrong or not once else None)
END
run python3 "$work/answers.py" "$port"
check "completion, error and failure under every status and every way to break off" ended 0 '78 answers'

# One whose answer is never taken, and is locked for an hour.
stub_post jobs '{"engine": 8, "type": "stubborn", "fault": {"status": 500, "times": 100000}, "variables": {"claimId": "CLM-2025-000016", "submissionError": "TIMEOUT"}}' |
    tr -d '[]"' >"$work/stubborn"
refused() { grep -o "$(cat "$work/stubborn")/completion" "$work/asked" | sed -n 2p | grep -q .; }
asked() { curl -fsS "http://127.0.0.1:$port/stub/requests" >"$work/asked" && refused; }
check "an answer that is refused is given again" until_true asked
for claim in 17 18 19; do
    add 8 stubborn CLM-2025-0000$claim TIMEOUT 0
    check "and holds up no other: $claim" becomes "$key" "job['state'] == 'completed'"
done
check "it is still to be answered" becomes "$(cat "$work/stubborn")" "job['state'] == 'open' and job['given'] == 1"

# The examples: the models are XML that names what insist does, and the delegate gets the same decision.
well_formed() { python3 -c 'import sys, xml.dom.minidom; [xml.dom.minidom.parse(f) for f in sys.argv[1:]]' examples/camunda/*.bpmn; }
check "the models are well formed" well_formed
absolute() { grep -q '>=date and time(nextRetryTime)<' examples/camunda/retry-8.bpmn && grep -q 'timeDate.*nextRetryTime' examples/camunda/retry-7.bpmn; }
check "they wait for a time" absolute
names() { for model in examples/camunda/*.bpmn; do
    for word in analyze-retry MAX_RETRIES_EXCEEDED PERMANENT_ERROR; do grep -q "$word" "$model" || { echo "$model: $word"; return 1; }; done; done; }
check "they know both errors and the worker" names
run javac -Xlint:all -Werror --release 17 -d "$work/classes" examples/camunda/RetryDelegate.java
check "the delegate is compiled" ended 0
run java -cp "$work/classes" RetryDelegate "$server" tiss CLM-2025-000020 'TIMEOUT: "x"' 2
check "and decides" ended 0 'shouldRetry = true (Boolean)' 'retryCount = 3 (Long)' 'originalError = TIMEOUT: "x"'
run java -cp "$work/classes" RetryDelegate "$server" tiss CLM-2025-000020 DUPLICATE_CLAIM 0
check "and throws" ended 0 'BpmnError PERMANENT_ERROR: DUPLICATE_CLAIM'

# A broker that stalls, breaks off, fails and is killed, and has its jobs when it is back.
kill -STOP $stub
sleep 1
kill -CONT $stub
add 8 analyze-retry CLM-2025-000013 TIMEOUT 0
check "a broker that stalled is worked for again" becomes "$key" "job['state'] == 'completed'"

many=${CAMUNDA_MANY:-300}
for engine in 8 7; do
    stub_post jobs "{\"engine\": $engine, \"type\": \"analyze-retry\", \"count\": $((many / 2)), \"variables\": {\"submissionError\": \"TIMEOUT\", \"retryCount\": 0}}" >/dev/null
done
open() { curl -fsS "http://127.0.0.1:$port/stub/open"; }
fail_some() {
    stub_post faults '{"path": "complet", "status": 503, "times": 20}' >/dev/null
    stub_post faults '{"path": "complet", "half": true, "times": 5}' >/dev/null
    stub_post faults '{"path": "activation", "cut": true, "times": 1}' >/dev/null
}
fail_some
for killed in $(seq 1 $((2 + many / 500))); do # what was locked when it was killed is given out at once, and the faults are forgotten
    sleep 0.3
    kill -KILL $stub
    wait $stub 2>/dev/null
    start_stub "$port"
    fail_some
done
tries=0
while [ "$(open)" != 0 ] && [ $tries -lt 600 ]; do
    tries=$((tries + 1))
    sleep 0.5
done
none_lost() { # each has ended once, however often it was given out, and is on record
    python3 - "http://127.0.0.1:$port/stub/jobs" "$server/v1/events?limit=1000&type=note&after=" "$many" <<'END'
import json, sys, urllib.request

def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)

jobs = [job for job in get(sys.argv[1]) if job["key"] in job["variables"]["claimId"]]
wrong = [job for job in jobs if job["state"] != "completed" or len(job["ended"]) != 1]
recorded, after = set(), "0"
while after:
    page = get(sys.argv[2] + after)
    recorded |= {event["data"].get("claimId") for event in page["events"]}
    after = page.get("next")
unrecorded = [job["key"] for job in jobs if job["variables"]["claimId"] not in recorded]
print(len(jobs), "wrong:", wrong[:3], "not on record:", unrecorded[:3])
sys.exit(len(jobs) != int(sys.argv[3]) or bool(wrong) or bool(unrecorded))
END
}
stub_post faults '{"clear": true}' >/dev/null
check "$many jobs, none lost, through $killed kills of the broker" none_lost

kill -HUP $daemon
wait_for grep -q '"reloaded"\|event=reloaded\|reloaded' "$work/serve.err"
add 8 analyze-retry CLM-2025-000014 TIMEOUT 0
check "after a reload" becomes "$key" "job['state'] == 'completed'"
before=$(grep -c camunda_away "$work/serve.err")
kill $stub
wait $stub 2>/dev/null
away() { [ "$(grep -c camunda_away "$work/serve.err")" -gt "$before" ]; }
check "a broker that is gone is said to be" until_true away
start_stub "$port"
add 8 analyze-retry CLM-2025-000015 TIMEOUT 0
check "and worked for when it is back" becomes "$key" "job['state'] == 'completed'"
ends() { wait "$daemon"; }
kill -TERM $daemon
check "the daemon stops in order" ends
finish
