#!/bin/sh
# insist listen: the receiver to try insist with, met with curl.
. "$(dirname "$0")/../tap.sh"
pid=
trap 'stop; rm -rf "$work"' EXIT

# begin OPTIONS...: starts it; leaves $url.
begin() {
    : >"$work/log" # what the one before said
    "$insist" listen --port 0 "$@" >"$work/log" 2>"$work/err" &
    pid=$!
    wait_for grep -q '^listening on ' "$work/log"
    url=$(sed -n 's/^listening on \(http:[^;]*\);.*/\1/p' "$work/log")
}

# stop: ends it; leaves $code and everything it printed in $work/out.
stop() {
    [ -n "$pid" ] || return 0
    kill -INT "$pid" 2>/dev/null
    wait "$pid"
    code=$?
    pid=
    cp "$work/log" "$work/out"
}

# post PATH [CURL OPTIONS...]: prints status, and curl's own code where that is not 0.
post() {
    path=$1
    shift
    status=$(curl -s -o "$work/body" -D "$work/headers" -w '%{http_code}' --noproxy '*' --max-time 30 "$@" "$url$path")
    result=$?
    [ $result = 0 ] && echo "$status" || echo "$status curl $result"
}

is() {
    [ "$1" = "$2" ] || { echo "$1, not $2"; return 1; }
}

# statuses N: as many requests, one status each, on one line.
statuses() {
    n=0
    line=
    while [ $n -lt "$1" ]; do
        line="$line$(post / -d x) "
        n=$((n + 1))
    done
    echo "$line"
}

begin
check "it answers" is "$(post /in -d hello -H 'Idempotency-Key: acme/j-1' -H 'Insist-Attempt: 2')" 200
check "with a body" is "$(cat "$work/body")" ok
check "to any method" is "$(post /in -X DELETE)" 200
check "to HEAD" is "$(post /in -I)" 200
stop
check "it says what came" ended 0 '#1  POST /in  5 B  200 answered' 'acme/j-1 try 2' '#2  DELETE /in' '3 requests, answered 3'

begin --status 202 --body '{"id":"7"}' --log
check "status" is "$(post /x --data-binary 'line one' -H 'X-Mine: yes')" 202
check "body" is "$(cat "$work/body")" '{"id":"7"}'
stop
check "--log shows all of it" ended 0 'X-Mine: yes' 'line one'

begin --fail 1 --retry-after 7
check "failing" is "$(post / -d x)" 503
check "with Retry-After" grep -qi '^Retry-After: 7' "$work/headers"
check "a failure has no body" is "$(wc -c <"$work/body" | tr -d ' ')" 0
stop
check "failures are counted" ended 0 '503 failed' '1 request, failed 1'

begin --fail 100% --fail-status 429
check "another failure" is "$(post / -d x)" 429
stop

begin --reset 1
check "a reset" is "$(post / -d x)" '000 curl 56'
stop
check "resets are counted" ended 0 '--- reset' 'reset 1'

begin --hang 1
check "no answer" is "$(post / -d x --max-time 1)" '000 curl 28'
stop
check "hangs are counted" ended 0 '--- hung' '1 request, hung 1'

begin --latency 2s --jitter 100ms
check "too late" is "$(post / -d x --max-time 1)" '000 curl 28'
check "in time" is "$(post / -d x)" 200
stop
check "who left is counted" ended 0 '--- gone' '2 requests, answered 1, gone 1'

begin --outage 0s..1h
check "an outage" is "$(post / -d x)" 503
stop
check "the outage is named" ended 0 '503 outage'

begin --limit 1 --latency 2s --quiet
post / -d x >"$work/one" &
first=$!
post / -d x >"$work/other"
wait $first
check "one too many" is "$(sort "$work/one" "$work/other" | tr '\n' ' ')" '200 503 '
stop
check "--quiet prints the summary alone" ended 0 '2 requests, answered 1, limited 1'
check "and no lines" is "$(grep -c '#' "$work/out")" 0

begin --fail 0.5 --seed 3
first=$(statuses 12)
stop
begin --fail 0.5 --seed 3
check "the same seed, the same fates" is "$(statuses 12)" "$first"
stop
begin --fail 0.5 --seed 4
check "another seed, others" [ "$(statuses 12)" != "$first" ]
stop
check "some fail and some do not" ended 0 'answered' 'failed'

begin
port=${url##*:}
ask listen --port "$port"
check "a port in use" ended 1 "insist: cannot listen on 127.0.0.1:$port: Address already in use"
stop

for wrong in '--fail 1.5' '--fail x' '--fail 101%' '--latency soon' '--outage 10s' '--outage 9s..1s' '--status 99' '--port 70000' '--limit 0' '--fail 0.6 --hang 0.6'; do
    # shellcheck disable=SC2086
    ask listen $wrong
    check "wrong: $wrong" ended 2 'insist: --'
done
ask listen --help
check "help" ended 0 'usage: insist listen' 'Examples:'
finish
