#!/usr/bin/env python3
"""Measures that many tenants and dead letters cost a call nothing.

    bench/tenants.py [--insist FILE] [--tenants N] [--dead N] [--calls N] [--repeat N]

Two daemons have as many jobs and as many dead letters; those of one are of ten tenants, those of the other of --tenants.
Beside four clients that ask /v1/destinations, /v1/stats, /metrics and /v1/dead/summary, with 100 ms between an answer and the
next question, one client adds a job a call and one leases a job a call: median and 99th percentile with many tenants must
be within 1.5 times those with ten. The two take turns. It ends with 1 when one is not.
`--tenants 1500 --dead 2000 --calls 200` shows that it works.
"""
import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time

from lib.daemon import TOP, Daemon, Pauses, call, quantile, tell

SETTINGS = """limits: { pending: 10000000, pending_per_tenant: 10000000 }
destinations:
  pull: { transport: pull, dead: { max: 10000000, max_per_tenant: 10000000 } }
"""
QUESTIONS = ("/v1/destinations", "/v1/stats", "/metrics", "/v1/dead/summary")
FEW = 10
BATCH = 500


def fill(daemon, tenants, count, more):
    """`count` jobs, one tenant after the other."""
    with daemon.connect() as to:
        for first in range(0, count, BATCH):
            lines = (json.dumps({"destination": "pull", "tenant": f"t{i % tenants}", "payload": "x" * 100, **more})
                     for i in range(first, min(first + BATCH, count)))
            status, text = call(to, "POST", "/v1/jobs/batch", "\n".join(lines).encode())
            assert status < 300, (status, text[:500])


def die(daemon, tenants, count):
    """So many jobs whose deadline passes before anybody leases them."""
    wait = 5 + count / 20000
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + wait))
    fill(daemon, tenants, count, {"deadline": at})
    began = time.monotonic()
    with daemon.connect() as to:
        while (dead := count_dead(to)) < count:
            assert time.monotonic() - began < wait + 300, f"{dead} of {count} are dead letters"
            time.sleep(0.5)


def count_dead(to):
    status, text = call(to, "GET", "/v1/stats")
    assert status == 200, (status, text[:500])
    return json.loads(text)["totals"]["dead"]


def ask(daemon, path, answered):
    with daemon.connect() as to:
        while True:
            status, text = call(to, "GET", path)
            assert status == 200, (path, status, text[:500])
            with answered.get_lock():
                answered.value += 1
            time.sleep(0.1)


def calls(daemon, count, path, body):
    """Seconds of each call, and when it began."""
    took = []
    with daemon.connect() as to:
        for i in range(count):
            began = time.perf_counter()
            status, text = call(to, "POST", path, json.dumps(body(i)).encode())
            took.append((began, time.perf_counter()))
            assert status < 300 and b'"jobs":[]' not in text.replace(b" ", b""), (status, text[:500])
    return took


def measure(daemon, tenants, options):
    """Milliseconds of the calls beside those who ask."""
    answered = multiprocessing.Value("l", 0)
    context = multiprocessing.get_context("fork")
    askers = [context.Process(target=ask, args=(daemon, path, answered), daemon=True) for path in QUESTIONS]
    for asker in askers:
        asker.start()
    time.sleep(1)
    seen = {"POST /v1/jobs": calls(daemon, options.calls, "/v1/jobs",
                                   lambda i: {"destination": "pull", "tenant": f"t{i % tenants}", "payload": "x" * 100}),
            "POST /v1/leases": calls(daemon, options.calls, "/v1/leases",
                                     lambda _: {"destination": "pull", "max": 1, "wait_s": 0, "lease_s": 600})}
    alive = all(asker.is_alive() for asker in askers)
    for asker in askers:
        asker.kill()
        asker.join()
    assert alive, "one who asked was refused"
    print(f"  {tenants} tenants: {answered.value} answers to those who ask", flush=True)
    return seen


def compare(seen, pauses):
    met = True
    for what in seen[FEW][0]:
        for name, part in (("median", 0.5), ("p99", 0.99)):
            each = {}
            for tenants, turns in seen.items():
                each[tenants] = [quantile([(ended - began) * 1000 for began, ended in turn[what] if not pauses.hit(began, ended)], part)
                                 for turn in turns]
                print(f"  {what}, {name}, {tenants} tenants: {', '.join(f'{one:.2f}' for one in each[tenants])} ms")
            few, many = (statistics.median(each[tenants]) for tenants in seen)
            met = tell(f"{what}, {name}", ("at most", 1.5), [many / few], "of that with ten tenants") and met
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--insist", default=os.path.join(TOP, "build", "insist"))
    parser.add_argument("--tenants", type=int, default=150000)
    parser.add_argument("--dead", type=int, default=200000)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    daemons, pauses, met = {}, None, False
    try:
        for tenants in (FEW, options.tenants):
            daemons[tenants] = daemon = Daemon(options.insist, SETTINGS)
            die(daemon, tenants, options.dead)
            fill(daemon, tenants, options.tenants, {})
            print(f"  {tenants} tenants: {options.dead} dead letters, {options.tenants} jobs, {daemon.rss_mb():.0f} MB", flush=True)
        pauses = Pauses()
        seen = {tenants: [] for tenants in daemons}
        for turn in range(options.repeat):
            for tenants in list(daemons) if turn % 2 == 0 else list(daemons)[::-1]:
                seen[tenants].append(measure(daemons[tenants], tenants, options))
        met = compare(seen, pauses)
    finally:
        for daemon in daemons.values():
            daemon.end()
        if pauses:
            print(f"  {pauses.end()}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
