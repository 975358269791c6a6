#!/bin/sh
# What somebody types who has never used it: a job by its id alone, tables that fit, words where there is nothing, names
# that a shell completes. $INSIST is the program.
# shellcheck disable=SC2317 # check() calls the functions
. "$(dirname "$0")/../tap.sh"
daemon=
trap 'kill $daemon 2>/dev/null; rm -rf "$work"' EXIT
unset INSIST_SERVER INSIST_TOKEN COLUMNS

cat >"$work/insist.yaml" <<'END'
listen: 127.0.0.1:0
store: "memory:"
destinations:
  shop-orders: { preset: http, url: "http://user:hunter2@127.0.0.1:1/orders?key=hunter2", allow_private: true, description: Orders of the shop }
  work: { transport: pull, errors: { permanent: [BROKEN] } }
END
serve

# Lists that are empty say so, and nothing stands where a program would read.
for list in 'jobs|There are no jobs.' 'dead list|There are no dead letters.' 'alerts|There are no alerts.' 'incidents|There are no incidents.' \
    'jobs --state dead|There are no jobs like that.' 'tenants|There are no tenants.'; do
    # shellcheck disable=SC2086 # several words
    ask ${list%%|*}
    check "an empty list in words: ${list%%|*}" ended 0 "${list##*|}"
    check "and no head without a body: ${list%%|*}" test ! -s "$work/out"
done

# A job by its id alone.
for tenant in acme globex; do
    "$insist" add work --id both --tenant $tenant --data x >/dev/null
done
"$insist" add work --id only --tenant acme --data x >/dev/null
"$insist" add work --id plain --data x >/dev/null
ask job only
check "a job by its id, whatever its tenant" ended 0 'tenant           acme'
ask why only
check "why, by its id" ended 0 'only is pending at work'
ask job plain
check "one without a tenant" ended 0 'id               plain'
ask job both
check "several: which tenants have it" ended 1 '2 tenants have a job "both": ' '"acme"' '"globex"' 'say whose with --tenant'
ask job both --tenant globex
check "one of them" ended 0 'tenant           globex'
ask prioritize only high
check "acting on it by its id" ended 0 'only: pending, priority high'
ask cancel only
check "cancelling it by its id" ended 0 'only: cancelled'
ask cancel both
check "nothing is done to one of several" ended 1 '2 tenants have a job'
ask job nobody
check "one that is not there" ended 1 'there is no job "nobody"'
run curl -s --noproxy '*' "$INSIST_SERVER/v1/jobs?id=both&tenant=acme"
check "the API by id and tenant" ended 0 '"tenant":"acme"'
run curl -s --noproxy '*' "$INSIST_SERVER/v1/jobs?id=both&state=dead"
check "the API by id and state" ended 0 '"jobs":[]'

# A job that was delivered, once more.
"$insist" add work --id again --tenant acme --priority critical --data x >/dev/null
deliver() { # all that is due
    leases=$(curl -s --noproxy '*' "$INSIST_SERVER/v1/leases" -d '{"destination":"work","max":100}' | grep -oE '"lease":"[^"]+"' | cut -d: -f2 | paste -sd,)
    curl -s --noproxy '*' "$INSIST_SERVER/v1/leases/ack" -d "{\"leases\":[$leases]}" >/dev/null
}
ask resend again
check "what was not delivered yet is not sent once more" ended 1 'the job is pending; only completed jobs can be sent once more'
deliver
ask retry again
check "nor is what was delivered, by mistake" ended 1 'the job is completed'
ask resend again
check "a completed job once more" ended 0 'again: pending'
deliver
ask job again
check "as a new generation" ended 0 'state            completed' 'generation       2' 'attempts in all  2'
"$insist" add work --id fresh --data x >/dev/null

