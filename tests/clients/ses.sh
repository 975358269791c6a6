#!/bin/sh
# E-mail through a second opinion of what Amazon SES is: npm's aws-ses-v2-local.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= ses=
trap 'kill $daemon $ses 2>/dev/null; rm -rf "$work"' EXIT
. "$root/tests/clients/npm.sh"

port=$(python3 -c 'import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print(probe.getsockname()[1])')
node "$folder/node_modules/aws-ses-v2-local/dist/cli.js" --host=127.0.0.1 --port="$port" >"$work/ses.out" 2>&1 &
ses=$!
wait_for curl -sSf "http://127.0.0.1:$port/health-check"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  mail:
    preset: email
    transport: ses
    url: http://127.0.0.1:$port
    allow_private: true
    username: ANY
    password: any
    ses: { region: aws-ses-v2-local }
    smtp: { from: ops@example.org }
END
serve --init
state_is() { "$insist" job "$2" -o json | grep -q "\"state\":\"$1\""; }
stored() { curl -sS "http://127.0.0.1:$port/store" | grep -qF -e "$1"; }

ask add mail --id N-1 --data '{"to":"Bob <bob@example.net>","bcc":"eve@example.net","subject":"Grüße","text":"café\n","html":"<p>hi</p>","attachments":[{"filename":"a.csv","content":"a;b"}]}'
check "a message is taken" ended 0 'N-1'
check "and delivered" until_true state_is completed N-1
check "its subject is read as written" stored '"subject":"Grüße"'
check "its text" stored 'café'
check "its attachment" stored '"filename":"a.csv"'
ask add mail --id N-2 --data '{"FromEmailAddress":"ops@example.org","Destination":{"ToAddresses":["bob@example.net"]},"Content":{"Simple":{"Subject":{"Data":"its own form"},"Body":{"Text":{"Data":"x"}}}}}'
check "a call in the form of SES itself" until_true state_is completed N-2
check "arrives as it is" stored '"subject":"its own form"'
ask add mail --id N-3 --data '{"Content":{},"FromEmailAddress":"ops@example.org"}'
check "what is no call is refused for good" until_true state_is dead N-3
finish
