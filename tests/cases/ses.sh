#!/bin/sh
# E-mail through Amazon SES: a server that computes every signature itself, and answers with SES's errors.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= ses=
trap 'kill $daemon $ses 2>/dev/null; rm -rf "$work"' EXIT

state_is() { # STATE ID
    "$insist" job "$2" -o json | grep -q "\"state\":\"$1\""
}
says() { # ID TEXT
    "$insist" job "$1" -o json | grep -qF -e "$2"
}
arrived() { # TEXT: in what the server read
    grep -qF -e "$1" "$work/ses"
}

secret='wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
python3 "$root/tests/cases/ses_server.py" "$work" AKIDEXAMPLE "$secret" sa-east-1 &
ses=$!
wait_for test -s "$work/ses-port"
printf '%s' "$secret" >"$work/secret"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  mail:
    preset: email
    transport: ses
    url: http://127.0.0.1:$(cat "$work/ses-port")/
    allow_private: true
    username: AKIDEXAMPLE
    password: \${file:$work/secret}
    smtp: { from: ops@example.org }
    ses: { region: sa-east-1, configuration_set: billing, session_token: "Token/+==" }
    retry: { base: 100ms, cap: 200ms, throttle_min: 100ms }
  ruled:
    preset: email
    transport: ses
    url: http://127.0.0.1:$(cat "$work/ses-port")
    allow_private: true
    username: AKIDEXAMPLE
    password: \${file:$work/secret}
    ses: { region: sa-east-1 }
    smtp: { from: ops@example.org }
    response_max: 1KB
    errors: { permanent: [MESSAGE_REJECTED] }
  strange:
    preset: email
    transport: ses
    url: http://127.0.0.1:$(cat "$work/ses-port")
    allow_private: true
    username: AKIDEXAMPLE
    password: not-the-secret
    ses: { region: sa-east-1 }
    smtp: { from: ops@example.org }
END
ask check -c "$work/insist.yaml"
check "the configuration is valid" ended 0 'valid; 3 destinations'
sed 's/region: sa-east-1, //' "$work/insist.yaml" >"$work/bad.yaml"
ask check -c "$work/bad.yaml"
check "without a region it is not" ended 2 'needs ses.region'
serve --init

cat >"$work/message.json" <<'END'
{"to": ["Jürgen <bob@example.net>", "eve@example.net"], "bcc": "hidden@example.net", "subject": "Grüße",
 "text": "Hello,\n.\n..two dots\ncafé\n", "attachments": [{"filename": "a.csv", "content_type": "text/csv", "content": "a;b"}]}
END
ask add mail --id M-1 "$work/message.json"
check "a message is taken" ended 0 'M-1'
check "and sent" until_true state_is completed M-1
check "with a signature that holds" arrived '"path": "/v2/email/outbound-emails", "wrong": null'
check "to all recipients" arrived '"ToAddresses": ["bob@example.net", "eve@example.net", "hidden@example.net"]'
check "from its sender, with its configuration set" arrived '"FromEmailAddress": "ops@example.org"'
check "the configuration set" arrived '"ConfigurationSetName": "billing"'
check "the session's token" arrived '"token": "Token/+=="'
check "its dots are as they were" arrived '\r\n.\r\n..two dots\r\n'
check "hidden ones stay hidden" sh -c "! grep -q 'Bcc' '$work/ses'"
check "an attachment" arrived 'filename=\"a.csv\"'
check "the message's id is kept" says M-1 '"reference":"0100-'

for name in TooManyRequestsException ThrottlingException InternalServiceErrorException; do
    ask add mail --id "T-$name" --tenant "$name" --data "{\"to\":\"$name@error.test\",\"text\":\"x\"}"
    check "$name is tried again" until_true state_is completed "T-$name"
    check "and was called that" says "T-$name" "ses:$name"
done
check "as throttled where it is" says T-ThrottlingException '"class":"throttled"'
for name in MessageRejected BadRequestException; do
    ask add mail --id "P-$name" --tenant "$name" --data "{\"to\":\"$name@error.test\",\"text\":\"x\"}"
    check "$name is final" until_true says "P-$name" '"dead_code":"PERMANENT_ERROR"'
