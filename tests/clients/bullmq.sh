#!/bin/sh
# The e-mail document's flow, end to end: a BullMQ producer, the bridge of examples/bullmq, insist, a stand-in for Amazon SES that verifies
# signatures, dead letters, and a redrive by filter that corrects them. Bridge, daemon and Redis are killed on the way.
# shellcheck disable=SC2317 # check() calls the functions
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= ses= redis= bridge=
# shellcheck disable=SC2086 # those that are there
trap 'kill -9 $daemon $ses $redis $bridge 2>/dev/null; wait; rm -rf "$work"' EXIT
. "$root/tests/clients/npm.sh"
count=120

free_port() {
    python3 -c 'import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print(probe.getsockname()[1])'
}

redis_port=$(free_port)
start_redis() {
    redis-server --port "$redis_port" --bind 127.0.0.1 --dir "$work" --appendonly yes --appendfsync always --save '' --maxmemory-policy noeviction \
        >"$work/redis.out" 2>&1 &
    redis=$!
    wait_for redis-cli -p "$redis_port" PING
}
start_daemon() {
    "$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>>"$work/serve.err" &
    daemon=$!
    wait_for grep -q 'listens on' "$work/serve.out"
}
mkdir "$work/bridge" && cp examples/bullmq/*.mjs examples/bullmq/package.json "$work/bridge" && ln -s "$folder/node_modules" "$work/bridge/node_modules"
start_bridge() {
    : >"$work/bridge.out"
    env QUEUE=email-send DESTINATION=mail REDIS_URL="redis://127.0.0.1:$redis_port" INSIST_SERVER="http://127.0.0.1:$port" CONCURRENCY=20 \
        STALLED_INTERVAL_MS=1000 node "$work/bridge/main.mjs" >"$work/bridge.out" 2>>"$work/bridge.err" &
    bridge=$!
}
kill_hard() { # PID
    kill -9 "$1"
    wait "$1" 2>/dev/null
}
producer() { node "$folder/bullmq_producer.mjs" "$redis_port" "$@"; }

python3 tests/cases/ses_server.py "$work" KEY secret sa-east-1 2>"$work/ses.err" &
ses=$!
start_redis
wait_for test -s "$work/ses-port"
port=$(free_port)
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:$port
store: sqlite:$work/data/insist.db
destinations:
  mail:
    preset: email
    transport: ses
    url: http://127.0.0.1:$(cat "$work/ses-port")
    allow_private: true
    username: KEY
    password: secret
    ses: { region: sa-east-1 }
    smtp: { from: ops@example.org }
    rate: { total: 10000/m, burst: 10000 }
    retry: { base: 200ms, throttle_min: 0s }
END
export INSIST_SERVER="http://127.0.0.1:$port"
start_daemon
start_bridge

# Each is killed while messages are on their way; the producer goes on.
producer add 0 40 >"$work/add.out" 2>&1
check "the producer adds to its queue as it did" test ! -s "$work/add.out"
accepted() { [ "$("$insist" jobs --all -o json 2>/dev/null | grep -o '"id":"outbox-[0-9]*"' | sort -u | wc -l)" -ge "$1" ]; }
check "the bridge hands over" until_true accepted 10
kill_hard "$bridge"
producer add 40 80
start_bridge
check "a bridge that was killed goes on" until_true accepted 50
kill_hard "$daemon"
producer add 80 100
kill_hard "$redis"
start_redis
start_daemon
producer add 100 $count
producer add 0 5 # once more, after they are done there
check "all become jobs" until_true accepted $count

ended_all() { "$insist" dest show mail -o json | python3 -c 'import json, sys
mail = json.load(sys.stdin)
sys.exit(mail["pending"] + mail["running"] + mail["waiting"] > 0)'; }
check "and end" until_true ended_all
drained() { producer counts | python3 -c 'import json, sys
counts = json.load(sys.stdin)
sys.exit(any(counts.get(name) for name in ("waiting", "active", "delayed", "prioritized", "failed")))'; }
check "BullMQ has none left" until_true drained
"$insist" jobs --all -o json >"$work/jobs"
cat >"$work/look.py" <<'END'
import collections, json, sys
jobs = [job for line in open(sys.argv[1]) for job in json.loads(line)["jobs"]]
ids = [job["id"] for job in jobs]
wanted = [f"outbox-{number}" for number in range(int(sys.argv[2]))]
assert sorted(ids) == sorted(wanted), (len(ids), len(set(ids)), set(wanted) ^ set(ids))
assert all(job["tenant"] == f"company-{int(job['id'][7:]) % 5}" for job in jobs)
states = collections.Counter((job["state"], job.get("status")) for job in jobs)
dead = sum(number % 40 == 7 for number in range(int(sys.argv[2])))
assert states == {("completed", "SENT"): len(wanted) - dead, ("dead", "DLQ"): dead}, states
sent = collections.Counter(json.loads(line)["call"]["Destination"]["ToAddresses"][0] for line in open(sys.argv[3]))
assert all(sent[f"user{number}@example.net"] >= 1 for number in range(int(sys.argv[2])) if number % 40 not in (7, 13)), sent
retried = [job for job in jobs if int(job["id"][7:]) % 40 == 13 and job["attempt_count"] > 1]
assert retried, "throttled ones are tried again"
END
check "each outbox entry is exactly one job, delivered or dead as the document says" python3 "$work/look.py" "$work/jobs" $count "$work/ses"

# What can be none is BullMQ's own failure, with its reason, and stops nobody.
producer bad
failed_two() { [ "$(producer failed | tee "$work/failed" | wc -l)" = 2 ]; }
check "what can be no message fails there" until_true failed_two
check "and says why" grep -q 'outbox-nobody [0-9]* insist: 422 invalid_message' "$work/failed"
check "an id with another body, too" grep -q 'outbox-0 [0-9]* insist: 409 id_conflict' "$work/failed"

# Dead letters: by code, by company, and back by filter, corrected.
ask dead summary --by code
check "dead letters are counted by code" ended 0 'MessageRejected' 3
ask dead export
check "they have the document's members" ended 0 '"outboxId":"outbox-7"' '"companyId":"company-2"' '"lastFailureReason":"' '"failedAttempts":1'
ask dead redrive --code ses:MessageRejected --tenant company-2 --patch '{"to":"corrected@example.net"}' --yes --wait
check "those of one company go back, corrected" ended 0
state_is() { "$insist" job "$2" --tenant "$3" -o json | grep -q "\"state\":\"$1\""; }
check "and are sent" until_true state_is completed outbox-7 company-2
check "to whom they should have gone" grep -q corrected@example.net "$work/ses"
ask dead list -o json
check "of others none was touched" test "$(grep -o '"id":"outbox-[0-9]*"' "$work/out" | sort -u | wc -l)" = "$(python3 -c 'print(sum(n % 40 == 7 and n % 5 != 2 for n in range(120)))')"

kill "$bridge"
check "the bridge stops in order" wait "$bridge"
bridge=
kill "$daemon"
check "and the daemon" wait "$daemon"
daemon=
finish
