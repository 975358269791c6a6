#!/usr/bin/env python3
"""Measures on real sockets that slow jobs of one tenant hold up nobody, and that a tenant alone loses nothing.

    bench/shares.py [--insist FILE] [--before FILE] [--seconds N] [--jobs N] [--repeat N] [alone] [beside]

Ten slots; one tenant has 200 jobs of ten seconds, five have 20 quick jobs a second in all: how long the quick ones wait
from the tenth second on, in the median and at the 99th percentile. The slow ones come first and take all slots there are, so
the first quick ones to go are those that waited for ten seconds, and they are what the 99th percentile is made of. Then one
tenant alone: deliveries a second. With --before another program is measured in turns in the same run, and the ratio is of the
medians. Each line says what is asked, what was seen and whether that is met; it ends with 1 when something is not.
"""
import argparse
import json
import os
import statistics
import sys
import time

from lib.daemon import TOP, Daemon, Pauses, call, quantile, tell
from lib.receiver import Receiver

SETTINGS = """destinations:
  d: {{ url: 'http://127.0.0.1:{port}/', allow_private: true, timeout: 30s, concurrency: 10, success: [2xx] }}
"""
SLOW_S, QUICK_S, ALONE_S = 10, 0.02, 0.002


def post(to, path, jobs):
    body = "\n".join(json.dumps(one) for one in jobs).encode()
    status, text = call(to, "POST", path, body)
    assert status < 300, (status, text)


def job(name, tenant, slow):
    return {"destination": "d", "tenant": tenant, "id": name, "payload": {"id": name, "slow": slow}}


def quick_beside_slow(program, seconds):
    """The quick ones' waits in milliseconds, of those that came in the tenth second or later."""
    receiver = Receiver(lambda job: (SLOW_S if job["slow"] else QUICK_S, b""))
    daemon = Daemon(program, SETTINGS.format(port=receiver.port))
    to, sent = daemon.connect(), {}
    post(to, "/v1/jobs/batch", [job(f"s{i}", "slow", True) for i in range(200)])
    began = time.monotonic()
    for i in range(int(seconds * 20)):
        time.sleep(max(0, began + i / 20 - time.monotonic()))
        sent[f"q{i}"] = time.monotonic()
        post(to, "/v1/jobs", [job(f"q{i}", f"q{i % 5}", False)])
    time.sleep(2)
    came, now = receiver.arrivals(), time.monotonic()
    daemon.end()
    receiver.end()
    return [(came.get(name, now) - sent[name]) * 1000 for name in sent if sent[name] - began >= 10]


def alone(program, jobs):
    receiver = Receiver(lambda _: (ALONE_S, b""))
    daemon = Daemon(program, SETTINGS.format(port=receiver.port))
    began = time.monotonic()
    with daemon.connect() as to:
        for first in range(0, jobs, 500):
            post(to, "/v1/jobs/batch", [job(f"a{i}", "one", False) for i in range(first, min(first + 500, jobs))])
    while receiver.count.value < jobs:
        time.sleep(0.01)
    rate = jobs / (time.monotonic() - began)
    daemon.end()
    receiver.end()
    return rate


def measure_alone(programs, options):
    rates = {name: [] for name, _ in programs}
    for turn in range(options.repeat):
        for name, program in programs if turn % 2 == 0 else programs[::-1]:
            rates[name].append(alone(program, options.jobs))
    for name, _ in programs:
        print(f"  alone, {name}: {statistics.median(rates[name]):.0f} deliveries a second ({', '.join(f'{rate:.0f}' for rate in rates[name])})")
    if not options.before:
        return True
    ratio = statistics.median(rates["now"]) / statistics.median(rates["before"])
    return tell("alone: deliveries", ("at least", 0.95), [ratio], "of before")


def measure_beside(programs, options):
    met = True
    for name, program in programs:
        medians, tails = [], []
        for _ in range(options.repeat if name == "now" else 1):
            waits = quick_beside_slow(program, options.seconds)
            medians.append(statistics.median(waits))
            tails.append(quantile(waits, 0.99))
        if name == "now":
            met = tell("beside slow ones: quick jobs wait, p50", ("under", 100), medians, "ms")
            met = tell("beside slow ones: quick jobs wait, p99", ("under", 1000), tails, "ms") and met
        else:
            print(f"  beside slow ones, {name}: p50 {medians[0]:.0f} ms, p99 {tails[0]:.0f} ms")
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--insist", default=os.path.join(TOP, "build", "insist"))
    parser.add_argument("--before")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("names", nargs="*", choices=["alone", "beside", []])
    options = parser.parse_args()
    programs = [("now", options.insist)] + ([("before", options.before)] if options.before else [])
    measures = {"alone": measure_alone, "beside": measure_beside}
    pauses = Pauses()
    met = all([measures[name](programs, options) for name in options.names or measures])
    print(f"  {pauses.end()}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
