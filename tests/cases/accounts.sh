#!/bin/sh
# Whose account it is: a tenant's own, and secrets that are read again when their file changes.
. "$(dirname "$0")/../tap.sh"

state_is() { # STATE ID TENANT
    "$insist" job "$2" --tenant "$3" -o json | grep -q "\"state\":\"$1\""
}
arrived() { # TEXT: in what the receiver read
    grep -qF -e "$1" "$work/requests"
}
deliver() { # ID TENANT
    ask add plan --id "$1" --tenant "$2" --data "$1"
    until_true state_is completed "$1" "$2"
}

python3 "$root/tests/cases/receiver.py" "$work" &
receiver=$!
wait_for test -s "$work/port"
mkdir "$work/secrets"
printf 'first\n' >"$work/secrets/acme"
printf 'of-all\n' >"$work/secrets/all"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  plan:
    url: http://127.0.0.1:$(cat "$work/port")/all
    allow_private: true
    headers: { X-Plan: all, X-Key: "\${file:secrets/all}" }
    tenants:
      acme: { url: "http://127.0.0.1:$(cat "$work/port")/acme", headers: { X-Key: "\${file:secrets/acme}" } }
      zeta: { url: "https://127.0.0.1:$(cat "$work/port")/zeta", tls: { cert: zeta.pem, key: zeta.key } }
END
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/zeta.key" -out "$work/zeta.pem" -days 2 -subj /CN=zeta 2>/dev/null
ask check -c "$work/insist.yaml"
check "the configuration is valid" ended 0 'valid; 1 destination'
ask check -c "$root/examples/guests.yaml"
check "and so is the example" ended 0 'valid; 6 destinations'
printf 'destinations:\n  x:\n    url: http://a.example\n    tenants:\n      acme: { url: "smtp://a" , tls: { cert: a.pem } }\n' >"$work/bad.yaml"
ask check -c "$work/bad.yaml"
check "what a tenant's account lacks is told where it is written" ended 2 'bad.yaml:5:20: url must start with http' \
    'bad.yaml:5:46: cert and key in tls belong together'
printf 'destinations:\n  x:\n    url: http://a.example\n    tenants: { acme: { tls: { cert: /no.pem, key: /no.key } } }\n' >"$work/bad.yaml"
ask check -c "$work/bad.yaml"
check "also a file that is not there" ended 2 'tenant "acme"' '/no.pem: No such file'
serve --init

check "a tenant without an account is sent with the destination's" deliver A-1 globex
check "at its url, with its key" grep -q '"path": "/all".*"X-Key": "of-all"' "$work/requests"
check "another has its own" deliver A-2 acme
check "url and key, and the rest of the destination's" grep -q '"path": "/acme".*"X-Plan": "all".*"X-Key": "first"\|"path": "/acme".*"X-Key": "first".*"X-Plan": "all"' "$work/requests"

printf 'second\n' >"$work/secrets/new"
mv "$work/secrets/new" "$work/secrets/acme" # as whoever renews it does
check "a changed secret is noticed" until_true grep -q '"event":"secret_changed"\|secret_changed' "$work/serve.err"
check "and read again" until_true grep -q '"reloaded"\|reloaded' "$work/serve.err"
check "the next job has it" deliver A-3 acme
check "and nobody asked for that" arrived '"X-Key": "second"'
check "the other's is as it was" deliver A-4 globex

# One tenant's certificate is broken while it runs.
held_alone() {
    "$insist" dest show plan -o json | grep -q '"paused":\[{"tenant":"zeta"'
}
echo 'no key' >"$work/zeta.key"
ask add plan --id Z-1 --tenant zeta --data 'Z-1'
check "who has a broken key is held" until_true held_alone
check "and nobody else" deliver A-5 globex
check "whoever has an account" deliver A-6 acme
printf 'third\n' >"$work/secrets/acme"
changed() { ask add plan --tenant acme --data 'x'; arrived '"X-Key": "third"'; }
check "another's secret is read again all the same" until_true changed
check "the log says whose account it is" until_true grep -q 'account_unusable.*tenant \\"zeta\\": tls.key' "$work/serve.err"
ask check -c "$work/insist.yaml"
check "and so does check" ended 2 'tenant "zeta": tls.key'
kill "$daemon"
wait "$daemon"
serve
check "a start is not kept from it either" deliver A-7 acme
finish
