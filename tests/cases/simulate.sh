#!/bin/sh
# insist simulate: options, reports, and that the same question has the same answer.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon=
trap 'kill $daemon 2>/dev/null; rm -rf "$work"' EXIT
hour="--policy tiss --load 2000 --for 1h --outage 10m..20m"

# shellcheck disable=SC2086 # the options are words
ask simulate $hour
check "a report" ended 0 'tiss: 2000 jobs of 1 tenant in 1h, seed 1' 'outage from 10m to 20m (503)' \
    'S0-081       success after retry' 'at least 85%' 'S1-052       first attempt to success, mean' 'most requests in a second' \
    'requests during it'
check "rows that say nothing are left out" sh -c '! grep -q "Jain\|health checks\|there at the start" "$1"' - "$work/out"
check "it has no log" test ! -s "$work/err"
cp "$work/out" "$work/first"
# shellcheck disable=SC2086
ask simulate $hour --seed 1
check "the same bytes again" cmp "$work/first" "$work/out"
# shellcheck disable=SC2086
ask simulate $hour --seed 2
check "another seed, another report" sh -c '! cmp -s "$1" "$2"' - "$work/first" "$work/out"

# shellcheck disable=SC2086
ask simulate $hour --tenants 5 --skew 60% --priorities critical=5%,high=10% --errors transient=5%,lost=1%,throttled=1% \
    --latency 1s --spread 1 --limit 5/s --capacity 8 --outage 40m..41m:refuse --outage 50m..51m:timeout -o json
check "all options, as JSON" ended 0 '{"runs":[{"title":"tiss","destination":"tiss","seed":1,"forMs":3600000,"tenants":5'
cat >"$work/check.py" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
run = report["runs"][0]
figures, curves = run["figures"], run["curves"]
ends = ["completed", "permanentJobs", "exhaustedJobs", "expired", "inDoubt", "refused", "open"]
assert figures["jobs"] == 2000 == sum(figures[name] for name in ends), figures
assert sum(curves["arrived"]) == 2000
assert sum(curves["requests"]) == figures["requests"] == sum(run["answers"].values())
assert sum(curves["delivered"]) == figures["completed"]
assert len({len(curve) for name, curve in curves.items() if name != "stepMs"}) == 1
assert len(run["outages"]) == 3
rules = {target["rule"] for target in run["targets"]}
assert {"S0-081", "S0-082", "S0-083", "S0-084", "S0-085", "S0-086", "S0-087", "S0-088"} <= rules
assert {"S1-051", "S1-052", "S1-053", "S1-054", "S1-056", "S1-057"} <= rules
assert run["answers"]["throttled"] > 0 and run["answers"]["refused"] > 0 and run["answers"]["timeout"] > 0
assert figures["jain"] is not None and figures["backlog"] is None and "backlog" not in run
assert [part["count"] for part in run["waits"]] and run["waits"][-1]["upToMs"] is None
END
check "the JSON adds up" python3 "$work/check.py" "$work/out"

cat >"$work/one.yaml" <<'END'
destinations:
  claims: { preset: tiss, url: "https://operator.example/tiss?<b>", retry: { max_retries: 12, cap: 5m, factor: 1 } }
END
cat >"$work/two.yaml" <<'END'
destinations:
  claims: { preset: tiss, url: "https://operator.example/tiss" }
  mail: { preset: email, url: "smtp://mail.example" }
END
cat >"$work/pull.yaml" <<'END'
destinations:
  work: { transport: pull }
END
ask simulate -c "$work/one.yaml" --load 500 --for 30m
check "the only destination of a file" ended 0 "claims of $work/one.yaml: 500 jobs"
ask simulate -c "$work/two.yaml" --policy mail --load 500 --for 30m --errors permanent=5%
check "a destination of a file, by mail" ended 0 "mail of $work/two.yaml: 500 jobs"
# shellcheck disable=SC2086
ask simulate $hour --compare "$work/one.yaml" --html "$work/report.html"
check "two side by side" ended 0 "tiss against claims of $work/one.yaml" 'FIRST' 'SECOND' 'DIFFERENCE'
cat >"$work/page.py" <<'END'
import re, sys
from html.parser import HTMLParser
from xml.etree import ElementTree

