#!/bin/sh
# A program a job, by a daemon that is asked to reload, and killed while one runs.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon=
trap 'kill $daemon 2>/dev/null; rm -rf "$work"' EXIT

state_is() { # STATE ID
    "$insist" job "$2" -o json | grep -q "\"state\":\"$1\""
}
says() { # ID TEXT
    "$insist" job "$1" -o json | grep -qF -e "$2"
}

cat >"$work/deliver" <<'END'
#!/bin/sh
body=$(cat)
echo "$INSIST_TENANT/$INSIST_JOB_ID attempt $INSIST_ATTEMPT: $body" >>"$FOLDER/delivered"
case $body in
temporary) [ "$INSIST_ATTEMPT" -gt 1 ] || { echo "come back" >&2; exit 75; } ;;
wrong) echo "no such customer" >&2; exit 67 ;;
slow) [ "$INSIST_ATTEMPT" -gt 1 ] || { echo $$ >"$FOLDER/slow"; exec sleep 600; } ;;
esac
END
chmod +x "$work/deliver"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  program:
    preset: exec
    exec: { argv: [$work/deliver], environment: { FOLDER: $work } }
    retry: { base: 100ms, floor: 0s, cap: 200ms }
END
ask check -c "$work/insist.yaml"
check "the configuration is valid" ended 0 'valid; 1 destination'
sed 's/deliver\]/delivre]/' "$work/insist.yaml" >"$work/bad.yaml"
ask check -c "$work/bad.yaml"
check "a program that is not there is told" ended 2 'destination "program": exec.argv' 'No such file'
serve --init
ask add program --id E-1 --tenant acme --data 'hello'
check "a job is taken" ended 0 'E-1'
check "and done" until_true state_is completed E-1
check "by the program" grep -q '^acme/E-1 attempt 1: hello$' "$work/delivered"
ask add program --id E-2 --data 'temporary'
check "exit code 75 is tried again" until_true state_is completed E-2
check "and kept with what it said" says E-2 'exit code 75: come back'
ask add program --id E-3 --data 'wrong'
check "exit code 67 is final" until_true says E-3 '"dead_code":"PERMANENT_ERROR"'
ask dest show program -o json
check "the destination says what it is" ended 0 '"transport":"exec"'

ask add program --id E-4 --data 'slow'
wait_for test -s "$work/slow"
pid=$(cat "$work/slow")
check "a slow program runs" kill -0 "$pid"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null
gone() { ! kill -0 "$pid"; }
check "and goes with a daemon that is killed" until_true gone
serve
check "its job is done by the next" until_true state_is completed E-4
check "in a second attempt" grep -q 'E-4 attempt 2: slow$' "$work/delivered"
finish
