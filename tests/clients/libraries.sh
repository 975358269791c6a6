#!/bin/sh
# The clients of clients/, each through the same scenario against a daemon, as their users have them: a wheel, an npm package, a jar.
. "$(dirname "$0")/../tap.sh"
unset INSIST_SERVER INSIST_TOKEN
daemon= flaky= capture=
trap 'kill $daemon $flaky $capture 2>/dev/null; rm -rf "$work"' EXIT
. "$root/tests/clients/npm.sh"
python=$(command -v /usr/bin/python3 || command -v python3)
secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw

python3 "$folder/capture.py" "$work/capture.port" "$work/request" &
capture=$!
wait_for test -s "$work/capture.port"
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  python: { transport: pull, retry: { max_retries: 3, base: 1s, floor: 1s, cap: 1s, jitter: 0 } }
  typescript: { transport: pull, retry: { max_retries: 3, base: 1s, floor: 1s, cap: 1s, jitter: 0 } }
  java: { transport: pull, retry: { max_retries: 3, base: 1s, floor: 1s, cap: 1s, jitter: 0 } }
  mail: { transport: pull }
  signed: { url: 'http://127.0.0.1:$(cat "$work/capture.port")/', allow_private: true, sign: { secrets: [$secret] } }
END
"$insist" serve --init -c "$work/insist.yaml" >"$work/serve.out" 2>"$work/serve.err" &
daemon=$!
wait_for grep -q 'listens on' "$work/serve.out"
server=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/serve.out" | head -n 1)
python3 "$folder/flaky.py" "$work/flaky.port" "${server##*:}" &
flaky=$!
wait_for test -s "$work/flaky.port"
curl -sS "$server/v1/jobs" -d '{"destination": "signed", "payload": {"text": "olá"}}' >"$work/out"
wait_for test -s "$work/request"

# The wheel, by Debian's Python, in a folder of its own, as `pip install --target` has it.
cp -r clients/python "$work/python"
run env PIP_NO_INDEX=1 "$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$work/wheels" "$work/python"
check "a wheel is built" ended 0
run "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target "$work/site" "$work"/wheels/*.whl
check "and installed" ended 0

# The npm package: what `npm pack` would put in, beside the others.
mkdir -p "$work/ts" "$work/app/node_modules" && cp -r clients/typescript/. "$work/ts" && ln -s "$folder/node_modules" "$work/ts/node_modules"
run env -C "$work/ts" "$folder/node_modules/.bin/tsc" -p .
check "the TypeScript client is compiled" ended 0
run env -C "$work/ts" npm pack --ignore-scripts --pack-destination "$work" --loglevel=error
check "and packed" ended 0 insist-client-0.1.0.tgz
mkdir "$work/app/node_modules/insist-client" && tar -xzf "$work/insist-client-0.1.0.tgz" --strip-components 1 -C "$work/app/node_modules/insist-client"
for package in "$folder"/node_modules/* "$folder"/node_modules/@*; do
    [ -e "$work/app/node_modules/${package##*/}" ] || ln -s "$package" "$work/app/node_modules/"
done
cp "$folder/scenario.ts" clients/typescript/examples/nestjs/*.ts "$work/app"
cat >"$work/app/package.json" <<'END'
{ "type": "module" }
END
cat >"$work/app/tsconfig.json" <<'END'
{ "compilerOptions": { "target": "ES2022", "module": "NodeNext", "strict": true, "experimentalDecorators": true, "emitDecoratorMetadata": true,
  "skipLibCheck": true, "types": ["node"], "outDir": "dist" }, "include": ["*.ts"] }
END
run env -C "$work/app" "$folder/node_modules/.bin/tsc" -p .
check "its users are compiled against it" ended 0

# The jar.
run make -s -C clients/java out="$work/java"
check "a jar is built without a warning" ended 0
run javac -Xlint:all -Werror --release 17 -cp "$work/java/insist-client-0.1.0.jar" -d "$work/java/tests" "$folder/java/Scenario.java"
check "its users are compiled against it" ended 0

flaky_server=http://127.0.0.1:$(cat "$work/flaky.port")
PYTHONPATH=$work/site "$python" "$folder/scenario.py" "$server" "$flaky_server" "$work/request" "$secret" >"$work/python.tap" 2>"$work/python.err" &
python_scenario=$!
node "$work/app/dist/scenario.js" "$server" "$flaky_server" "$work/request" "$secret" >"$work/typescript.tap" 2>"$work/typescript.err" &
typescript_scenario=$!
java -Xmx128m -cp "$work/java/insist-client-0.1.0.jar:$work/java/tests" Scenario "$server" "$flaky_server" "$work/request" "$secret" \
    >"$work/java.tap" 2>"$work/java.err" &
java_scenario=$!
ends_well() { # LANGUAGE PROCESS
    wait "$2" || { cat "$work/$1.err"; return 1; }
    [ "$(wc -l <"$work/$1.tap")" -ge 18 ] || { echo "too few checks"; cat "$work/$1.tap"; return 1; }
}
for language in python typescript java; do
    eval "process=\$${language}_scenario"
    check "$language: the scenario comes to its end" ends_well $language "$process"
    while IFS= read -r line; do
        case $line in
        'ok - '*) check "${line#ok - }" true ;;
        *) check "${line#not ok - }" false ;;
        esac
    done <"$work/$language.tap"
done

# The example for NestJS: a job is given and worked off, and SIGTERM ends it in order.
INSIST_SERVER=$server node "$work/app/dist/main.js" >"$work/nest.out" 2>"$work/nest.err" &
nest=$!
sent() { grep -q 'sent welcome-1' "$work/nest.out"; }
check "NestJS: the service gives, the worker takes" until_true sent
kill -TERM $nest
gone() { ! kill -0 $nest 2>/dev/null; }
check "NestJS: the application stops" until_true gone
kill -9 $nest 2>/dev/null
done_with() { curl -sS "$server/v1/jobs/welcome-1?tenant=acme" | grep -q '"state":"completed"'; }
check "NestJS: and its job is done" done_with
finish
