#!/bin/sh
# E-mail from the command line to a mail server, read there by somebody else's code.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= mail=
trap 'kill $daemon $mail 2>/dev/null; rm -rf "$work"' EXIT

state_is() { # STATE ID
    "$insist" job "$2" -o json | grep -q "\"state\":\"$1\""
}
arrived() { # TEXT: in what the mail server read
    grep -qF -e "$1" "$work/mail"
}

python3 "$root/tests/cases/mail.py" "$work" &
mail=$!
wait_for test -s "$work/mail-port"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  mail:
    preset: email
    url: smtp://127.0.0.1:$(cat "$work/mail-port")
    allow_private: true
    smtp: { from: ops@example.org, helo: insist.test }
END
serve --init

cat >"$work/message.json" <<'END'
{"to": ["Jürgen <bob@example.net>", "eve@example.net"], "bcc": "hidden@example.net", "subject": "Grüße from insist",
 "text": "Hello,\n.\nthis is café\n", "html": "<p>café</p>",
 "attachments": [{"filename": "größe.bin", "content_base64": "AAEC/w=="}, {"filename": "a.csv", "content_type": "text/csv", "content": "a;b"}]}
END
ask add mail --id M-1 "$work/message.json"
check "a message is taken" ended 0 'M-1'
check "and sent" until_true state_is completed M-1
check "to all recipients, hidden ones too" arrived '"from": "ops@example.org", "to": ["bob@example.net", "eve@example.net", "hidden@example.net"]'
check "hidden ones stay hidden" sh -c "! grep -q 'Bcc' '$work/mail'"
check "the subject is read as written" arrived '"Subject": "Gr\u00fc\u00dfe from insist"'
check "the recipients too" arrived '"To": "J\u00fcrgen <bob@example.net>, eve@example.net"'
check "the text, dots and all" arrived '"type": "text/plain", "name": null, "content": "Hello,\n.\nthis is caf\u00e9\n"'
check "the HTML" arrived '"type": "text/html", "name": null, "content": "<p>caf\u00e9</p>\n"'
check "bytes with their name" arrived '"name": "gr\u00f6\u00dfe.bin", "content": "000102ff"'
check "an attached text" arrived '"type": "text/csv", "name": "a.csv", "content": "a;b"'
check "and nothing is wrong with it" arrived '"defects": []'
ask job M-1 -o json
check "the server's own name for it is kept" ended 0 'queued as A1' '"status":"SENT"'

ask add mail --id M-5 "$root/examples/message.json"
check "the example" until_true state_is completed M-5
check "has its report" arrived '"name": "report.csv", "content": "day;jobs\nMon;17\n"'
run env MAIL_SERVER=mail.example.org:587 MAIL_USER=u MAIL_PASSWORD=p "$insist" check -c "$root/examples/mail.yaml"
check "and its configuration is valid" ended 0 'valid; 2 destinations'

printf 'Subject: as it is\n\n.hello\n' >"$work/raw"
ask add mail --id M-2 --metadata '{"from":"me@example.org","to":"bob@example.net"}' "$work/raw"
check "a message as it is" until_true state_is completed M-2
check "arrives as it is" arrived '"content": ".hello\n"'

ask add mail --id M-3 --data '{"to":"nobody@example.net","subject":"x"}'
check "an unknown recipient is final" until_true state_is dead M-3
ask job M-3
check "and named" ended 0 'smtp:550' '[nobody@example.net]' 'PERMANENT_ERROR'
ask add mail --data '{"to":"bob@example.net\r\nRCPT TO:<eve@example.net>"}'
check "no second recipient is smuggled in" ended 2 'line break'
ask add mail --data 'hello'
check "what is no message is not taken" ended 2 'no e-mail'
printf '{"payload":{"to":"bob@example.net","subject":"a\\nb"}}\n{"id":"M-4","payload":{"to":"bob@example.net"}}\n' >"$work/in"
run "$insist" add mail --batch <"$work/in"
check "nor in a batch" ended 2 '1 accepted, 0 there already, 1 refused' 'subject has a line break'
finish
