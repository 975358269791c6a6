#!/bin/sh
# Every command and every query of docs/operations, as it stands there, against a daemon that has what they are about:
# S2-103 to S2-112, S2-106, S2-109.
. "$(dirname "$0")/../tap.sh"
receive
cat >"$work/insist.yaml" <<END
listen: 127.0.0.1:0
store: sqlite:$work/data/insist.db
destinations:
  mail: { transport: pull, retry: { max_retries: 0 }, errors: { permanent: [BAD] } }
  invoices: { preset: sifen, url: "$url/invoices", allow_private: true, in_doubt: park }
END
cd "$work" || exit 1
serve --init
cat >"$work/fill.py" <<'END'
import json, sys, urllib.request
def post(path, body):
    request = urllib.request.Request(sys.argv[1] + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))
for tenant, count in (("acme", 3), ("globex", 1)):
    for n in range(1, count + 1):
        post("/v1/jobs", {"destination": "mail", "tenant": tenant, "id": f"dead-{n}", "payload": "x"})
taken = 0
while taken < 4:
    for lease in post("/v1/leases", {"destination": "mail", "max": 4, "wait_s": 30})["leases"]:
        post("/v1/leases/nack", {"lease": lease["lease"], "error": "BAD address", "code": "BAD"})
        taken += 1
post("/v1/jobs", {"destination": "mail", "tenant": "acme", "id": "waits", "payload": "x"})
END
check "a scene with dead letters" python3 "$work/fill.py" "$INSIST_SERVER"
"$insist" dest contingency invoices --reason drill >/dev/null
check "an invoice that waits" "$insist" add invoices --id invoice-1 --correlation-id doc-77 --data '<rDE/>'

cat >"$work/blocks.py" <<'END'
"""Writes each command and each query of a page to a file of its own, and its kind."""
import re, sys
page, folder = sys.argv[1:]
kinds = re.findall(r"^ *```(sh|sql)\n(.*?)^ *```", open(page, encoding="utf-8").read(), re.M | re.S)
number = 0
for kind, text in kinds:
    for piece in ([text] if kind == "sql" else [line for line in text.splitlines() if line.strip()]):
        number += 1
        open(f"{folder}/{number:03}.{kind}", "w", encoding="utf-8").write(piece.strip() + "\n")
END
cat >"$work/query.py" <<'END'
import json, sqlite3, sys
store = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=60)
for row in store.execute(open(sys.argv[2], encoding="utf-8").read()):
    print(json.dumps(row))
END
PATH=$(dirname "$insist"):$PATH
export PATH
pages=0
for page in dead-letters-grow near-the-limit one-tenant-takes-all sifen-outage; do
    mkdir "$work/$page"
    python3 "$work/blocks.py" "$root/docs/operations/$page.md" "$work/$page"
    for block in "$work/$page"/*; do
        pages=$((pages + 1))
        case $block in
        *.sql) run python3 "$work/query.py" "$work/data/insist.db" "$block" ;;
        *) run sh "$block" ;;
        esac
        check "$page: $(head -n 1 "$block")" ended 0
        cp "$work/out" "$block.out"
    done
done
check "the pages have commands" test "$pages" -ge 25
check "errors by code, as the document has it" grep -qF '["BAD", 4]' "$work/dead-letters-grow/001.sql.out"
check "companies, the largest first" sh -c "head -n 1 '$work'/dead-letters-grow/004.sql.out | grep -qF '[\"acme\", 3]'"
check "the export has a line for each of the rest" test "$(grep -c '"jobId"' "$work/dlq_export.txt")" = 3
check "documents by state" sh -c "cat '$work'/sifen-outage/*.sql.out | grep -qF '[\"Pendiente\", 3]'"
check "a document by its columns" sh -c "cat '$work'/sifen-outage/*.sql.out | grep -qE '\"invoice-1\", \"doc-77\", \"20[0-9-]+T[0-9:.]+Z\", [13], 0, \"Pendiente\"'"
finish
