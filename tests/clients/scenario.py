"""What every client can, with the Python one: scenario.py SERVER FLAKY REQUEST_FILE SECRET"""
import base64
import collections
import json
import sys
import threading
import time

import insist

server, flaky, request_file, secret = sys.argv[1:]
client = insist.Client(server)


def check(name, fine, seen=""):
    print(f"{'ok' if fine else 'not ok'} - python: {name}{'' if fine else f' ({seen})'}", flush=True)


def raised(kind, call):
    try:
        return f"no failure but {call()!r}"
    except kind as error:
        return error


first = client.enqueue("python", {"n": 1}, id="one/é", tenant="acme", priority="high")
check("a job is taken", first.created and first.id == "one/é", first)
check("the same again is the same", not client.enqueue("python", {"n": 1}, id="one/é", tenant="acme", priority="high").created)
problem = raised(insist.Problem, lambda: client.enqueue("python", {"n": 2}, id="one/é", tenant="acme"))
check("another body is refused", getattr(problem, "type", "") == "id_conflict" and problem.status == 409, problem)
check("a job is shown", client.job("one/é", "acme")["priority"] == "high")
check("why is told", bool(client.why("one/é", "acme")["reason"]))
check("one is cancelled", client.cancel("one/é", "acme")["state"] == "cancelled")
gone = raised(insist.Unreachable, lambda: insist.Client("http://127.0.0.1:1", patience=0.5).enqueue("python", 1))
check("no daemon: unreachable", isinstance(gone, insist.Unreachable), gone)

once = insist.Client(flaky + "/python").enqueue("python", b"\x00\xff", tenant="flaky")
there = client.call("GET", "/v1/jobs?destination=python&tenant=flaky")["jobs"]
check("one job, whatever fails on the way", len(there) == 1 and there[0]["id"] == once.id and not once.created, there)

jobs = ({"destination": "python" if n not in (7, 2100) else "nowhere", "payload": {"n": n}, "id": f"b{n}", "tenant": "batch",
         "run_at": "2099-01-01T00:00:00Z"} for n in range(2500))
result = client.enqueue_batch(jobs)
check("a batch rejects the bad ones only", result.accepted == 2498 and [one.index for one in result.rejected] == [7, 2100], result)

decision = client.decide("tiss", "CLM-2025-1", "TIMEOUT - no answer", retryCount=0, record=False)
check("a decision", decision["shouldRetry"] and decision["errorClassification"] == "TRANSIENT", decision)

nobody = raised(insist.Problem, lambda: client.enqueue("python", 1, callback={"destination": "nowhere"}))
check("who is told of the end must be there", getattr(nobody, "type", "") == "unknown_destination", nobody)
check("and then is", client.enqueue("python", 1, tenant="told", callback={"destination": "mail"}, run_at="2099-01-01T00:00:00Z").created)

for n in range(12):
    client.enqueue("python", {"n": n}, id=f"w{n}", tenant="work", key="pair" if n in (4, 9) else None)
gaps = set()
runs, lock, slow_began = collections.Counter(), threading.Lock(), threading.Event()


def handle(job):
    with lock:
        runs[job.id] += 1
        first_time = runs[job.id] == 1
        if job.gap:
            gaps.add((job.id, job.key))
    if job.id == "w3" and first_time:
        raise ConnectionError("TIMEOUT: printer")
    if job.id == "w4":
        raise insist.Permanent("no such label", code="NO_LABEL")
    if job.id == "w5" and first_time:
        raise insist.Transient("out of paper", retry_after=1)
    if job.id == "w6":
        time.sleep(9)  # longer than its lease
    if job.id == "last":
        slow_began.set()
        time.sleep(2)


def ended():
    counts = client.call("GET", "/v1/tenants?destination=python")["tenants"]
    mine = next(one for one in counts if one["tenant"] == "work")
    return mine["pending"] + mine["running"] + mine["waiting"] == 0


worker = insist.Worker(client, "python", handle, concurrency=5, lease_s=6)
thread = threading.Thread(target=worker.run)
thread.start()
until = time.monotonic() + 60
while not ended() and time.monotonic() < until:
    time.sleep(0.2)
state = {f"w{n}": client.job(f"w{n}", "work")["state"] for n in range(12)}
check("the worker ends them", all(state[f"w{n}"] == "completed" for n in range(12) if n != 4), state)
dead = client.job("w4", "work")
check("a permanent failure is a dead letter", dead["state"] == "dead" and dead["last_code"] == "NO_LABEL", dead)
check("what failed is tried again, what lasts is not", runs["w3"] == runs["w5"] == 2 and runs["w6"] == 1, runs)
check("the next of its key comes after it, and knows", gaps == {("w9", "pair")}, gaps)
client.enqueue("python", {}, id="last", tenant="work")
slow_began.wait(30)
worker.stop()
thread.join(30)
check("a stop lets the last one end", not thread.is_alive() and client.job("last", "work")["state"] == "completed")
wrong = raised(insist.Problem, lambda: insist.Worker(client, "nowhere", handle).run())
check("a worker of nothing says so", isinstance(wrong, insist.Problem), wrong)

with open(request_file, encoding="utf-8") as file:
    request = json.load(file)
headers, body = request["headers"], base64.b64decode(request["body"])
check("a signature is verified", bool(insist.verify_webhook(["whsec_AAAA", secret], headers, body)))
for name, bad in {"a changed body": (secret, headers, body + b" "), "another secret": ("whsec_AAAA", headers, body),
                  "an old one": (secret, {**headers, "webhook-timestamp": "1614265330"}, body), "none": (secret, {}, body)}.items():
    check(f"{name} is not", isinstance(raised(insist.InvalidSignature, lambda: insist.verify_webhook(*bad)), insist.InvalidSignature))
