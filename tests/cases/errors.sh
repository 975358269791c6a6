#!/bin/sh
# Errors that no rule knows, against a receiver whose error texts are never the same: counted as one, and learned.
. "$(dirname "$0")/../tap.sh"

shows() { # TEXT
    "$insist" errors | grep -qF -- "$1"
}
shows_not() { # TEXT
    ! shows "$1"
}

receive
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  orders:
    url: "$url/orders"
    allow_private: true
    retry: { max_retries: 2, base: 50ms, floor: 20ms, cap: 100ms }
    errors: { transient: [http:503] }
END
serve --init

ask errors
check "none at first" ended 0 'No unknown errors'
ask add orders --data bad-1
ask add orders --data never-1
check "a job that dies of one" until_true shows '33% (3-78%)'
i=0
while [ $i -lt 20 ]; do
    i=$((i + 1))
    echo "{\"payload\":\"odd-$i\"}"
done >"$work/in"
run "$insist" add orders --batch <"$work/in"
check "twenty that pass" ended 0 '20 accepted'
check "a rule is proposed" until_true shows "transient+: ['/http 418: bucket .*? is warming up/']"
ask errors --destination orders --limit 1
check "the most frequent first" ended 0 'FINGERPRINT' '  orders  ' 'http 418: bucket <id> is warming up' \
    'of 20 jobs that ended after it, 20 were delivered: it passes. To say so, add:'
check "known errors are not there" shows_not 503
ask errors --destination elsewhere
check "of one destination" ended 0 'No unknown errors'
ask errors -o json
check "as JSON" ended 0 '"recovered":20' '"gave_up":0' '"proposal":{"class":"transient","yaml":"destinations:\n  orders:\n'
fingerprint=$(grep -o '"fingerprint":"[0-9a-f]*","destination":"orders","code":"http:499"' "$work/out" | cut -d '"' -f 4)

"$insist" errors >"$work/before"
kill "$daemon"
wait "$daemon"
serve --init
check "a restart keeps them" until_true shows "$(grep warming "$work/before" | head -n 1)"
ask errors forget "$fingerprint"
check "one is forgotten" ended 0 "$fingerprint: forgotten"
ask errors forget "$fingerprint"
check "once" ended 1 "insist: there is no unknown error $fingerprint"
check "it is gone" shows_not "$fingerprint"

# The rule as it was proposed, added to the file.
sed -i "s|errors: {.*}|errors: { transient: [http:503, '/http 418: bucket .*? is warming up/'] }|" "$work/insist.yaml"
kill -HUP "$daemon"
check "a rule that was added is told" until_true shows 'known by now as transient, by the rule /http 418: bucket .*? is warming up/'
check "and proposed no more" shows_not 'To say so, add:'
finish
