#!/bin/sh
# What `make run` starts: the example's configuration, a daemon that answers, an end in order at Ctrl-C.
. "$(dirname "$0")/../tap.sh"
daemon=
trap 'kill $daemon 2>/dev/null; rm -rf "$work"' EXIT
unset INSIST_SERVER INSIST_TOKEN

ask check -c examples/insist.yaml
check "the example is valid" ended 0 'valid'
sed -e 's/^  # \(claims:\|invoices:\|  \)/  \1/' examples/insist.yaml >"$work/all.yaml"
mkdir "$work/secrets"
echo secret >"$work/secrets/operator-password"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout "$work/secrets/sifen.key" \
    -out "$work/secrets/sifen.pem" 2>/dev/null
ask check -c "$work/all.yaml"
check "and with what stands there as comments" ended 0 '4 destinations'
check "make run runs it" sh -c "env -u MAKEFLAGS -u SANITIZE -u CC make -n run | grep -q 'INSIST=build/insist tools/run'"

# The same file, on a free port and with a store of its own.
sed -e 's/^listen: .*/listen: 127.0.0.1:0/' -e "s|^store: .*|store: sqlite:$work/data/insist.db|" examples/insist.yaml >"$work/insist.yaml"
INSIST=$insist CONFIG=$work/insist.yaml tools/run >"$work/run.out" 2>"$work/err" &
daemon=$!
wait_for grep -q 'listens on' "$work/run.out"
url=$(grep -o 'http://127.0.0.1:[0-9]*, ' "$work/run.out" | tr -d ', ')
check "it says what to do next" grep -q 'listen --port 7879' "$work/run.out"
check "/livez" until_true curl -sf --noproxy '*' "$url/livez"
check "/readyz" until_true curl -sf --noproxy '*' "$url/readyz"
ask --server "$url" add work --id one --data x
check "it takes a job" ended 0 'one'
run curl -s --noproxy '*' "$url/v1/leases" -d '{"destination":"work"}'
check "and a worker gets it" ended 0 '"id":"one"' '"payload":"x"'
kill -INT "$daemon"
wait "$daemon"
code=$?
daemon=
check "Ctrl-C ends it in order" test $code = 0
finish
