#!/bin/sh
# insist simulate: options, reports, and that the same question has the same answer.
. "$(dirname "$0")/../tap.sh"
hour="--policy tiss --load 2000 --for 1h --outage 10m..20m"

# shellcheck disable=SC2086 # the options are words
ask simulate $hour
check "a report" ended 0 'tiss: 2000 jobs of 1 tenant in 1h, seed 1' 'outage from 10m to 20m (503)' \
    'S0-081       success after retry' 'at least 85%' 'S1-052       first attempt to success, mean' 'most requests in a second' \
    'requests during it' "Jain's index"
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

# refused NAME TEXT OPTIONS...
refused() {
    name=$1 text=$2
    shift 2
    ask simulate "$@"
    check "refused: $name" ended 2 "insist: $text"
}
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
finish
