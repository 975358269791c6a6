#!/bin/sh
# S0-114..S0-121, S1-083, S1-087, S1-088, C-28: job workers for Camunda 8 and 7 against a broker of the test's own, which fails in every way that Camunda's description names.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= stub=
trap 'kill $daemon $stub 2>/dev/null; rm -rf "$work"' EXIT
folder=$root/tests/clients

start_stub() { # [PORT]
    rm -f "$work/port"
    node "$folder/camunda_stub.mjs" "$work/port" "${1:-0}" 2>"$work/stub.err" &
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
  - { name: c7, engine: 7, url: "http://127.0.0.1:$port/engine-rest", types: { analyze-retry: tiss }, timeout: 3s, username: demo, password: demo }
END
run "$insist" check -c "$work/insist.yaml"
check "the configuration is valid" ended 0
sed 's/analyze-retry: tiss/analyze-retry: tisss/' "$work/insist.yaml" >"$work/bad.yaml"
run "$insist" check -c "$work/bad.yaml"
check "a policy that is not there is found" ended 2 tisss
"$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
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

# Every status that the description of Camunda names, for fetching and for answering.
for engine in 8 7; do
    of="engine $engine"
    for path in fetchAndLock activation; do
        [ $path = activation ] && [ $engine = 7 ] && continue
        [ $path = fetchAndLock ] && [ $engine = 8 ] && continue
        for fault in '"status": 500' '"status": 503' '"status": 401' '"status": 400' '"cut": true' '"half": true'; do
            stub_post faults "{\"path\": \"$path\", $fault, \"times\": 1}" >/dev/null
            add $engine analyze-retry CLM-2025-000010 TIMEOUT 0
            check "$of: fetching fails once: $fault" becomes "$key" "job['state'] == 'completed'"
        done
    done
    end=completion; [ $engine = 7 ] && end=/complete
    for fault in '"status": 500' '"status": 503' '"status": 429' '"huge": 30000000' '"cut": true'; do
        stub_post faults "{\"path\": \"$end\", $fault, \"times\": 2}" >/dev/null
        add $engine analyze-retry CLM-2025-000011 TIMEOUT 0
        check "$of: answering fails twice: $fault" becomes "$key" "job['state'] == 'completed' and job['given'] == 1"
    done
    for status in 404 409 400; do
        stub_post faults "{\"path\": \"$end\", \"status\": $status, \"times\": 1}" >/dev/null
        add $engine analyze-retry CLM-2025-000012 TIMEOUT 0
        check "$of: $status: another's by now, so it is dropped, and done when it is given out again" becomes "$key" "job['state'] == 'completed' and job['given'] == 2"
    done
done

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

# A broker that is gone for a while, and has its jobs when it is back (they are the stub's, so it is only stopped).
kill -STOP $stub
sleep 1
kill -CONT $stub
add 8 analyze-retry CLM-2025-000013 TIMEOUT 0
check "a broker that stalled is worked for again" becomes "$key" "job['state'] == 'completed'"

many=1000
stub_post jobs "{\"engine\": 8, \"type\": \"analyze-retry\", \"count\": $many, \"variables\": {\"submissionError\": \"TIMEOUT\", \"retryCount\": 0}}" >/dev/null
stub_post faults '{"path": "completion", "status": 503, "times": 50}' >/dev/null
stub_post faults '{"path": "activation", "cut": true, "times": 3}' >/dev/null
all_done() { [ "$(curl -fsS "http://127.0.0.1:$port/stub/jobs" | grep -o '"state":"open"' | wc -l)" = 0 ]; }
check "$many jobs, none lost" until_true all_done

kill -HUP $daemon
wait_for grep -q '"reloaded"\|event=reloaded\|reloaded' "$work/serve.err"
add 8 analyze-retry CLM-2025-000014 TIMEOUT 0
check "after a reload" becomes "$key" "job['state'] == 'completed'"
kill $stub
wait $stub 2>/dev/null
away() { grep -q camunda_away "$work/serve.err"; }
check "a broker that is gone is said to be" until_true away
start_stub "$port"
add 8 analyze-retry CLM-2025-000015 TIMEOUT 0
check "and worked for when it is back" becomes "$key" "job['state'] == 'completed'"
ends() { wait "$daemon"; }
kill -TERM $daemon
check "the daemon stops in order" ends
finish
