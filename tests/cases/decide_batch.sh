#!/bin/sh
# insist decide --batch: one question a line, one answer a line.
. "$(dirname "$0")/../tap.sh"
good='{"claimId":"CLM-A-1","submissionError":"TIMEOUT","policy":"tiss","now":"2025-01-12T10:40:00Z"}'

batch() {
    run "$insist" decide --batch "$@" <"$work/in"
}
lines() { # N
    [ "$(wc -l <"$work/out")" = "$1" ] || { echo "$(wc -l <"$work/out") lines, not $1"; return 1; }
}
line_has() { # N TEXT
    sed -n "$1p" "$work/out" | grep -qF -e "$2" || { sed -n "$1p" "$work/out" | head -c 300; return 1; }
}

: >"$work/in"
batch
check "no question, no answer" ended 0
check "and nothing is printed" test ! -s "$work/out"

{ echo "$good"; printf '%s\r\n' "$good"; printf %s "$good"; } >"$work/in"
batch
check "every line decided" ended 0
check "the last line needs no end" lines 3
check "idempotent: the same line has the same bytes" test "$(sort -u "$work/out" | wc -l)" = 1

# Each bad line stands between two good ones.
bad_line() { # NAME ERROR
    batch
    check "$1: $2" ended 2
    check "$1: all lines are answered" lines 3
    check "$1: in its place" line_has 2 "{\"error\":\"$2\",\"detail\":\""
    check "$1: the next goes on" line_has 3 '"shouldRetry":true'
}
bad_text() { # NAME ERROR TEXT
    printf '%s\n%s\n%s\n' "$good" "$3" "$good" >"$work/in"
    bad_line "$1" "$2"
}
head='{"claimId":"CLM-A-1","policy":"tiss",'
bad_text "empty line" INVALID_JSON ''
bad_text "blank line" INVALID_JSON '   '
bad_text "not JSON" INVALID_JSON 'TIMEOUT'
bad_text "cut off" INVALID_JSON '{"claimId":"CLM-A-1"'
bad_text "an array" INVALID_JSON '[]'
bad_text "duplicate key" INVALID_JSON "$head"'"submissionError":"x","submissionError":"y"}'
bad_text "A-06: missing error" INVALID_ERROR_MESSAGE "$head"'"retryCount":0}'
bad_text "A-06: empty error" INVALID_ERROR_MESSAGE "$head"'"submissionError":""}'
bad_text "A-06: blank error" INVALID_ERROR_MESSAGE "$head"'"submissionError":" \t"}'
bad_text "A-06: NUL as error" INVALID_ERROR_MESSAGE "$head"'"submissionError":"\u0000"}'
bad_text "A-05: negative" INVALID_RETRY_COUNT "$head"'"submissionError":"x","retryCount":-1}'
bad_text "A-05: 1.5" INVALID_RETRY_COUNT "$head"'"submissionError":"x","retryCount":1.5}'
bad_text "A-05: x" INVALID_RETRY_COUNT "$head"'"submissionError":"x","retryCount":"x"}'
bad_text "A-05: 10^400" INVALID_RETRY_COUNT "$head\"submissionError\":\"x\",\"retryCount\":1$(printf '%0400d' 0)}"
bad_text "unknown policy" UNKNOWN_POLICY '{"id":"a","submissionError":"x","policy":"tis"}'
bad_text "missing policy" UNKNOWN_POLICY '{"id":"a","submissionError":"x"}'
bad_text "S0-050: missing id" INVALID_ID '{"submissionError":"x","policy":"tiss"}'
bad_text "S0-053: a wrong time" INVALID_TIME "$head"'"submissionError":"x","lastSubmissionTime":"soon"}'
printf '%s\n%s"submissionError":"\377"}\n%s\n' "$good" "$head" "$good" >"$work/in"
bad_line "not UTF-8" INVALID_JSON
printf '%s\n{"a":\000}\n%s\n' "$good" "$good" >"$work/in"
bad_line "a NUL byte" INVALID_JSON
{ echo "$good"; printf '%s"submissionError":"' "$head"; head -c 10000000 /dev/zero | tr '\0' x; echo '"}'; echo "$good"; } >"$work/in"
bad_line "10 MB" INVALID_JSON
check "10 MB: the limit is told" line_has 2 '4194304 bytes'
head -c 20000000 /dev/zero | tr '\0' x >"$work/in"
batch
check "20 MB without a line end" ended 2
check "20 MB without a line end: one answer" lines 1
{ printf '%s"submissionError":"' "$head"; head -c 4000000 /dev/zero | tr '\0' x; echo '"}'; echo "$good"; } >"$work/in"
batch
check "4 MB are taken" ended 0
check "4 MB are taken: both lines" lines 2

echo '{"claimId":"CLM-A-1","submissionError":"TIMEOUT"}' >"$work/in"
batch --policy tiss --now 2025-01-12T10:40:00Z
check "--policy and --now are for lines that have none" ended 0 '"nextRetryTime":"2025-01-12T10:4'
{ echo '{"id":"a","submissionError":"503","policy":"http"}'; echo '{"id":"CLM-A-1","submissionError":"503"}'; } >"$work/in"
batch --policy tiss
check "a line may name its own policy" ended 0 '"maxRetries":5'
check "a line may name its own policy: the other" sh -c "! sed -n 1p '$work/out' | grep -q '\"maxRetries\":5'"
batch --policy tis
check "a wrong --policy" ended 2 'did you mean "tiss"?'
batch --id x
check "--id has no place with --batch" ended 2 'insist: with --batch'

mkfifo "$work/to" "$work/from"
"$insist" decide --batch --policy tiss <"$work/to" >"$work/from" &
child=$!
exec 3>"$work/to" 4<"$work/from"
answered=0
for _ in 1 2 3; do
    echo '{"claimId":"CLM-A-1","submissionError":"TIMEOUT"}' >&3
    read -r answer <&4 && case $answer in *'"shouldRetry":true'*) answered=$((answered + 1)) ;; esac
done
exec 3>&- 4<&-
wait "$child"
check "a co-process gets each answer at once" test "$answered" = 3

yes "$good" | head -n 200000 >"$work/in"
"$insist" decide --batch <"$work/in" >/dev/full 2>"$work/err"
code=$?
: >"$work/out"
check "a full disk is noticed" ended 1 'insist: cannot write to standard output: No space left on device'
{ "$insist" decide --batch <"$work/in" 2>"$work/err"; echo $? >"$work/code"; } | head -n 1 >/dev/null
code=$(cat "$work/code")
check "a reader that went away ends it" ended 1
check "a reader that went away is no news" test ! -s "$work/err"
finish