text = open(sys.argv[1], encoding="utf-8").read()
stack = []

class Page(HTMLParser):
    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            stack.append(tag)
        assert tag not in ("script", "link", "img", "iframe"), tag

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert stack and stack[-1] == tag, (tag, stack)
        stack.pop()

Page().feed(text)
assert not stack, stack
pictures = re.findall(r"<svg.*?</svg>", text, re.S)
assert len(pictures) == 7, len(pictures)
for picture in pictures:
    ElementTree.fromstring(picture)
assert text.count('class="outage"') == 5
assert "http" not in text.replace("https://operator", ""), "nothing comes from elsewhere"
assert "prefers-color-scheme:dark" in text and "width=device-width" in text
assert "nan" not in text.lower().replace("tenan", "")
END
check "the page is well-formed and whole" python3 "$work/page.py" "$work/report.html"
# shellcheck disable=SC2086
ask simulate $hour --compare email -o json
check "against a preset, as JSON" ended 0 '"differences":{"successAfterRetry":'

# ---- health checks and credentials ----
half="--load 1000 --for 1h --outage 20m..40m"
# shellcheck disable=SC2086
ask simulate --policy sifen $half -o json
cp "$work/out" "$work/true.json"
# shellcheck disable=SC2086
ask simulate --policy sifen $half --health lying -o json
cp "$work/out" "$work/lying.json"
# shellcheck disable=SC2086
ask simulate --policy sifen $half --health none -o json
cp "$work/out" "$work/none.json"
# shellcheck disable=SC2086
ask simulate --policy tiss $half:blocked --errors blocked=0.1% --attend 10m -o json
cp "$work/out" "$work/blocked.json"
cat >"$work/health.py" <<'END'
import json, sys
true, lying, none, blocked = (json.load(open(f"{sys.argv[1]}/{name}.json"))["runs"][0] for name in ("true", "lying", "none", "blocked"))
assert true["figures"]["healthChecks"] > 100 and lying["figures"]["healthChecks"] > 100
assert none["figures"]["healthChecks"] is None
# A check that tells the truth sees the outage within three rounds and holds; one that lies sees nothing of it.
assert true["heldMs"].get("contingency", 0) > 10 * 60000, true["heldMs"]
assert lying["figures"]["outageRequests"] > 2 * true["figures"]["outageRequests"]
assert true["figures"]["exhaustedJobs"] < lying["figures"]["exhaustedJobs"]
assert true["figures"]["open"] == 0
# Refused credentials hold the destination; each time somebody resumes it, it finds out anew, and no job pays for it.
assert blocked["heldMs"]["blocked"] >= 15 * 60000, blocked["heldMs"]
assert 0 < blocked["figures"]["outageRequests"] <= 40, blocked["figures"]
assert blocked["answers"]["blocked"] > 0
assert blocked["figures"]["exhaustedJobs"] == 0 == blocked["figures"]["open"]
END
check "health checks that are true, lie or are not made; refused credentials" python3 "$work/health.py" "$work"

# ---- a real store's backlog ----
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  claims: { preset: tiss, url: "http://127.0.0.1:1/", allow_private: true, breaker: { enabled: false } }
  other: { url: "http://127.0.0.1:1/", allow_private: true }
END
serve --init
i=0
while [ $i -lt 60 ]; do
    i=$((i + 1))
    echo "{\"id\":\"CLM-1-$i\",\"tenant\":\"h$((i % 5 / 2))\",\"payload\":\"x\"}"
