#!/bin/sh
# S1-083, S1-088: Camunda's own clients for 8 and 7 on the broker that insist's workers are tried against: both ask and say the same.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
. "$root/tests/clients/npm.sh"
daemon= stub=
trap 'kill $daemon $stub 2>/dev/null; rm -rf "$work"' EXIT
node "$folder/camunda_stub.mjs" "$work/port" 2>"$work/stub.err" &
stub=$!
wait_for test -s "$work/port"
port=$(cat "$work/port")
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
camunda:
  - { name: c8, engine: 8, url: "http://127.0.0.1:$port", types: { ours: tiss, both: tiss } }
  - { name: c7, engine: 7, url: "http://127.0.0.1:$port/engine-rest", types: { ours: tiss, both: tiss } }
END
"$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
run node "$folder/camunda_sdk.mjs" "$port"
for engine in 8 7; do
    check "engine $engine: fetching and each way to end a job are as Camunda's client has them" ended 0 "engine $engine: 4 kinds of requests are alike"
    check "engine $engine: both at the same jobs" ended 0 "engine $engine: 40 jobs of both, each ended once"
done
check "Camunda's description of its API takes what insist says" ended 0 "Camunda's description takes what insist says"
finish
