# shellcheck shell=sh disable=SC2034 # those who source it use the variables
# Sourced by the tests that are shell scripts: TAP lines, and a folder of one's own.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
insist=${INSIST:-$root/build/insist}
[ -x "$insist" ] || { echo "Bail out! there is no $insist"; exit 1; }
build=${INSIST_BUILD:-$root/build}
work=$(mktemp -d)
# The daemon and the receiver of a test; commands talk to no other.
unset INSIST_SERVER INSIST_TOKEN
daemon='' receiver=''
trap '[ -z "$daemon$receiver" ] || kill $daemon $receiver 2>/dev/null; rm -rf "$work"' EXIT
number=0
failures=0

# run COMMAND...: leaves $work/out, $work/err and $code.
run() {
    "$@" >"$work/out" 2>"$work/err"
    code=$?
}

# ask ARGUMENTS...: runs insist.
ask() {
    run "$insist" "$@"
}

# check NAME COMMAND...: one test, passed when the command succeeds.
check() {
    test_name=$1
    shift
    number=$((number + 1))
    if "$@" >"$work/check" 2>&1; then
        echo "ok $number - $test_name"
    else
        failures=$((failures + 1))
        echo "not ok $number - $test_name"
        { cat "$work/check"; echo "exit ${code:-}"; head -c 1000 "$work/out"; head -c 1000 "$work/err"; } 2>/dev/null | sed 's/^/# /'
    fi
}

# ended CODE TEXT...: how the last run ended, and that its outputs have each of the texts.
ended() {
    [ "$code" = "$1" ] || { echo "exit $code, not $1"; return 1; }
    shift
    for text in "$@"; do
        cat "$work/out" "$work/err" | grep -qF -e "$text" || { echo "no: $text"; return 1; }
    done
}

# until_true COMMAND...: waits for it, a minute at most: a busy machine may take long.
until_true() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "never: $*"; return 1; }
        sleep 0.1
    done
}

# wait_for COMMAND...: what the rest cannot do without.
wait_for() {
    until_true "$@" || { echo "Bail out! never: $*"; cat "$work/err" 2>/dev/null; exit 1; }
}

# receive: starts a receiver ($receiver, $url) that notes in $work/requests what it is sent.
receive() {
    python3 "$root/tests/cases/receiver.py" "$work" &
    receiver=$!
    wait_for test -s "$work/port"
    url=http://127.0.0.1:$(cat "$work/port")
}

# serve ARGUMENTS...: starts the daemon of $work/insist.yaml ($daemon), which commands then talk to; it logs to $work/serve.err.
serve() {
    : >"$work/serve.out" # the last one's word is not this one's
    "$insist" serve "$@" -c "$work/insist.yaml" >"$work/serve.out" 2>>"$work/serve.err" &
    daemon=$!
    wait_for grep -q 'listens on' "$work/serve.out"
    INSIST_SERVER=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
    export INSIST_SERVER
}

finish() {
    echo "1..$number"
    [ "$failures" = 0 ]
}
