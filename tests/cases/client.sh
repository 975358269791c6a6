#!/bin/sh
# Commands that talk to a daemon: wrong use, and a daemon that is away, refuses, or is none at all.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
trap 'kill "$stub" 2>/dev/null; rm -rf "$work"' EXIT

for command in add jobs job why retry cancel prioritize dead dest incidents report top shape tenants stats errors events audit backup doctor token; do
    ask help $command
    check "help $command" ended 0 "usage: insist $command" 'Options:' 'Examples:'
done

# ---- wrong use ----
refused() { # TEXT ARGUMENTS...
    text=$1
    shift
    ask --server http://127.0.0.1:1 "$@"
    check "wrong use: $*" ended 2 "insist: $text" 'Try `insist help'
}
refused 'name the destination' add
refused "name the payload's file" add claims
refused 'the payload is --data or a file' add claims --data x -
refused '--priority is critical, high or normal' add claims --data x --priority urgent
refused '--run-at is a time as' add claims --data x --run-at tomorrow
refused '--run-at +5x' add claims --data x --run-at +5x
refused '--deadline is a time as' add claims --data x --deadline 2025-01-12T10:00:00
refused "--header is written as 'Name: value'" add claims --data x --header nothing
latin=$(printf 'Mu\361oz') # as a terminal of ISO 8859-1 writes it: two such names must not become one
refused "--id \"$latin\" is not UTF-8" add claims --data x --id "$latin"
refused "--tenant \"$latin\" is not UTF-8" add claims --data x --tenant "$latin"
refused "--key \"$latin\" is not UTF-8" add claims --data x --key "$latin"
refused "--correlation-id \"$latin\" is not UTF-8" add claims --data x --correlation-id "$latin"
refused "--tenant \"$latin\" is not UTF-8" dead redrive --tenant "$latin"
refused "--id \"$latin\" is not UTF-8" dead purge --id "$latin"
refused "--reason \"$latin\" is not UTF-8" dest pause claims --reason "$latin"
refused '--server is an address as http://127.0.0.1:7878, not ""' jobs --server ''
refused '--since -5x: ' dead list --since -5x
refused '--until -: ' jobs --until -
refused '--since is a time as 2025-01-12T10:51:41Z, or as -2h before now: "yesterday"' jobs --since yesterday
refused '--metadata is not JSON' add claims --data x --metadata '{'
refused '--metadata is a JSON object' add claims --data x --metadata '[1]'
refused 'with --batch each line' add claims --batch --id x
refused '--state is pending' jobs --state lost
refused '--limit is a whole number' jobs --limit 0
refused '--code is empty; leave it out, or say which' dead purge --destination claims --code '' --yes
refused '--tenant is empty; leave it out, or say which' jobs --tenant ''
refused 'the name is empty' job ''
refused 'the name is empty' dest pause ''
refused 'name the job' job
refused 'name the job' why
refused 'name the job' retry
refused 'name the job' cancel
refused 'name the job and its class' prioritize J
refused 'a class is critical, high or normal' prioritize J urgent
refused 'unexpected argument "x"' dead list x
refused 'say what to do: list, summary, export, redrive, purge, redrives, undo or cancel, not bury' dead bury
refused '--limit goes with list, redrives and redrive' dead export --limit 3
refused 'say which ones, as --code http:503, or --all for every dead letter' dead redrive
refused 'name one redrive' dead undo
refused '--archive goes with purge' dead redrive --all --archive x
refused '--out goes with export' dead list --out x
refused 'say what to do: list, show, pause, resume or contingency, not bury' dest bury
refused 'unexpected argument "x"' dest list x
refused 'unexpected argument "lst"' tenants lst
refused 'unexpected argument "x"' jobs list x
refused 'name the destination' dest pause
refused '--reason goes with pause' dest resume claims --reason x
refused '--reason goes with pause' dest contingency claims --leave --reason x
refused '--leave goes with contingency' dest pause claims --leave
refused 'say what to do: list, show, report or note, not bury' incidents bury
refused 'name the incident' incidents show
refused 'say which: daily or weekly' report
refused '--sort is worst, name' top --sort size
refused '--state is pending' shape --state lost
refused 'say which: daily or weekly, not monthly' report monthly
refused 'it is either --html or --output json' report daily --html x -o json
refused 'name the incident' incidents note
refused 'give the text, or - ' incidents note I
refused '--out goes with report' incidents show I --out x
refused '--destination, --limit' incidents show I --limit 3
refused 'unexpected argument "x"' incidents report I x
refused 'say what to do: list or forget, not lst' errors lst
refused 'unexpected argument "x"' errors list x
refused 'name the fingerprint' errors forget
refused '--limit goes with the list' errors forget x --limit 3
refused '--limit is a whole number' errors --limit 1001
refused '--after is a whole number' events --after -1
refused 'say what to do: verify or export' audit
refused 'name the file' backup
refused 'name the token' token
refused 'give --scope' token ops
refused '--scope is a list' token ops --scope read,write
ask --server ftp://x jobs
check "a server of another kind" ended 2 'insist: --server is an address as http://127.0.0.1:7878, not "ftp://x"'
ask --token 'a b' jobs
check "a token with a space" ended 2 'insist: the token has a space'
ask add claims "$work/none"
check "a payload that is not there" ended 2 "insist: cannot open $work/none: No such file or directory"

