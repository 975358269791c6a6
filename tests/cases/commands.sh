#!/bin/sh
# The other commands that need no daemon, and what all commands share.
. "$(dirname "$0")/../tap.sh"
version=$(cat VERSION)

ask
check "no command" ended 2 'insist: no command is given' 'insist help'
ask --help
check "--help" ended 0 'usage: insist' '  decide ' 'Exit codes: 0 done; 1 failed; 2 wrong use or invalid input; 10 permanent error;'
for command in decide classify backoff check presets version help; do
    ask help $command
    check "help $command" ended 0 "usage: insist $command" 'Examples:'
    ask $command --help
    check "$command --help" ended 0 "usage: insist $command" 'Examples:'
done
ask help nothing
check "help of nothing" ended 2 'insist: there is no command "nothing"'
ask decid
check "the nearest command" ended 2 'insist: there is no command "decid"; did you mean "decide"?'
ask --sever x version
check "the nearest option" ended 2 'insist: there is no option --sever; did you mean --server?'
ask --output xml version
check "an unknown output" ended 2 'insist: --output is table or json, not "xml"'
ask --server http://127.0.0.1:1 --token t --output json version
check "options before the command" ended 0 "{\"version\":\"$version\","
ask --version
check "--version" ended 0 "insist $version"
ask version --verbose
check "version --verbose" ended 0 "insist $version" 'jansson' 'sqlite'
"$insist" version >/dev/full 2>"$work/err"
code=$?
check "a full disk is noticed" ended 1 'insist: cannot write to standard output: No space left on device'

"$insist" token ops --scope admin | tail -n 1 >"$work/tokens"
chmod 600 "$work/tokens"
printf 'auth: { tokens_file: "%s" }\n' "$work/tokens" >"$work/tokens.yaml"
ask check -c "$work/tokens.yaml"
check "a file of tokens without its first line" ended 2 'its first line is tokens: and the lines of insist token stand below'

ask presets tiss -o json
check "a preset is YAML, whoever asks for JSON" ended 2 'insist: a preset is printed as the YAML that it is; --output json goes with their list'

ask classify --policy tiss 'Timeout - Connection timeout after 30s'
check "S1-015: classify, whatever the case" ended 0 'class  transient' 'label  TRANSIENT' 'rule   TIMEOUT'
ask classify --policy tiss -o json 'AUTHORIZATION_DENIED'
check "classify as JSON" ended 0 '{"class":"permanent","label":"PERMANENT","rule":"AUTHORIZATION_DENIED"}'
ask classify --policy tiss --documents WEIRD_FAILURE
check "S1-043 C-16: in the document's word" ended 0 UNKNOWN_TRANSIENT
ask classify --policy tiss gremlins
check "S0-071: classify an unknown error" ended 0 'label  UNKNOWN' 'rule   none matched'
ask classify --policy tiss -- --TIMEOUT
check "-- ends the options" ended 0 'rule   TIMEOUT'
printf 'RATE_LIMIT\000' >"$work/in"
run "$insist" classify --policy tiss - <"$work/in"
check "classify standard input" ended 0 'rule   RATE_LIMIT'
ask classify --policy email --code smtp:550
check "classify a code alone" ended 0 'class  permanent'
ask classify --policy tiss ' '
check "classify nothing" ended 2 'insist: INVALID_ERROR_MESSAGE'
ask classify TIMEOUT
check "classify without a policy" ended 2 'insist: name a preset'

ask backoff --policy tiss --id CLM-A-1
check "S1-042: the table of waits" ended 0 '    1     5m      5m       6m' '    5  1h20m    1h4m    1h36m' '3h6m'
ask backoff --policy tiss --retries 7 --output json
check "C-12: waits beyond the limit, as JSON" ended 0 '{"retry":6,"baseMs":9600000,' '{"retry":7,"baseMs":14400000,'
ask backoff --policy tiss --retries 0
check "no rows" ended 2 'insist: --retries is a whole number from 1 to 10000, not "0"'
ask backoff --policy tiss --id nonsense
check "an id of another form" ended 2 'insist: --id: '

ask presets
check "presets" ended 0 'tiss ' 'email ' 'sifen ' 'provisioning '
ask presets tiss
check "a preset's YAML" ended 0 'max_retries: 5' 'INVALID_PATIENT_DATA'
check "exactly as it is in the source" cmp presets/tiss.yaml "$work/out"
ask presets tis
check "an unknown preset names the nearest" ended 2 'insist: ' 'tiss'
ask presets -o json
check "presets as JSON" ended 0 '[{"name":"'

cat >"$work/good.yaml" <<'END'
destinations:
  claims: { preset: tiss, url: "https://operator.example/tiss" }
END
cat >"$work/bad.yaml" <<'END'
destinations:
  claims: { preset: tiss, url: "https://operator.example/tiss", retri: { base: 5m } }
