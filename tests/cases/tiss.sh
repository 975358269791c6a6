#!/bin/sh
# When a claim is delivered, over real HTTP: with a protocol number, and only then.
. "$(dirname "$0")/../tap.sh"

cat >"$work/answers.json" <<'END'
{"POST /good": [200, {}, "<e:Envelope xmlns:e='e' xmlns:a='a'><a:protocoloRecebimento><a:numeroProtocolo>4711</a:numeroProtocolo></a:protocoloRecebimento></e:Envelope>"],
 "POST /inner": [200, {}, "<return>&lt;ans:protocoloRecebimento&gt;&lt;ans:numeroProtocolo&gt;0815&lt;/ans:numeroProtocolo&gt;</return>"],
 "POST /page": [200, {"Content-Type": "text/html"}, "<html><body><h1>Voltamos em breve</h1><p>Portal indispon&iacute;vel</p></body></html>"],
 "POST /empty": [200, {}, ""],
 "POST /none": [200, {}, "<r><protocoloRecebimento><numeroLote>1</numeroLote></protocoloRecebimento></r>"],
 "POST /data": [200, {}, "<r><mensagem>INVALID_PATIENT_DATA: no such card</mensagem></r>"],
 "POST /busy": [200, {}, "{\"error\": \"SERVICE_UNAVAILABLE\"}"]}
END
python3 "$root/tests/cases/receiver.py" "$work" "$(cat "$work/answers.json")" &
receiver=$!
wait_for test -s "$work/port"
url=http://127.0.0.1:$(cat "$work/port")
{
    printf 'listen: 127.0.0.1:0\nstore: "sqlite:%s/data/insist.db"\ndestinations:\n' "$work"
    for name in good inner page empty none data busy; do
        echo "  $name: { preset: tiss, url: \"$url/$name\", allow_private: true }"
    done
    echo "  park: { preset: tiss, url: \"$url/page\", allow_private: true, in_doubt: park }"
} >"$work/insist.yaml"
mkdir "$work/data"
serve --init

became() { # NAME STATE CLASS TEXT: what the claim sent to NAME is after its first send
    "$insist" job "CLM-$1-1" -o json >"$work/job" && python3 - "$work/job" "$2" "$3" "$4" <<'END'
import json, sys
job = json.load(open(sys.argv[1], encoding="utf-8"))
last = job["attempts"][-1]
sys.exit(not (job["state"] == sys.argv[2] and last.get("class") == sys.argv[3] and sys.argv[4] in json.dumps(job)))
END
}
for name in good inner page empty none data busy park; do
    "$insist" add "$name" --id "CLM-$name-1" --data '<loteGuias/>' >"$work/out" 2>&1 || cat "$work/out"
done
check "a protocol number is a delivery, and is kept" until_true became good completed delivered '"reference": "4711"'
check "one in XML inside of XML too" until_true became inner completed delivered '"reference": "0815"'
check "a page that says 200 is in doubt" until_true became page waiting in_doubt 'HTTP 200 without a reference: <html>'
check "an empty answer is in doubt" until_true became empty waiting in_doubt 'HTTP 200 without a reference'
check "a receipt without its number is in doubt" until_true became none waiting in_doubt 'numeroLote'
check "an error inside of a 200 is that error" until_true became data dead permanent 'PERMANENT_ERROR'
check "and one that may pass is retried" until_true became busy waiting transient 'SERVICE_UNAVAILABLE'
check "what is in doubt goes the destination's way" until_true became park dead in_doubt '"IN_DOUBT"'

cat >"$work/bad.yaml" <<END
destinations: { web: { preset: http, url: "https://a.example", delivered_when: reference } }
END
ask check -c "$work/bad.yaml"
check "where nothing tells of a reference it cannot be needed" ended 2 'delivered_when is reference, but nothing tells where it is'
finish
