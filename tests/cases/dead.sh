#!/bin/sh
# Dead letters by the command: sent back, taken back, thrown away. What is thrown away is nowhere but in its archive.
. "$(dirname "$0")/../tap.sh"

receive
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  orders: { url: "$url/orders", allow_private: true, retry: { max_retries: 0 } }
END
serve --init
dead_are() { # COUNT
    [ "$("$insist" dead list -o json | grep -o '"id"' | wc -l)" = "$1" ]
}
for id in one two three; do
    "$insist" add orders --id $id --data "bad $id" >"$work/added"
done
check "three are dead" until_true dead_are 3

ask add orders --id one --data "bad one"
check "who adds it again hears that it is dead" ended 0 'one' 'insist: it was there already and is dead; nothing was changed'
ask events --type dead --destination orders
check "events of a type and a destination" sh -c "[ \$(grep -c ' dead ' '$work/out') = 3 ] && [ \$(wc -l <'$work/out') = 4 ]"
ask events --type dead --destination other
check "none of another" test "$(wc -l <"$work/out")" = 1
ask events --type lost
check "no such type" ended 2 'insist: there is no type of event "lost"'

# ---- since when ----
has() { # COUNT ARGUMENTS...: how many are listed
    wanted=$1
    shift
    [ "$("$insist" "$@" -o json | grep -o '"id"' | wc -l)" = "$wanted" ]
}
check "those of the last hour" has 3 dead list --since -1h
check "none is older" has 0 dead list --until -1h
check "a time as before" has 3 dead list --since 2025-01-12T10:51:41Z
check "jobs of the last hour" has 3 jobs --since -1h --until -0s
check "none before" has 0 jobs --until -1h
ask dead redrive --since -1h --until -10m --dry-run
check "a redrive means them likewise" ended 0 '0 dead letters'

# ---- export into what is no file, and through a link ----
mkfifo "$work/pipe"
timeout 60 cat "$work/pipe" >"$work/piped" &
reader=$!
ask dead export --out "$work/pipe"
check "into a pipe" ended 0
wait "$reader"
check "it came through" test "$(wc -l <"$work/piped")" = 3
check "the pipe is one still, and nothing is beside it" sh -c "test -p '$work/pipe' && test ! -e '$work/pipe.part'"
ask dead export --out "$work"
check "a folder is none to write to" ended 2 "insist: cannot write $work: Is a directory"
echo old >"$work/linked"
ln -s linked "$work/link"
ask dead export --out "$work/link"
check "through a link" ended 0
check "which stays" sh -c "test -L '$work/link' && [ \$(wc -l <'$work/linked') = 3 ]"
ln -s nothing "$work/dangling"
ask dead export --out "$work/dangling"
check "not in place of a link to nothing" ended 2 "insist: cannot write $work/dangling: it is a link to what is not there; remove it, or make that"
check "which stays too" test -L "$work/dangling"

# ---- purge ----
run "$insist" dead purge --id one </dev/null
check "nobody is there to be asked" ended 2 'insist: nobody is there to be asked: say --yes to throw them away'
check "nothing was thrown away" dead_are 3
ask dead purge --id none --archive "$work/none" --yes
check "nothing is meant" ended 0 'No dead letter is meant by that; nothing was done.'
check "no archive of nothing" test ! -e "$work/none"
ask dead purge --id one --archive "$work/no/where" --yes
check "an archive that cannot be made" ended 2 "insist: cannot make $work/no/where: No such file or directory; nothing was thrown away"
ask dead purge --id one --archive "$work/archive" --yes
check "one, with its archive" ended 0 '1 of 1 dead letters thrown away' "$work/archive"
check "the archive has it" grep -q '"jobId":"one"' "$work/archive"
ask dead purge --id two --archive "$work/archive" --yes
check "an archive is not overwritten" ended 1 "insist: $work/archive exists and is not overwritten; nothing was thrown away"
check "it has what it had" grep -q '"jobId":"one"' "$work/archive"
check "two is still there" dead_are 2

# ---- undo ----
ask dest pause orders
ask dead redrive --all --yes -o json
redrive=$(grep -o '"id":"[^"]*"' "$work/out" | cut -d'"' -f4)
check "both go back" until_true dead_are 0
ask dead undo "$redrive"
check "an undo that is under way, or was, says so" ended 0 "$redrive  " 'undone: '
ask dead undo "$redrive" --wait
check "and when it is done" ended 0 'undone: ' '2 taken back'
check "both are dead again" dead_are 2
finish
