#!/bin/sh
# What an operator looks at in a terminal: top, shape, reports.
. "$(dirname "$0")/../tap.sh"
receive
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  claims: { preset: http, url: "$url/claims", allow_private: true, contingency: { ramp: [5], stable: 1s, check: 1s } }
  invoices-with-a-name-that-is-longer-than-others: { transport: pull }
  letters: { preset: http, url: "$url/letters", allow_private: true }
END
serve --init

ask shape
check "nothing has no age" ended 0 'TOTAL  0'
ask dest contingency claims --reason drill
for i in 1 2 3; do "$insist" add claims --id "c$i" --data x >/dev/null; done
"$insist" add invoices-with-a-name-that-is-longer-than-others --id i1 --data x >/dev/null
"$insist" add letters --id l1 --data x >/dev/null
completed() {
    "$insist" job l1 | grep -q completed
}
check "a letter is delivered" until_true completed

# ---- shape ----
ask shape
check "shape has a line for all and for each destination that has jobs" ended 0 'TOTAL' '1280m+' 'claims'
check "the destination with most jobs is first" sh -c "sed -n 3p $work/out | grep -q '^claims  *3  *3  *0'"
ask shape --output json
check "shape as JSON" python3 -c 'import json, sys
shape = json.load(open(sys.argv[1]))
assert shape["minutes"][0] == 5, shape
assert [(d["destination"][:8], d["total"], d["ages"][0]) for d in shape["destinations"]] == [("claims", 3, 3), ("invoices", 1, 1)], shape' "$work/out"
ask shape --state completed
check "shape of another state" ended 0 letters
ask shape --limit 1
check "and says when it counted less than all" ended 0 'more than 1 jobs'

# ---- top ----
ask top
check "without a terminal it is printed once, worst first" ended 0 'DESTINATION' 'invoices-with-a-name-that-is-longer-than-others'
check "what is held comes first" sh -c "sed -n 4p $work/out | grep -q '^claims  *contingency'"
ask top --sort name --once
check "in another order" sh -c "sed -n 6p $work/out | grep -q '^letters'"
ask top -o json
check "as JSON, in the same order" python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["destinations"]
assert [row["name"][:8] for row in rows] == ["claims", "invoices", "letters"], rows' "$work/out"
run python3 "$root/tests/cases/screen.py" 'by worst=p,by pending=s,by dead=q' "$insist" top --every 300ms
check "in a terminal keys change the order, and q ends it" ended 0 '3 destinations' 'by pending' 'by dead'
check "no line of it is wider than the terminal" python3 -c 'import re, sys
shown = re.sub(r"\x1b\[(H|[0-9;?]*[a-zA-Z])", lambda found: "\n" if found[1] == "H" else "", open(sys.argv[1], encoding="utf-8").read())
wide = [line for line in re.split(r"[\r\n]+", shown) if len(line) > 80]
assert not wide, wide' "$work/out"
check "and the terminal is as it was" grep -q "$(printf '\033\[?1049l')" "$work/out"
run python3 "$root/tests/cases/screen.py" "by worst=$(printf '\003')" "$insist" top --every 300ms
check "so does an interrupt" ended 0

# ---- what is ordered behind a pause ----
ask dest pause letters
check "paused" ended 0 'letters: paused'
ask dest contingency letters
check "contingency behind a pause is told" ended 0 'letters: paused, and in contingency when it is resumed'
ask dest contingency letters --leave
check "so is its end" ended 0 'letters: paused, and comes back when it is resumed'
ask dest resume letters
check "and then it does" ended 0 'letters: recovering'

# ---- what is not there ----
plain() { # no message tells who types commands of paths
    [ "$code" = 1 ] && grep -q 'insist: there is no .* lists them' "$work/err" && ! grep -q '/v1/' "$work/err"
}
for wish in 'dest show none' 'dest pause none' 'incidents show none' 'errors forget 0000000000000000' 'dead undo none'; do
    ask $wish
    check "$wish" plain
done
ask job none --tenant ''
check "a job without a tenant" sh -c "[ $code = 1 ] && ! grep '/v1/' '$work/err'"

# ---- reports ----
today=$(date -u +%F)
reported() {
    "$insist" report daily --date "$today" | grep -q '1 jobs ended: 1 delivered'
}
kill -TERM "$daemon"
wait "$daemon"
: >"$work/serve.out"
"$insist" serve -c "$work/insist.yaml" >"$work/serve.out" 2>>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
INSIST_SERVER=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
if [ "$(date -u +%F)" = "$today" ]; then
    check "what ended before a restart is in the day's report" until_true reported
else
    check "the day is over" true
fi
ask report daily --output json
check "a report as JSON" python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
assert [kpi["rule"] for kpi in report["kpis"]][:2] == ["S0-081", "S0-082"], report' "$work/out"
ask report weekly --html "$work/week.html"
check "a report as a page" sh -c "[ $code = 0 ] && grep -q '<title>Weekly report' $work/week.html"
ask report daily --date tomorrow
check "no date is refused" ended 2 'a date like 2025-01-12'
finish
