#!/bin/sh
# insist demo: it says what happens, ends by itself or at Ctrl-C, and leaves nothing behind.
. "$(dirname "$0")/../tap.sh"
mkdir "$work/tmp"
TMPDIR=$work/tmp
export TMPDIR

ask demo --for 1s
check "too short" ended 2 'insist: --for is at least 4s'
ask demo --for soon
check "no time" ended 2 'insist: --for: "soon"'
ask demo --for 8s
check "it plays to its end" ended 0 'the daemon at http://127.0.0.1:' 'export INSIST_SERVER=' 'OUTAGE' 'RECOVERY' ' dead' 'the daemon has ended'
check "its outage is a contingency, from which it comes back" ended 0 'orders is in mode contingency' 'orders is in mode recovering'
check "jobs were delivered" grep -qE '[1-9][0-9]+ delivered' "$work/out"
check "the receiver saw the outage" grep -qE 'requests, answered [0-9]+.*outage [0-9]+' "$work/out"
check "nothing is left" test -z "$(ls "$work/tmp")"

: >"$work/out" # what the run before said
"$insist" demo --keep >"$work/out" 2>"$work/err" &
demo=$!
wait_for grep -q ' added' "$work/out"
server=$(sed -n 's/.*INSIST_SERVER=//p' "$work/out")
"$insist" --server "$server" dest list >"$work/dest" 2>&1
check "others can look" grep -q '^orders' "$work/dest"
kill -TERM "$demo"
wait "$demo"
code=$?
check "a signal ends it" ended 0 'stay in' 'the daemon has ended'
check "its daemon, too" sh -c "! '$insist' --server '$server' stats"
check "--keep keeps the store" sh -c "ls '$work'/tmp/insist-demo-*/insist.db"
finish
