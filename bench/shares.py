#!/usr/bin/env python3
"""Measures on real sockets that slow jobs of one tenant hold up nobody, and that a tenant alone loses nothing.

    bench/shares.py [--insist FILE] [--before FILE] [--seconds N] [--jobs N] [--repeat N]

Ten slots; one tenant has 200 jobs of ten seconds, five have 20 quick jobs a second in all: how long the quick ones wait
from the tenth second on, in the median and at the 99th percentile. Then one tenant alone: deliveries a second. With
--before another program is measured in turns in the same run, and the ratio is of the medians.
"""
import argparse
import asyncio
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time

CONFIG = """listen: 127.0.0.1:0
store: sqlite:{folder}/data/insist.db
destinations:
  d: {{ url: 'http://127.0.0.1:{port}/', allow_private: true, timeout: 30s, concurrency: 10, success: [2xx] }}
"""


class Receiver:
    """Answers jobs of tenant `slow` after ten seconds, others after `quick_s`; notes when each quick one came."""

    def __init__(self):
        self.came = {}
        self.count = 0
        self.quick_s = 0.02
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()
        self.ready.wait()

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = next(int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:"))
                body = await reader.readexactly(length)
                self.count += 1
                job = json.loads(body)
                if not job["slow"]:
                    self.came[job["id"]] = time.monotonic()
                await asyncio.sleep(10 if job["slow"] else self.quick_s)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Daemon:
    def __init__(self, program, receiver):
        self.folder = tempfile.TemporaryDirectory(prefix="insist-shares-")
        path = os.path.join(self.folder.name, "insist.yaml")
        os.mkdir(os.path.join(self.folder.name, "data"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=self.folder.name, port=receiver.port))
        self.process = subprocess.Popen([program, "serve", "-c", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.port = None
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        assert self.port, "the daemon does not say where it listens"
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()
        self.client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def post(self, path, body):
        self.client.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.client.getresponse()
        text = answer.read()
        assert answer.status < 300, (answer.status, text)

    def end(self):
        self.process.send_signal(signal.SIGKILL)  # ten-second jobs are under way
        self.process.wait()
        self.folder.cleanup()


def job(name, tenant, slow):
    return {"destination": "d", "tenant": tenant, "id": name, "payload": {"id": name, "slow": slow}}


def quick_beside_slow(program, receiver, seconds):
    daemon = Daemon(program, receiver)
    sent = {}
    daemon.post("/v1/jobs/batch", [job(f"s{i}", "slow", True) for i in range(200)])
    began = time.monotonic()
    for i in range(int(seconds * 20)):
        time.sleep(max(0, began + i / 20 - time.monotonic()))
        name = f"q{i}"
        sent[name] = time.monotonic()
        daemon.post("/v1/jobs", job(name, f"q{i % 5}", False))
    time.sleep(2)
    late = [name for name in sent if sent[name] - began >= 10]
    waits = sorted((receiver.came.get(name, time.monotonic()) - sent[name]) * 1000 for name in late)
    daemon.end()
    receiver.came.clear()
    return statistics.median(waits), waits[int((len(waits) - 1) * 0.99)]


def alone(program, receiver, jobs):
    daemon = Daemon(program, receiver)
    receiver.count, receiver.quick_s = 0, 0.002
    began = time.monotonic()
    for first in range(0, jobs, 500):
        daemon.post("/v1/jobs/batch", [job(f"a{i}", "one", False) for i in range(first, min(first + 500, jobs))])
    while receiver.count < jobs:
        time.sleep(0.01)
    rate = jobs / (time.monotonic() - began)
    receiver.quick_s = 0.02
    daemon.end()
    receiver.came.clear()
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--insist", default="build/insist")
    parser.add_argument("--before")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    receiver = Receiver()
    programs = [("now", options.insist)] + ([("before", options.before)] if options.before else [])
    rates = {name: [] for name, _ in programs}
    for _ in range(options.repeat):
        for name, program in programs:
            rates[name].append(alone(program, receiver, options.jobs))
    for name, program in programs:
        median, p99 = quick_beside_slow(program, receiver, options.seconds)
        print(f"{name}: quick jobs beside slow ones wait {median:.1f} ms in the median, {p99:.1f} ms at the 99th percentile")
        print(f"{name}: one tenant alone, {statistics.median(rates[name]):.0f} deliveries a second")
    if options.before:
        print(f"alone, now to before: {statistics.median(rates['now']) / statistics.median(rates['before']):.3f}")


main()
