#!/bin/sh
# A job that is refused holds itself; its tenant and the destination are held when others are refused too.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= receiver= tls=
trap 'kill $daemon $receiver $tls 2>/dev/null; rm -rf "$work"' EXIT

says() { # COMMAND... -- TEXT: what insist prints has it
    args=
    while [ "$1" != -- ]; do args="$args $1"; shift; done
    # shellcheck disable=SC2086 # no argument has a blank
    "$insist" $args | grep -qF -e "$2"
}
refusals() { # of a body
    grep -c "\"body\": \"$(printf '%s' "$1" | od -An -tx1 | tr -d ' \n')\"" "$work/requests"
}
refused_times() { # BODY COUNT
    [ "$(refusals "$1")" -ge "$2" ]
}

python3 "$root/tests/cases/receiver.py" "$work" &
receiver=$!
wait_for test -s "$work/port"
: >"$work/requests"
url=http://127.0.0.1:$(cat "$work/port")
mkdir "$work/tls"
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=nobody -keyout "$work/tls/key" -out "$work/tls/cert" 2>/dev/null
python3 "$root/tests/cases/receiver.py" "$work/tls" '{}' "$work/tls/cert" "$work/tls/key" 2>/dev/null &
tls=$!
wait_for test -s "$work/tls/port"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
notify:
  - { name: ops, webhook: "$url/hook", allow_private: true, on: [all] }
destinations:
  claims: { preset: http, url: "$url/claims", allow_private: true, concurrency: 1 }
  secure: { preset: http, url: "https://127.0.0.1:$(cat "$work/tls/port")/claims", allow_private: true }
END
serve --init

# ---- one job ----
ask add claims --tenant A --id bad --data 'refused A'
check "a job is added" ended 0
check "and refused" until_true says why bad --tenant A -- 'it was refused, 1 time in a row'
ask why bad --tenant A
check "it is held alone, and what to do is said" ended 0 'job_blocked' 'http:403, HTTP 403' 'it is sent again at' "insist retry 'bad'"
ask jobs --destination claims
check "the list says so" ended 0 'job_blocked'
ask add claims --tenant A --id a1 --data good
ask add claims --tenant B --id b1 --data good
check "others of its tenant go on" until_true says job a1 --tenant A -- completed
check "and other tenants" until_true says job b1 --tenant B -- completed
ask dest resume claims
check "somebody resumes the destination" ended 0
check "the same job is refused again" until_true refused_times 'refused A' 2
ask add claims --tenant B --id b2 --data good
check "and stops nobody" until_true says job b2 --tenant B -- completed
ask dest show claims
check "the destination is as before" ended 0 normal
check "an alert names job, tenant, code and text" until_true says alerts --alert job_blocked -- \
    'claims: a job is refused each time and is held alone (job bad of tenant A was refused: http:403, HTTP 403'

# ---- a tenant, then everybody ----
ask add claims --tenant B --id b3 --data 'refused B'
check "another tenant's is refused" until_true refused_times 'refused B' 1
ask add claims --tenant B --id b4 --data 'refused B too'
check "and its next one: the tenant is held" until_true says alerts --alert tenant_blocked -- \
    'claims: tenant B: held until a look goes well or somebody resumes it (job b4 of tenant B was refused: http:403, HTTP 403'
ask add claims --tenant B --id b5 --data good
ask why b5 --tenant B
check "which is what its other jobs wait for" ended 0 'tenant_blocked' 'sent to look at' "insist dest resume claims --tenant 'B'"
ask add claims --tenant A --id a2 --data good
check "and nobody else's" until_true says job a2 --tenant A -- completed
ask add claims --tenant C --id c1 --data 'refused C'
check "a third tenant's is refused" until_true refused_times 'refused C' 1
ask add claims --tenant D --id d1 --data 'refused D'
check "and a fourth's, with nothing good between: the destination is held" until_true says alerts --alert blocked -- \
    'claims: held until a look goes well or somebody resumes it (job d1 of tenant D was refused: http:403, HTTP 403'
ask add claims --tenant A --id a3 --data good
ask why a3 --tenant A
check "which is what all wait for" ended 0 'destination claims is held (job d1 of tenant D was refused' 'one job is sent to look at' \
    'insist dest resume claims'
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
serve --init
ask dest show claims
check "it outlives a crash" ended 0 blocked 'job d1 of tenant D'
: >"$work/open"
ask dest resume claims
check "it is mended and resumed" ended 0
for job in bad:A b3:B b4:B b5:B c1:C d1:D a3:A; do
    check "job ${job%:*} arrives" until_true says job "${job%:*}" --tenant "${job#*:}" -- completed
done
check "no alert stands" until_true sh -c "! '$insist' alerts | grep -q claims"

# ---- nothing can be sent ----
ask add secure --id s1 --data good
check "a certificate that nobody knows holds the destination at once" until_true says dest show secure -- blocked
check "and is what the alert says" until_true says alerts --alert blocked -- \
    'secure: held until a look goes well or somebody resumes it (nothing can be sent, as seen with job s1: curl:60, '
ask why s1
check "and why" ended 0 'destination secure is held (nothing can be sent' curl:60 'insist dest resume secure'
check "nobody speaks of credentials" sh -c "! '$insist' alerts | grep -qi credential && ! '$insist' why s1 | grep -qi credential"
check "nor does the trail" sh -c "'$insist' events --job s1 -o json >'$work/trail' && grep -q curl:60 '$work/trail' && ! grep -qi credential '$work/trail'"
finish