ask --server http://127.0.0.1:1 errors forget ''
check "an empty name in an address" ended 2 'insist: the name is empty'

# ---- no daemon ----
ask --server http://127.0.0.1:1 jobs
check "no daemon" ended 1 'insist: cannot reach http://127.0.0.1:1: Connection refused; is the daemon running? start it with: insist serve'
INSIST_SERVER=127.0.0.1:1/ run "$insist" stats
check "an address without its scheme" ended 1 'insist: cannot reach http://127.0.0.1:1: Connection refused'
http_proxy=http://127.0.0.1:2 run "$insist" --server http://127.0.0.1:1 stats
check "no proxy for this machine" ended 1 'insist: cannot reach http://127.0.0.1:1: Connection refused'
echo '{}' >"$work/in"
run "$insist" --server http://127.0.0.1:1 add claims --batch <"$work/in"
check "a batch says where it stopped" ended 1 'insist: stopped at line 1' '0 accepted'

# ---- a stub in its place ----
problem='"Content-Type": "application/problem+json"'
answers='{
    "GET /v1/stats": [401, {'$problem'}, "{\"type\":\"unauthorized\",\"detail\":\"a token is needed\"}"],
    "POST /v1/jobs": [422, {'$problem'}, "{\"type\":\"invalid_id\",\"detail\":\"id is \\u001b[31mwrong\"}"],
    "GET /v1/jobs/a": [409, {'$problem'}, "{\"title\":\"no\"}"],
    "GET /v1/jobs/b": [503, {'$problem', "Retry-After": "60"}, "{\"detail\":\"the disk is full\"}"],
    "GET /v1/jobs/stopping": [503, {'$problem', "Retry-After": "60"}, "{\"detail\":\"it is stopping; try again\"}"],
    "GET /v1/jobs/owner/why": [[503, {'$problem', "Retry-After": "1"}, "{\"detail\":\"no node owns it\"}"],
                               [200, {}, "{\"id\":\"owner\",\"state\":\"dead\",\"destination\":\"claims\",\"reason\":\"so\"}"]],
    "POST /v1/destinations/owner/pause": [503, {'$problem', "Retry-After": "1"}, "{\"detail\":\"no node owns it\"}"],
    "GET /v1/jobs/c": [500, {}, "<html>"],
    "GET /v1/dead/export?destination=foreign": [200, {"Insist-Api": null}, "<html>"],
    "GET /v1/reports/daily?format=text": [200, {"Insist-Api": null, "Content-Type": "text/plain"}, "Please log in"],
    "GET /v1/reports/daily?format=json": [200, {"Insist-Api": null, "Content-Type": "application/json"}, "{}"],
    "GET /v1/subjects/ana": [200, {"Insist-Api": null, "Content-Type": "application/x-ndjson"}, "{}\n"],
    "GET /v1/jobs?limit=5": [200, {"Insist-Api": null}, "{\"jobs\":[]}"],
    "GET /v1/jobs/foreign": [404, {"Insist-Api": null}, "{\"detail\":\"Not Found\"}"],
    "GET /v1/jobs/d": [200, {}, "<html>"],
    "GET /v1/jobs/asked": [200, {}, "{\"id\":\"asked\",\"attempts\":[{\"attempt\":1,\"class\":\"in_doubt\"},{\"attempt\":1,\"class\":\"delivered\",\"step\":\"verify\"}]}"],
    "GET /v1/jobs/sent": [200, {}, "{\"id\":\"sent\",\"attempts\":[{\"attempt\":1,\"class\":\"delivered\"}]}"],
    "GET /v1/jobs?limit=100": [200, {}, "{\"jobs\":[{\"id\":\"one\",\"last_error\":\"two\\u001b[2Jthree\"}],\"next\":\"7\"}"],
    "GET /v1/jobs?limit=99&cursor=7": [200, {}, "{\"jobs\":[{\"id\":\"longer\",\"created_at\":\"2025-01-12T10:51:41.234Z\"}],\"next\":null}"],
    "GET /v1/jobs?limit=1": [200, {}, "{\"jobs\":[{\"id\":\"one\"}],\"next\":\"7\"}"],
    "GET /v1/tenants?limit=100": [200, {}, "{\"rows\":[]}"],
    "GET /v1/dead?limit=2": [200, {}, "{\"dead\":[{\"id\":\"gone\"}],\"next\":null}"],
    "GET /v1/destinations?limit=1000": [200, {}, "{\"destinations\":[{\"name\":\"claims\",\"mode\":\"normal\"}],\"next\":null}"],
    "GET /v1/incidents?limit=100": [200, {}, "{\"incidents\":[{\"id\":\"i\"}],\"next\":null}"],
    "GET /v1/errors": [200, {}, "{\"errors\":[]}"],
    "GET /v1/dead/export": [500, {'$problem'}, "{\"detail\":\"the export failed\"}"],
    "GET /v1/jobs/a%2Fb%20c%3F%C3%BC/why?tenant=x%26y": [200, {}, "{\"id\":\"a/b\",\"state\":\"dead\",\"destination\":\"claims\",\"reason\":\"so\"}"],
    "GET /v1/incidents/a/report": [200, {}, "# Incident\n"],
    "GET /v1/incidents/b/report": [404, {'$problem'}, "{\"detail\":\"there is no incident\"}"],
    "GET /v1/incidents/a": [200, {}, "{\"id\":\"a\",\"summary\":\"It \\u001b[2Jbegan.\",\"lasted_ms\":90500,\"lessons_learned\":\"one\\ntwo\"}"],
    "PATCH /v1/incidents/a": [200, {}, "{\"id\":\"a\",\"lessons_learned\":\"x\"}"],
    "POST /v1/jobs/batch": [200, {}, "{\"accepted\":1,\"duplicates\":0,\"rejected\":[],\"warning\":\"it is\\u001b[2J late\"}"],
    "GET /v1/jobs/w/why": [200, {}, "{\"id\":\"w\",\"state\":\"pending\",\"destination\":\"claims\",\"reason\":\"so\",\"queue\":{\"ahead\":12,\"before\":40,\"tenants\":3,\"expected_at\":\"2025-01-12T10:51:41.234Z\"}}"],
    "GET /v1/tenants?destination=x&limit=100": [200, {}, "{\"tenants\":[{\"tenant\":\"acme\",\"destination\":\"x\",\"fairness\":{\"weight\":4,\"currentPriority\":2,\"roundsWithoutProcessing\":3,\"totalProcessed\":1234}}],\"next\":null}"],
    "POST /v1/dead/purge": [200, {}, "{\"matched\":2,\"purged\":2}"],
    "POST /v1/jobs/%2E%2E/cancel": [200, {}, "{\"id\":\"..\",\"state\":\"cancelled\",\"priority\":\"high\"}"]
}'
python3 "$root/tests/cases/receiver.py" "$work" "$answers" &
stub=$!
wait_for test -s "$work/port"
INSIST_SERVER=http://127.0.0.1:$(cat "$work/port")
export INSIST_SERVER
ask stats
check "401 without a token" ended 1 "insist: $INSIST_SERVER wants a token; give one with --token or INSIST_TOKEN"
ask --token secret stats
check "401 with a token" ended 1 "insist: $INSIST_SERVER does not know this token; give another with --token or INSIST_TOKEN"
check "the token is shown to the daemon" grep -q '"Authorization": "Bearer secret"' "$work/requests"
ask add claims --data x
check "422, made plain" ended 2 'insist: id is ?[31mwrong'
ask add claims --data x -o json
check "422 as JSON" ended 2 '{"type":"invalid_id","detail":"id is \u001b[31mwrong"}'
ask job a --tenant ''
check "409" ended 1 'insist: no'
ask job b --tenant ''
check "503 says when" ended 1 'insist: the disk is full; try again in 60 s'
ask job stopping --tenant ''
check "once" ended 1 'insist: it is stopping; try again in 60 s'
ask why owner --tenant ''
check "a question is asked again when the daemon says so" ended 0 'insist: no node owns it; trying again for up to 15 s' 'owner is dead at claims'
ask dest pause owner
check "an order is not" ended 1 'insist: no node owns it; try again in 1 s'
check "it was given once" test "$(grep -c owner/pause "$work/requests")" = 1
ask job c --tenant ''
check "an answer without a reason" ended 1 'insist: the daemon refused, with HTTP status 500'
ask doctor -c /dev/null
check "the doctor tells another service from a daemon" ended 1 "$INSIST_SERVER answered with HTTP status 200 and not as insist does"
foreign() { # ARGUMENTS...
    ask "$@"
    check "another service: $*" ended 1 "insist: $INSIST_SERVER answered with HTTP status" 'and not as insist does; is it another service'
    check "another service says nothing: $*" test ! -s "$work/out"
}
foreign dead export --destination foreign
foreign dead export --destination foreign --out "$work/foreign"
check "another service leaves no file" test ! -e "$work/foreign"
foreign report daily
foreign report daily -o json
foreign report daily --html "$work/foreign"
foreign subject history ana
foreign subject erase ana --dry-run
foreign jobs --limit 5 -o json
foreign job foreign --tenant ''
foreign events --follow
ask job d --tenant ''
check "an answer that is not JSON" ended 1 'is not JSON; is it of another version?'
ask tenants
check "an answer of another shape" ended 1 'has no "tenants"'
ask jobs
check "a list over two pages" ended 0 'one' 'two?[2Jthree' 'longer' '2025-01-12 10:51:41Z'
check "no escape reaches the terminal" sh -c "! grep -q \"\$(printf '\033')\" '$work/out'"
ask jobs --limit 1
check "what is left is told" ended 0 'There are more: --all, or go on with --cursor 7'
for what in 'jobs --limit 1' 'tenants --destination x' 'dead --limit 2' dest incidents errors; do
    # shellcheck disable=SC2086 # words
    ask ${what%% *} list $(echo "$what" | cut -s -d' ' -f2-)
    cp "$work/out" "$work/listed"
    # shellcheck disable=SC2086
    ask $what
    check "$what: with list and without" sh -c "[ $code = 0 ] && cmp '$work/out' '$work/listed'"
