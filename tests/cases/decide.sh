#!/bin/sh
# insist decide: one question by options.
. "$(dirname "$0")/../tap.sh"
now=2025-01-12T10:40:00Z

ask decide --policy tiss --id CLM-2025-001 --error 'TIMEOUT - Connection timeout after 30s' --retry-count 1 --now $now
check "S1-039, S1-040: the answer of the documents' example" ended 0 \
    '{"shouldRetry":true,"retryCount":2,"maxRetries":5,"backoffMinutes":' '"retryReason":"Transient error, retry 2 of 5"' \
    '"errorClassification":"TRANSIENT","originalError":"TIMEOUT - Connection timeout after 30s"'
cp "$work/out" "$work/first"
ask decide --policy=tiss --id=CLM-2025-001 '--error=TIMEOUT - Connection timeout after 30s' -n1 --now=$now
check "the same question has the same bytes" cmp "$work/first" "$work/out"

ask decide -p tiss --id CLM-A-1 --error 'INVALID_PATIENT_DATA - CPF'
check "A-02: a permanent error ends with 10" ended 10 '"errorCode":"PERMANENT_ERROR"' '"errorClassification":"PERMANENT"'
ask decide -p tiss --id CLM-A-1 --error TIMEOUT -n 5
check "A-01: no retry left ends with 11" ended 11 '"errorCode":"MAX_RETRIES_EXCEEDED"'
ask decide -p tiss --id CLM-A-1 --error DUPLICATE_CLAIM -n 5
check "C-27: the limit comes before the class" ended 11 '"errorCode":"MAX_RETRIES_EXCEEDED"' '"errorClassification":"PERMANENT"'
ask decide -p tiss --id CLM-A-1 --error TIMEOUT --now $now --first 2025-01-12T06:40:00Z
check "the time is exhausted too" ended 11 '"errorCode":"MAX_RETRIES_EXCEEDED"' 'more than 4h after the first attempt'
ask decide -p tiss --id CLM-A-1 --error TIMEOUT --now $now --deadline 2025-01-12T10:41:00Z
check "a deadline ends with 11" ended 11 '"errorCode":"EXPIRED"'
ask decide -p tiss --id CLM-A-1 --error gremlins
check "S0-031: an unknown error is retried" ended 0 '"retryReason":"Unknown error, retry 1 of 5"' '"errorClassification":"UNKNOWN"'
ask decide -p tiss --id CLM-A-1 --error TIMEOUT --retry-after 30m --priority high --last $now --seed 7 --code http:503
check "all options together" ended 0 '"action":"retry"'

ask decide -p tiss --id CLM-A-1 --error "$(printf 'TIMEOUT \377\376')"
check "bytes that are not UTF-8 are repaired" ended 0 "$(printf 'TIMEOUT \357\277\275\357\277\275')"
printf 'TIMEOUT\000 and more' >"$work/in"
run "$insist" decide -p tiss --id CLM-A-1 --error - <"$work/in"
check "an error from standard input, with a NUL" ended 0 '"originalError":"TIMEOUT\u0000 and more"'
head -c 1100000 /dev/zero | tr '\0' x >"$work/in"
run "$insist" decide -p tiss --id CLM-A-1 --error - <"$work/in"
check "too much on standard input" ended 2 'insist: standard input is longer than the limit of 1048576 bytes'

# NAME, error code, options
refused() {
    name=$1 problem=$2
    shift 2
    ask decide "$@"
    check "$name: $problem" ended 2 "\"error\":\"$problem\"" '"detail":"' "insist: $problem"
}
refused "A-06: empty" INVALID_ERROR_MESSAGE -p tiss --id CLM-A-1 --error ''
refused "A-06: blank" INVALID_ERROR_MESSAGE -p tiss --id CLM-A-1 --error "$(printf ' \t')"
refused "A-06: missing" INVALID_ERROR_MESSAGE -p tiss --id CLM-A-1
refused "A-05: negative" INVALID_RETRY_COUNT -p tiss --id CLM-A-1 --error x --retry-count -1
refused "A-05: 1.5" INVALID_RETRY_COUNT -p tiss --id CLM-A-1 --error x --retry-count 1.5
refused "A-05: x" INVALID_RETRY_COUNT -p tiss --id CLM-A-1 --error x --retry-count x
refused "A-05: empty" INVALID_RETRY_COUNT -p tiss --id CLM-A-1 --error x --retry-count ''
refused "A-05: 10^400" INVALID_RETRY_COUNT -p tiss --id CLM-A-1 --error x --retry-count "1$(printf '%0400d' 0)"
refused "S0-050: missing id" INVALID_ID -p tiss --error x
refused "S0-050: empty id" INVALID_ID -p tiss --id '' --error x
refused "S1-034: id of another form" INVALID_ID -p tiss --id 12 --error x
refused "unknown policy" UNKNOWN_POLICY -p tis --id CLM-A-1 --error x
check "the nearest preset is named" grep -qF 'did you mean \"tiss\"?' "$work/out"
refused "no policy" UNKNOWN_POLICY --id CLM-A-1 --error x
refused "a time without a zone" INVALID_TIME -p tiss --id CLM-A-1 --error x --now 2025-01-12T10:40:00
refused "A-11: the end of time" INVALID_TIME -p tiss --id CLM-A-1 --error x --now 9999-12-31T23:59:59Z
ask decide -p tiss --id CLM-A-1 --error x --priority urgent
check "an unknown priority" ended 2 'insist: --priority is critical, high or normal, not "urgent"'
ask decide -p tiss --id CLM-A-1 --error x --eror y
check "an unknown option names the nearest" ended 2 'insist: there is no option --eror; did you mean --error?'
ask decide -p tiss --id CLM-A-1 --error
check "an option without its value" ended 2 'insist: option --error needs a value'
ask decide -p tiss --id CLM-A-1 --error x stray
check "a stray argument" ended 2 'insist: unexpected argument "stray"'

cat >"$work/good.yaml" <<'END'
destinations:
  claims: { preset: tiss, url: "https://operator.example/tiss", retry: { max_retries: 2 } }
END
ask decide -c "$work/good.yaml" -p claims --id CLM-A-1 --error TIMEOUT -n 1
check "a destination of a file" ended 0 '"retryReason":"Transient error, retry 2 of 2"'
ask decide -c "$work/none.yaml" -p claims --id CLM-A-1 --error TIMEOUT
check "a file that is not there" ended 2 "$work/none.yaml" 'insist: '
# A code says it all, in words that are not the claims'.
ask decide --policy http --id ORDER-1 --code http:422
check "a code alone, by a policy that is not about claims" ended 10 '"errorCode":"PERMANENT_ERROR"' '"originalError":"http:422"' '"rule":"http:410-422"'
ask decide --policy http --id ORDER-1
check "nothing at all, in plain words" ended 2 'the error is missing or blank' '--error'
ask decide --policy tiss --id CLM-2025-001 --code 503
check "claims want the text, as their documents say" ended 2 'INVALID_ERROR_MESSAGE'
finish
