#!/bin/sh
# The documents' alert expressions, evaluated by a Prometheus that scrapes a daemon in which what they are about happens:
# S0-085, S0-088, S1-056, S1-057, C-47. How long each must last (`for`) is left out; rules_test.yml holds that. Then every expression of
# the example's Grafana dashboards, which must find something in the same run.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
command -v prometheus >/dev/null || { echo "1..0 # skip there is no prometheus"; exit 0; }
daemon='' prometheus=''
trap 'kill $daemon $prometheus 2>/dev/null; rm -rf "$work"' EXIT
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  good: { transport: pull, alerts: { pending: 1 } }
  wrong: { transport: pull, errors: { permanent: [BAD] } }
  slow: { transport: pull, errors: { transient: [TIMEOUT] }, retry: { max_retries: 3, base: 1h, floor: 1h, cap: 5h, jitter: 0 } }
  tired: { transport: pull, errors: { transient: [TIMEOUT] }, retry: { max_retries: 0 } }
END
"$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
url=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
sed '/^ *for: /d' "$root/examples/prometheus/insist-rules.yml" >"$work/rules.yml"
cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [ $work/rules.yml ]
scrape_configs: [ { job_name: insist, static_configs: [ { targets: [ "${url#http://}" ] } ] } ]
END
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address="127.0.0.1:$port" \
    >"$work/prometheus.out" 2>&1 &
prometheus=$!
cat >"$work/play.py" <<'END'
"""Lets jobs end, and waits for what Prometheus makes of it."""
import json, sys, time, urllib.parse, urllib.request

daemon, prometheus = sys.argv[1:]

def post(path, body):
    request = urllib.request.Request(daemon + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))

def ask(query):
    answer = json.load(urllib.request.urlopen(f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query}), timeout=60))
    return answer["data"]["result"]

def wait(what, true):
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            if true():
                return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"never: {what}; firing: {firing()}")

def end(destination, error, count):
    for _ in range(count):
        post("/v1/jobs", {"destination": destination, "tenant": "t", "payload": "x"})
    while count > 0:
        for lease in post("/v1/leases", {"destination": destination, "max": count, "wait_s": 30})["leases"]:
            count -= 1
            if error:
                post("/v1/leases/nack", {"lease": lease["lease"], "error": error, "code": error})
            else:
                post("/v1/leases/ack", {"leases": [lease["lease"]]})

def all_end(count):
    for destination, error in (("good", None), ("wrong", "BAD"), ("slow", "TIMEOUT"), ("tired", "TIMEOUT")):
        end(destination, error, count)

def firing():
    return {(a["metric"]["alertname"], a["metric"].get("destination", "")) for a in ask('ALERTS{alertstate="firing"}')}

expected = {("PermanentErrorShare", "wrong"), ("PermanentErrorsMany", "wrong"), ("DeadLetterShare", "wrong"),
            ("BackoffMeanLong", "slow"), ("RetriesExhaustedShare", "tired"), ("DeadLetterShare", "tired")}
all_end(1)
wait("two scrapes", lambda: any(int(s["value"][1]) >= 2 for s in ask('count_over_time(dlq_entries_total{destination="wrong"}[1m])')))
all_end(20)
for job in ("waits", "waits", "too"):
    post("/v1/jobs", {"destination": "good", "id": job, "tenant": "t", "payload": "x"})
post("/v1/destinations/tired/pause", {"reason": "to see it"})
wait("the alerts", lambda: firing() >= expected)
seen = firing()
print(sorted(seen))
sys.exit(None if seen == expected else f"more than expected: {sorted(seen - expected)}")
END
cat >"$work/dashboards.py" <<'END'
"""Asks Prometheus every expression of the dashboards, as Grafana would with everything selected."""
import glob, json, re, sys, time, urllib.error, urllib.parse, urllib.request

prometheus, folder, families = sys.argv[1:]
CHOSEN = {"$__rate_interval": "1m", "$destination": ".*", "$tenant": ".*"}
wrong, empty, count = [], [], 0

def ask(query):
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query}), timeout=60) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as refused:
        return refused.read().decode()

def found(query):
    ends = time.monotonic() + 30
    while (answer := ask(query)) == [] and time.monotonic() < ends:
        time.sleep(0.3)
    return answer

def expressions(board):
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            yield variable["name"], f"count by ({label}) ({selector})"
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]

def overlapping(board):
    seen = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        if seen & cells or at["x"] + at["w"] > 24:
            yield panel["title"]
        seen |= cells

known = {name for row in re.findall(r"^\| `(\w+)` \| (\w+)", open(families).read(), re.M)
         for name in ([row[0]] if row[1] != "histogram" else [f"{row[0]}_{part}" for part in ("bucket", "sum", "count")])}
for path in sorted(glob.glob(f"{folder}/*.json")):
    board = json.load(open(path))
    wrong += [f"{path}: {title} covers another panel" for title in overlapping(board)]
    for title, expression in expressions(board):
        count += 1
        used = set(re.findall(r"\b(?:insist|process|dlq|tenant|retry|submission|backoff)_\w+", re.sub(r"by \([^)]*\)|\{[^}]*\}", "", expression)))
        wrong += [f"{path}: {title}: there is no {name}" for name in used - known]
        for name, value in CHOSEN.items():
            expression = expression.replace(name, value)
        answer = found(expression)
        if isinstance(answer, str):
            wrong.append(f"{path}: {title}: {expression}: {answer}")
        elif not answer:
            empty.append(f"{title}: {expression}")
print(f"{count} expressions")
sys.exit("\n".join(wrong + [f"finds nothing: {line}" for line in empty]) or None)
END
run python3 "$work/play.py" "$url" "http://127.0.0.1:$port"
check "a real Prometheus raises what the documents name, and nothing else" ended 0 PermanentErrorShare
run python3 "$work/dashboards.py" "http://127.0.0.1:$port" "$root/examples/grafana" "$root/docs/metrics.md"
check "it evaluates every expression of the dashboards, and each finds something" ended 0 expressions
finish