END
ask check -c "$work/good.yaml"
check "check a good file" ended 0 "$work/good.yaml: valid; 1 destination,"
ask check "$work/good.yaml" --output json
check "check as JSON" ended 0 '"destinations":["claims"]'
ask check -c "$work/bad.yaml"
check "check a bad file" ended 2 "$work/bad.yaml:2:" 'retry' 'insist: '
check "problems are on standard error" test ! -s "$work/out"
ask check -c "$work/none.yaml"
check "check a file that is not there" ended 2 "$work/none.yaml"
cp "$work/bad.yaml" "$work/insist.yaml"
run sh -c 'cd "$1" && exec "$2" check' - "$work" "$insist"
check "without -c, ./insist.yaml" ended 2 'insist.yaml:2:'
echo 'listen: "[::1]:7878"' >"$work/six.yaml"
ask check -c "$work/six.yaml"
check "an address of IPv6 as it stands in a URL" ended 0 'listens on [::1]:7878'
while IFS='|' read -r name more said; do
    printf 'store: "memory:"\ndestinations: { a: { %s } }\n' "$more" >"$work/refused.yaml"
    ask check -c "$work/refused.yaml"
    check "check finds what cannot be sent with: $name" ended 2 "refused.yaml:2:" ": destination \"a\": $said" 'is not valid'
    check "and nothing else is said: $name" test "$(wc -l <"$work/err")" = 2
    ask serve -c "$work/refused.yaml"
    check "nothing starts with it: $name" ended 2 "insist: $work/refused.yaml:2:" ": destination \"a\": $said"
    ask --server http://127.0.0.1:1 doctor -c "$work/refused.yaml"
    check "the doctor finds it: $name" ended 1 "fail  configuration  $work/refused.yaml:2:" ": destination \"a\": $said"
done <<'END'
an XPath|url: "https://a/", error_code: ["xpath://["]|error_code "xpath://[" is no XPath
a prefix|url: "https://a/", reference: ["xpath://soap:x"]|reference "xpath://soap:x" is no XPath
a question|url: "https://a/", poll: { url: "https://a/", error_code: ["xpath:f(1)"] }|poll.error_code "xpath:f(1)" is no XPath
a header|url: "https://a/", headers: { Content-Length: "5" }|headers: Content-Length cannot be set
an address|url: "http://127.0.0.1:1/"|url is at 127.0.0.1, a private address, to which nothing is sent
a certificate|url: "https://a/", tls: { ca: /nowhere/ca.pem }|tls.ca: /nowhere/ca.pem: No such file or directory
END
printf 'destinations: { a: { url: "https://a/", tls: { ca: /nowhere/a, cert: /nowhere/b, key: /nowhere/c } } }\nauth: { tokens_file: /nowhere/d }\n' >"$work/refused.yaml"
ask check -c "$work/refused.yaml"
check "check opens what the file refers to, and names all that is not there" ended 2 'refused.yaml:1:52: destination "a": tls.ca: /nowhere/a' \
    'refused.yaml:1:70: destination "a": tls.cert: /nowhere/b' 'refused.yaml:1:87: destination "a": tls.key: /nowhere/c' \
    'refused.yaml:2:22: auth.tokens_file: /nowhere/d' 'is not valid'
printf 'destinations: { a: { url: "https://a:99999/" } }\n' >"$work/refused.yaml"
ask check -c "$work/refused.yaml"
check "a port that there cannot be" ended 2 'refused.yaml:1:27: url has a value that does not fit; its port must be a number from 1 to 65535'
for kind in 'store: "postgres://127.0.0.1:1/b"' 'store: "redis://a/b"' 'destinations: { a: { transport: ses } }' 'destinations: { a: { transport: exec } }'; do
    printf '%s\n' "$kind" >"$work/refused.yaml"
    ask check -c "$work/refused.yaml"
    check "what cannot work is not valid: $kind" ended 2 'refused.yaml:1:' 'is not valid'
done
printf 'listen: 192.0.2.1:1\nauth: { tokens_file: %s }\ndestinations: { a: { url: "https://a/", tls: { verify: false } } }\n' "$work/tokens.yaml" >"$work/warned.yaml"
printf 'tokens: []\n' >"$work/tokens.yaml"
ask check -c "$work/warned.yaml"
check "what is probably not meant is a warning" ended 0 "warning: $work/warned.yaml:3:" 'tls.verify is off' 'warning: cannot listen there on this machine' 'valid; 1 destination'
ask check -c "$work/warned.yaml" -o json
check "warnings stand in the JSON too" ended 0 '"warnings":["'
SECRET=hunter-two-and-three
export SECRET
for setting in 'preset: "${SECRET}"' 'error_code: ["${SECRET}"]' 'reference: ["xpath:${SECRET}["]' 'tls: { ca: "/nowhere/${SECRET}" }'; do
    printf 'destinations: { a: { url: "https://a/", %s } }\n' "$setting" >"$work/secret.yaml"
    ask check -c "$work/secret.yaml"
    check "a secret is refused without a word of it: $setting" ended 2 'is not valid'
    # shellcheck disable=SC2016 # the reference itself
    check "and its reference is named: $setting" sh -c '! cat "$1/out" "$1/err" | grep -q hunter && grep -qF "{SECRET}" "$1/err" || grep -q "an item of error_code must be" "$1/err"' - "$work"
done
ask check --reference
check "the reference of settings" ended 0 'max_retries' 'jitter'
finish