done
ask jobs -o json
check "one page as it is" ended 0 '{"jobs":[{"id":"one","last_error":"two\u001b[2Jthree"}],"next":"7"}'
ask dead export --out "$work/dead"
check "an export that failed" ended 1 'insist: the export failed'
check "an export that failed leaves no file" sh -c "! ls '$work' | grep -q dead"
ask why 'a/b c?ü' --tenant 'x&y'
check "ids are escaped" ended 0 'a/b is dead at claims' 'because  so'
check "facts stand without a line between" test "$(sed -n 2p "$work/out")" = 'because  so'
ask job asked --tenant ''
check "a question is told from a send" sh -c "grep -qE '^STEP +ATTEMPT' '$work/out' && grep -qE '^verify +1 .*delivered' '$work/out'"
ask job sent --tenant ''
check "where none was asked there is no column for it" sh -c "grep -q '^ATTEMPT' '$work/out' && ! grep -q STEP '$work/out'"
ask why w --tenant ''
check "why tells the place" ended 0 'before it, of its tenant  12' 'before it, of all         40' '2025-01-12 10:51:41Z'
ask tenants --destination x
check "tenants show their turns" ended 0 'PRIORITY  ROUNDS' '1234'
run "$insist" add --batch <"$work/in"
check "a warning is told, made plain" ended 0 'insist: warning: it is?[2J late' '1 accepted'
run "$insist" add --batch -o json <"$work/in"
check "a warning as JSON" ended 0 '"rejected":[],"warning":"it is\u001b[2J late"}'
ask cancel .. --tenant ''
check "an id of dots" ended 0 '..: cancelled, priority high'
ask incidents report a --out "$work/incident.md"
check "a report in a file" grep -q '^# Incident$' "$work/incident.md"
ask incidents report b --out "$work/none.md"
check "no report" ended 1 'insist: there is no incident'
check "no report leaves no file" sh -c "! ls '$work' | grep -q none"
ask incidents show a
check "an incident, made plain" ended 0 'It ?[2Jbegan.' 'lasted  1m30s' 'lessons learned:' '  two'
printf 'read \342\202\254\n' >"$work/in"
run "$insist" incidents note a - <"$work/in"
check "a note from standard input" ended 0 'a: noted'
check "the note arrives" grep -q "$(printf '"read \342\202\254"' | od -An -tx1 | tr -d ' \n')" "$work/requests"
printf '\377' >"$work/in"
run "$insist" incidents note a - <"$work/in"
check "a note that is no text" ended 2 'insist: standard input is not UTF-8 text'
"$insist" jobs >/dev/full 2>"$work/err"
code=$?
check "a full disk is noticed" ended 1 'insist: cannot write to standard output: No space left on device'
"$insist" dead purge --all --yes >/dev/full 2>"$work/err"
code=$?
check "a full disk is noticed by what prints a line" ended 1 'insist: cannot write to standard output: No space left on device'
{ "$insist" jobs 2>"$work/err"; echo $? >"$work/code"; } | true
check "a reader that went away is no news" test ! -s "$work/err"
"$insist" jobs >&- 2>"$work/err" # its number must not become a connection's, which would be printed into
code=$?
check "a closed standard output is noticed" ended 1 'insist: cannot write to standard output: Bad file descriptor'

# ---- without a store ----
mkdir "$work/empty"
(cd "$work/empty" && run "$insist" audit verify; echo $code >"$work/code")
code=$(cat "$work/code")
check "audit verify elsewhere says where to run it" ended 1 'insist: cannot open data/insist.db: No such file or directory; run it in the folder'

# ---- tokens ----
ask token billing --scope enqueue,read --tenant 'acme "1"'
check "a token" ended 0 'ins_' 'name: "billing"' 'scopes: [enqueue, read]' 'tenant: "acme \"1\""'
secret=$(head -n 1 "$work/out")
hash=$(printf %s "$secret" | sha256sum | cut -d' ' -f1)
check "its hash" grep -q "sha256: $hash," "$work/out"
check "256 bits" test ${#secret} = 47
ask token billing --scope admin -o json
check "another token is another" sh -c "! grep -q '$secret' '$work/out'"
check "a token as JSON" ended 0 '"name":"billing","token":"ins_' '"line":"- { name:'
finish