done >"$work/in"
run "$insist" add claims --batch <"$work/in"
check "claims that cannot be delivered" ended 0 '60 accepted'
all_wait_shown() { "$insist" jobs --destination claims --state waiting -o json | grep -o '"state":"waiting"' | wc -l | grep -q '^60$'; }
check "all were tried once" until_true all_wait_shown
ask dest pause claims
i=0
while [ $i -lt 40 ]; do
    i=$((i + 1))
    echo "{\"id\":\"CLM-2-$i\",\"tenant\":\"new\",\"payload\":\"x\"}"
done >"$work/in"
run "$insist" add claims --batch <"$work/in"
ask add claims --id CLM-3-1 --data x --run-at +30m
ask add other --id O-1 --data x --run-at +1d
backlog="-c $work/insist.yaml --policy claims --store $work/data/insist.db"
# shellcheck disable=SC2086
ask simulate $backlog --outage 0..2h --html "$work/report.html"
check "the backlog of a running daemon" ended 0 '0 new jobs of 5 tenants' \
    'backlog of claims: 101 jobs of 5 tenants (41 pending, 60 waiting, 0 running), mode paused; 1 job of 1 other destination left out' \
    'the backlog was worked off after' 'held by paused for '
check "the page says so too" grep -q 'backlog of claims: 101 jobs' "$work/report.html"
# shellcheck disable=SC2086
ask simulate $backlog --load 1000 --for 2h --attend 1m -o json
cp "$work/out" "$work/backlog.json"
kill "$daemon"
wait "$daemon"
daemon=
ls "$work/data" >"$work/before"
ask simulate --policy tiss --store "sqlite:$work/data/insist.db" --now 2030-01-01T00:00:00Z -o json
check "of a stopped one, under another policy" ended 2 'the store has no unfinished jobs of "tiss", but of claims (101), other (1)'
ask backup "$work/copy.db" -c "$work/insist.yaml"
# shellcheck disable=SC2086
ask simulate -c "$work/insist.yaml" --policy claims --store "$work/copy.db" --now 2030-01-01T00:00:00Z -o json
cp "$work/out" "$work/late.json"
cat >"$work/backlog.py" <<'END'
import json, sys
first, late = (json.load(open(f"{sys.argv[1]}/{name}.json"))["runs"][0] for name in ("backlog", "late"))
figures = first["figures"]
assert first["backlog"]["jobs"] == 101 and first["backlog"]["waiting"] == 60 and first["backlog"]["tenants"] == 5
assert figures["jobs"] == 1101 and figures["backlog"] == 101
assert sum(first["curves"]["arrived"]) == 1000 and first["curves"]["queue"][0] >= 60
assert figures["completed"] + figures["permanentJobs"] == 1101, figures
# The sends that were made before the start count as attempts: 60 jobs had one.
assert 1.05 < figures["attemptsMean"] < 1.12, figures["attemptsMean"]
# One of them was to run in half an hour.
assert 29 * 60000 < figures["backlogEndedMs"] < 2 * 3600000
# Years later all of them are past their time to live, and nothing is sent.
assert late["figures"]["expired"] == 101 and late["figures"]["requests"] == 0, late["figures"]
END
check "a backlog counts, keeps its times and what it has spent" python3 "$work/backlog.py" "$work"
printf 'no store' >"$work/text.db"
: >"$work/empty.db"
python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute("create table x (y)"); d.commit()' "$work/other.db"
cp "$work/copy.db" "$work/newer.db"
python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute("pragma user_version = 99"); d.commit()' "$work/newer.db"

