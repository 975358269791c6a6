#!/bin/sh
# People hear of an outage by e-mail: from the daemon to a mail server, read there by somebody else's code. S3-067.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= mail= receiver=
trap 'kill $daemon $mail $receiver 2>/dev/null; rm -rf "$work"' EXIT

mails() { # TEXT: how many messages have it
    grep -cF -e "$1" "$work/mail"
}
one_mail() {
    [ "$(mails "$1")" = 1 ]
}

python3 "$root/tests/cases/mail.py" "$work" &
mail=$!
python3 "$root/tests/cases/receiver.py" "$work" &
receiver=$!
wait_for test -s "$work/mail-port"
wait_for test -s "$work/port"
: >"$work/mail"
cat >"$work/insist.yaml" <<END2
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
notify:
  - { name: people, email: people@example.net, through: mail, on: [contingency] }
  - { name: billing, email: billing@example.net, from: alerts@example.org, through: mail, on: [contingency, permanent_error] }
destinations:
  mail:
    preset: email
    url: smtp://127.0.0.1:$(cat "$work/mail-port")
    allow_private: true
    smtp: { from: ops@example.org, helo: insist.test }
  claims:
    preset: http
    url: http://127.0.0.1:$(cat "$work/port")/claims
    allow_private: true
    retry: { base: 100ms, floor: 100ms, cap: 1s }
    errors: { permanent: ["499"] }
    breaker: { min_calls: 3, open: 1s }
    contingency: { ramp: [5], stable: 1s, check: 1s }
END2
ask check -c "$work/insist.yaml"
check "the file is valid" ended 0 '2 destinations'
serve --init

# ---- it begins ----
for i in 1 2 3 4 5 6 7 8; do
    "$insist" add claims --data "bad claim $i" >/dev/null
done
check "an outage is told to both" until_true sh -c "[ \$(grep -cF 'contingency began' '$work/mail') = 2 ]"
check "from the destination's own address" one_mail '"from": "ops@example.org", "to": ["people@example.net"]'
check "or from one's own" one_mail '"from": "alerts@example.org", "to": ["billing@example.net"]'
check "the subject says what and where" grep -qF '"Subject": "[insist] critical: contingency at claims"' "$work/mail"
check "the text says what it means" grep -qF 'claims: contingency began: jobs are held and lose no tries' "$work/mail"
check "and which incident it is" grep -qE 'incident: 2[0-9TZ.]+-claims' "$work/mail"
check "nothing is wrong with the messages" sh -c "! grep -vF '\"defects\": []' '$work/mail'"
ask alerts
check "it stands" ended 0 'contingency'

# ---- it ends ----
kill "$receiver"
wait "$receiver" 2>/dev/null
rm -f "$work/port"
python3 "$root/tests/cases/receiver.py" "$work" '{"POST /claims": [200, {}, ""]}' &
receiver=$!
wait_for test -s "$work/port"
sed -i "s|url: http://127.0.0.1:[0-9]*/claims|url: http://127.0.0.1:$(cat "$work/port")/claims|" "$work/insist.yaml"
kill -HUP "$daemon"
check "its end is told to both" until_true sh -c "[ \$(grep -cF 'contingency is over after' '$work/mail') = 2 ]"
check "as over" grep -qF '"Subject": "[insist] over, critical: contingency at claims"' "$work/mail"
check "everything was told once" sh -c "[ \$(wc -l <'$work/mail') = 4 ]"
ask jobs --destination mail
check "as jobs of a tenant of their own" ended 0 'insist.notify'
finish