# When a scheduled job is due; a long error whole in a pipe.
"$insist" add work --id later --run-at 2099-05-06T07:08:09Z --data x >/dev/null
ask jobs
check "when a scheduled job is due" ended 0 '2099-05-06 07:08:09Z'
lease=$(curl -s --noproxy '*' "$INSIST_SERVER/v1/leases" -d '{"destination":"work"}' | grep -oE '"lease":"[^"]+"' | cut -d'"' -f4)
long=$(printf 'BROKEN %0100d end' 7 | tr 0 x)
curl -s --noproxy '*' "$INSIST_SERVER/v1/leases/nack" -d "{\"lease\":\"$lease\",\"error\":\"$long\"}" >/dev/null
ask dead list
check "a long error is whole in a pipe" ended 0 "$long"

in_terminal() { # COLUMNS ARGUMENTS...: its output in a terminal so wide
    python3 - "$insist" "$@" <<'END'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[2]), 0, 0))
    os.environ["NO_COLOR"] = "1"
    os.execv(sys.argv[1], [sys.argv[1]] + sys.argv[3:])
data = b""
try:
    while chunk := os.read(fd, 65536):
        data += chunk
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(data.replace(b"\r\n", b"\n"))
END
}
widest() { python3 -c 'import sys; print(max(len(line.rstrip("\n")) for line in sys.stdin))'; }
fits() { # COLUMNS ARGUMENTS...
    in_terminal "$@" >"$work/out"
    [ "$(wc -l <"$work/out")" -ge 2 ] && [ "$(widest <"$work/out")" -le "$1" ] || { cat "$work/out"; return 1; }
}
check "a table fits a terminal of 120 columns" fits 120 dead list
check "what is cut says so" grep -q '…' "$work/out"
check "a table fits a terminal of 150 columns" fits 150 dest list
wide() { in_terminal 400 dead list >"$work/out" && grep -qF "$long" "$work/out"; }
check "and is whole where there is room" wide

# A destination in words.
ask dest show shop-orders
check "a destination in words" ended 0 'what it is   Orders of the shop' 'sends to     http://127.0.0.1:1/orders, over http, preset http' \
    'mode         normal' 'jobs         0 pending, 0 running'
check "and no password in it" sh -c '! grep -q hunter2 "$1/out"' - "$work"
ask dest list
check "the list has addresses and descriptions" ended 0 'http://127.0.0.1:1/orders' 'Orders of the shop'
ask dest contingency shop-orders --reason 'they called'
ask dest show shop-orders
check "why it is held, in words" ended 0 'mode         contingency since ' ', because an operator held it: they called' 'held         by contingency since '

# Hints.
ask jobs --json
check "--json is hinted at" ended 2 'there is no option --json; write --output json'
ask help dead list
check "help of a command's part" ended 0 'usage: insist dead'
ask help deadd list
check "help of nothing" ended 2 'there is no command "deadd"'

# Names in a shell.
mkdir "$work/bin"
ln -s "$(realpath "$insist")" "$work/bin/insist"
PATH=$work/bin:$PATH
offers() { # SHELL EXPECTED WORD...: what it offers for the last word, sorted, with commas
    shell=$1 expected=$2
    shift 2
    offered=$(tests/complete.sh "$shell" "$@" 2>&1 | paste -sd,)
    [ "$offered" = "$expected" ] || { echo "offered: $offered"; return 1; }
}
for shell in bash zsh fish; do
    check "$shell completes a destination to add to" offers $shell shop-orders insist add sh
    check "$shell completes a destination to show" offers $shell shop-orders,work insist dest show ''
    check "$shell completes a destination to choose" offers $shell work insist jobs --destination w
    check "$shell completes a tenant" offers $shell acme,globex insist jobs --tenant ''
    check "$shell completes a state" offers $shell waiting insist jobs --state w
    check "$shell completes a job's id" offers $shell later insist why l
    check "$shell completes a class" offers $shell critical insist prioritize both c
    check "$shell completes a preset" offers $shell tiss insist presets ti
    check "$shell offers no files where a name belongs" offers $shell '' insist dest show Make
    check "$shell offers files where a file belongs" offers $shell Makefile insist add work Make
done
finish