# refused NAME TEXT OPTIONS...
refused() {
    name=$1 text=$2
    shift 2
    ask simulate "$@"
    check "refused: $name" ended 2 "insist: $text"
}
refused "no store" "--store $work/none.db: cannot open $work/none.db: No such file or directory" --policy tiss --store "$work/none.db"
refused "an empty store" "--store $work/empty.db: the file is no store: it is empty" --policy tiss --store "$work/empty.db"
refused "another program's store" "--store $work/other.db: the file is a database of another program" --policy tiss --store "$work/other.db"
refused "a newer store" "--store $work/newer.db: the store was made by a newer insist: it has schema version 99, this program reads" --policy tiss --store "$work/newer.db"
ask simulate --policy tiss --store "$work/text.db"
check "a file that is no database" ended 1 "insist: $work/text.db: "
refused "a start that is none" '--now: "noon"' --policy tiss --now noon
refused "an unknown health" '--health: "good": it is true, lying or none' --policy tiss --health good
refused "too much at once with a store" 'the load must come to 0 to 5000000 jobs in all' --policy tiss --store x --load 1000000/s
refused "no policy" 'name a preset as --policy, or give a file with -c'
refused "an unknown preset" 'there is no preset "tis"; did you mean "tiss"?' --policy tis
refused "several destinations" "$work/two.yaml has 2 destinations; name one with --policy" -c "$work/two.yaml"
refused "a destination that is not there" "$work/two.yaml has no destination \"x\"" -c "$work/two.yaml" --policy x
refused "a file that is not there" "$work/none.yaml cannot be used" -c "$work/none.yaml"
refused "pull workers" '"work" is for pull workers' -c "$work/pull.yaml"
refused "a load that is none" '--load: "fast": it is a rate as 100/m or 2/s, or a number of jobs' --policy tiss --load fast
refused "no load" 'the load must come to 1 to 5000000 jobs in all' --policy tiss --load 0
refused "too much load" 'the load must come to 1 to 5000000 jobs in all' --policy tiss --load 1000000/s
refused "a time that is none" '--for: "soon"' --policy tiss --for soon
refused "a time too long" '--for is from 1s to 366d, not "400d"' --policy tiss --for 400d
refused "an outage that is none" '--outage: "4h": write FROM..TO, as 4h..8h or 4h..8h:timeout' --policy tiss --outage 4h
refused "an outage that ends first" '--outage: "8h..4h": it ends before it begins' --policy tiss --outage 8h..4h
refused "an outage of an unknown kind" '--outage: "1h..2h:flood": what follows the colon is' --policy tiss --outage 1h..2h:flood
refused "an unknown error" '--errors: "sad=1%": each part is NAME=SHARE' --policy tiss --errors sad=1%
refused "a share too large" '--errors: "lost=101%": a share is' --policy tiss --errors lost=101%
refused "shares over the whole" '--errors: "lost=60%,transient=60%": the shares are more than the whole' --policy tiss --errors lost=60%,transient=60%
refused "no tenant" '--tenants is a whole number from 1 to 10000, not "0"' --policy tiss --tenants 0
refused "a skew of one tenant" '--skew needs more than one tenant' --policy tiss --skew 50%
refused "a spread that is none" '--spread: "x": it is a number from 0 to 5' --policy tiss --spread x
refused "a rate limit that is none" '--limit: "x"' --policy tiss --limit x
refused "a seed that is none" '--seed is a whole number' --policy tiss --seed x
refused "to compare with nothing" "$work/none.yaml cannot be used" --policy tiss --compare "$work/none.yaml"
refused "an argument" 'unexpected argument "now"' --policy tiss now
ask simulate --policy tiss --load 10 --for 1m --html "$work/none/report.html"
check "a page that cannot be written" ended 1 "insist: cannot write $work/none/report.html: No such file or directory"
ask simulate --policy http --load 100/m --for 10m
check "a webhook has figures" ended 0 'Indicators' 'success after retry' 'attempts, mean'
check "and no targets of the claims' documents" sh -c '! grep -qE "S[01]-[0-9]|at least|MISSED" "$1/out"' - "$work"
ask simulate --policy http --load 100/m --for 10m -o json
check "nor in JSON" ended 0 '"targets":[]' '"successAfterRetry"'
finish