done
ask add strange --id S-1 --data '{"to":"bob@example.net","text":"x"}'
check "another secret is refused" until_true says S-1 'ses:SignatureDoesNotMatch'
check "and holds" says S-1 '"class":"blocked"'

bulk() { # ID ADDRESS...
    bulk_to mail "$@"
}
bulk_to() { # DESTINATION ID ADDRESS...
    to=$1 id=$2 entries=
    shift 2
    for address in "$@"; do entries="$entries{\"Destination\":{\"ToAddresses\":[\"$address\"]}},"; done
    ask add "$to" --id "$id" --tenant "$id" --data "{\"FromEmailAddress\":\"ops@example.org\",\"BulkEmailEntries\":[${entries%,}],\"DefaultContent\":{}}"
}
bulk L-1 a@example.net b@example.net
check "a bulk whose entries are all taken is delivered" until_true state_is completed L-1
check "with its ids" says L-1 '"reference":"bulk-a,bulk-b"'
bulk L-2 a@example.net ACCOUNT_THROTTLED@error.test
check "one that was taken in part waits for a person" until_true says L-2 '"dead_code":"PARTIAL"'
check "with what was taken" says L-2 'bulk-a'
bulk L-3 MESSAGE_REJECTED@error.test MESSAGE_REJECTED@error.test
check "one of which nothing was taken goes by its error" until_true says L-3 'ses:MESSAGE_REJECTED'
bulk L-4 MESSAGE_REJECTED@error.test ACCOUNT_THROTTLED@error.test
check "an entry that may pass is not lost by one before it that never will" until_true says L-4 'ses:ACCOUNT_THROTTLED'
check "nor by its name in the same answer" says L-4 '"class":"throttled"'
bulk L-5 MESSAGE_REJECTED@error.test @error.test
check "one of which an entry says nothing is in doubt" until_true says L-5 '"class":"in_doubt"'
bulk_to ruled R-1 MESSAGE_REJECTED@error.test MESSAGE_REJECTED@error.test
check "a rule of the destination's own has its way with all of a bulk" until_true says R-1 '"dead_code":"PERMANENT_ERROR"'
bulk_to ruled R-2 MESSAGE_REJECTED@error.test ACCOUNT_THROTTLED@error.test
check "and not with an entry that may pass" until_true says R-2 'ses:ACCOUNT_THROTTLED'
check "though the name stands in the answer" says R-2 '"class":"throttled"'
bulk_to ruled R-3 long@broken.test b@example.net
check "an answer that is not read to its end is in doubt, whatever its beginning says" until_true says R-3 '"class":"in_doubt"'
for kind in page cut empty; do
    bulk "B-$kind" "$kind@broken.test"
    ask add mail --id "M-$kind" --tenant "$kind" --data "{\"to\":\"$kind@broken.test\",\"text\":\"x\"}"
    check "a bulk whose answer cannot be read is in doubt: $kind" until_true says "B-$kind" '"class":"in_doubt"'
    check "so is a message: $kind" until_true says "M-$kind" '"class":"in_doubt"'
done
ask add mail --data "{\"to\":[$(i=0; while [ $i -lt 51 ]; do printf '"a%d@example.net",' $i; i=$((i + 1)); done | sed 's/,$//')],\"text\":\"x\"}"
check "51 recipients are too many for SES" ended 2 'SES takes up to 50'
for name in AccountSuspendedException SendingPausedException; do
    ask add mail --id "B-$name" --tenant "$name" --data "{\"to\":\"$name@error.test\",\"text\":\"x\"}"
    check "$name holds" until_true says "B-$name" '"class":"blocked"'
done
check "no signature differed but the strange one's" sh -c "[ \"\$(grep -c '\"wrong\": \"' '$work/ses')\" = \"\$(grep -c SignatureDoesNotMatch '$work/ses')\" ]"
finish
