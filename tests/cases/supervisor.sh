#!/bin/sh
# What the daemon tells whoever has set NOTIFY_SOCKET, as systemd does: ready, reloading, alive, stopping.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= listener=
trap 'kill $daemon $listener 2>/dev/null; rm -rf "$work"' EXIT

cat >"$work/listen.py" <<'END'
import socket, sys
there = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
there.bind(sys.argv[1] if sys.argv[1][0] == "/" else "\0" + sys.argv[1][1:])
print("bound", flush=True)
while True:
    print(there.recv(4096).decode().replace("\n", "|"), flush=True)
END
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations: { work: { transport: pull } }
END
listens() { # ADDRESS: leaves $listener and $work/said
    : >"$work/said" # the last one's word is not this one's
    python3 "$work/listen.py" "$1" >"$work/said" 2>"$work/listen.err" &
    listener=$!
    wait_for grep -q bound "$work/said"
}
starts() { # ADDRESS
    : >"$work/serve.out"
    : >"$work/serve.err"
    NOTIFY_SOCKET=$1 "$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
    daemon=$!
}
said() { grep -qF -e "$1" "$work/said"; }
said_in_order() { [ "$(grep -oE '^(READY|RELOADING|STOPPING)' "$work/said" | tr '\n' ' ')" = "$1" ]; }
ends() { # as it should
    wait "$daemon"
}

listens "$work/notify"
starts "$work/notify"
check "ready" until_true said 'READY=1|STATUS='
check "when the API answers" grep -q 'listens on' "$work/serve.out"
check "alive, again and again" until_true sh -c "[ \$(grep -c WATCHDOG=1 '$work/said') -ge 3 ]"
kill -HUP $daemon
check "reloading and ready" until_true said_in_order 'READY RELOADING READY '
check "since when" said 'RELOADING=1|MONOTONIC_USEC='
echo 'nonsense: 1' >>"$work/insist.yaml"
kill -HUP $daemon
check "ready also when the file is bad" until_true said_in_order 'READY RELOADING READY RELOADING READY '
kill -TERM $daemon
check "the daemon ends" ends
check "stopping" until_true said_in_order 'READY RELOADING READY RELOADING READY STOPPING '
kill $listener

sed -i '$d' "$work/insist.yaml"
listens "@insist-test-$$"
starts "@insist-test-$$"
check "a name without a path" until_true said 'READY=1'
kill $listener # a supervisor that is gone is no reason to stop
wait_for grep -q 'listens on' "$work/serve.out"
server=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
kill -HUP $daemon
check "without anybody who listens it goes on" until_true curl -fsS "$server/livez"
kill -TERM $daemon
check "and ends" ends
starts nonsense
check "what is no address is logged" until_true grep -q 'NOTIFY_SOCKET is neither' "$work/serve.err"
wait_for grep -q 'listens on' "$work/serve.out" # it is logged before the daemon takes signals
kill -TERM $daemon
check "and the daemon works" ends
finish
