#!/usr/bin/env python3
"""Shows that what is old goes as fast as it comes, and that the file becomes small again afterwards.

    bench/retention.py [--insist FILE] [--seconds N] [--share 0.6] [--dead N]

First, how many jobs a second pull workers lease and acknowledge of a backlog, which the share is of. Then so many a second of
another backlog, which lasts for all the time, with `audit: 10s` and `completed: 10s`: they must get through, and at the end there
may be no more completed jobs and no more events than came in the last 20 seconds. Then --dead jobs expire, whose dead letters live
for two seconds. When all is quiet the file must shrink to a quarter of its largest. Fails when one of these does not hold.
"""
import argparse
import http.client
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

CONFIG = """listen: 127.0.0.1:0
store: sqlite:{folder}/data/insist.db
retention: {{ audit: 10s, completed: 10s }}
limits: {{ pending: 100000000 }}
destinations:
  pull: {{ transport: pull, dead: {{ ttl: 2s }} }}
"""
BATCH = 500
LEASE = 100
WORKERS = 4
KEPT_S = 20  # the ten that are asked for, and as much again for looks and slices


class Daemon:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="insist-retention-")
        path = os.path.join(self.folder.name, "insist.yaml")
        os.mkdir(os.path.join(self.folder.name, "data"))
        self.database = os.path.join(self.folder.name, "data", "insist.db")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=self.folder.name))
        self.process = subprocess.Popen([program, "serve", "-c", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.port = None
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        assert self.port, "the daemon does not say where it listens"
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()

    def count(self, table, where="1"):
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30) as db:
            return db.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]

    def bytes(self):
        return os.path.getsize(self.database)

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


class Client:
    def __init__(self, daemon):
        self.client = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)

    def post(self, path, body, kind="application/json"):
        self.client.request("POST", path, body, {"Content-Type": kind})
        answer = self.client.getresponse()
        text = answer.read()
        assert answer.status < 300, (answer.status, text[:500])
        return text

    def add(self, count, more=""):
        line = '{"destination":"pull","payload":"' + "x" * 500 + '"' + more + "}\n"
        self.post("/v1/jobs/batch", line * count, "application/x-ndjson")

    def work(self, most):
        leases = re.findall(rb'"lease": ?("[^"]+"|\d+)', self.post(
            "/v1/leases", json.dumps({"destination": "pull", "max": most, "wait_s": 0, "lease_s": 60})))
        if leases:
            self.post("/v1/leases/ack", b'{"leases":[' + b",".join(leases) + b"]}")
        return len(leases)


def together(count, run):
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def backlog(daemon, jobs):
    client = Client(daemon)
    for _ in range(jobs // BATCH):
        client.add(BATCH)


def pull_rate(daemon, jobs):
    backlog(daemon, jobs)
    done = [0] * WORKERS
    began = time.monotonic()

    def pull(place):
        client = Client(daemon)
        while got := client.work(LEASE):
            done[place] += got
    together(WORKERS, pull)
    return sum(done) / (time.monotonic() - began)


def sustain(daemon, rate, seconds):
    """Works off `rate` jobs a second of a backlog; gives the file's largest size, how many were worked off, and what is there then."""
    backlog(daemon, int(rate * seconds))
    began = time.monotonic()
    until = began + seconds
    done, largest = [0] * WORKERS, daemon.bytes()

    def run(place):
        client = Client(daemon)
        while time.monotonic() < until:
            time.sleep(max(0, began + done[place] * WORKERS / rate - time.monotonic()))
            if not (got := client.work(LEASE)):
                return
            done[place] += got
    together(WORKERS, run)
    largest = max(largest, daemon.bytes())
    events, completed = daemon.count("event"), daemon.count("job", "state = 4")
    client = Client(daemon)
    while client.work(LEASE):
        pass
    return largest, sum(done), events, completed


def expire(daemon, count):
    """Seconds until the dead letters of so many expired jobs are gone, from the moment that all have lived long enough."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5 + count / 5000))
    client = Client(daemon)
    for _ in range(count // BATCH):
        client.add(BATCH, f',"deadline":"{at}"')
    began = time.monotonic()
    while daemon.count("job", "state IN (1, 3)") > 0 and time.monotonic() - began < 120:
        time.sleep(0.2)
    time.sleep(2)
    began = time.monotonic()
    while (left := daemon.count("job", "state = 5")) > 0 and time.monotonic() - began < 120:
        time.sleep(0.2)
    return time.monotonic() - began, left


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--insist", default="build/insist")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--share", type=float, default=0.6)
    parser.add_argument("--dead", type=int, default=50000)
    options = parser.parse_args()
    daemon = Daemon(options.insist)
    kept = []
    try:
        rate = pull_rate(daemon, 100000)
        print(f"pull workers: {rate:.0f} jobs a second; {options.share * rate:.0f} of them for {options.seconds:.0f} s")
        largest, done, events, completed = sustain(daemon, options.share * rate, options.seconds)
        worked = done / options.seconds
        came = worked * min(KEPT_S, options.seconds)
        print(f"worked off {worked:.0f} a second; {events} events and {completed} completed jobs are there, {largest >> 20} MB")
        kept.append(("workers reach the share", worked >= 0.98 * options.share * rate))
        kept.append(("events of at most the last 20 s", events <= 2 * came))
        kept.append(("completed jobs of at most the last 20 s", completed <= came))
        took, left = expire(daemon, options.dead)
        print(f"{options.dead} dead letters past their time: gone after {took:.1f} s, {left} left; {daemon.bytes() >> 20} MB")
        kept.append(("dead letters go", left == 0 and took < 30))
        largest = max(largest, daemon.bytes())
        began = time.monotonic()
        while daemon.bytes() >= largest / 4 and time.monotonic() - began < 600:
            time.sleep(0.5)
        print(f"{time.monotonic() - began:.0f} s later, when it is quiet: {daemon.bytes() >> 20} MB, {daemon.count('event')} events, {daemon.count('lane')} lanes")
        kept.append(("the file shrinks", daemon.bytes() < largest / 4))
    finally:
        daemon.end()
    for what, holds in kept:
        print(("ok " if holds else "NOT OK ") + what)
    return 0 if all(holds for _, holds in kept) else 1


if __name__ == "__main__":
    sys.exit(main())
