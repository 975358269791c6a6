#!/usr/bin/env python3
"""What bad clients cost the good ones: how long a call takes without them and with them, in turns, on one daemon.

    bench/door.py [--small] [--repeat=N] [NAME...]

    NAME      idle slow heads memory streams; without one: all
    --small   a tenth of everything, to see that it works
    --repeat  how many turns, 3 without it; the medians count

INSIST=FILE measures another program than build/insist. Ends with 1 when a bound is not kept: a normal client's p99 at most
twice of without beside 10,000 idle and 1,000 slow clients and beside 1,100 slow heads at `connections: 1024`; RSS under 300 MB
with 60 clients that do not read and 30 that do not finish; beside 64 streams from the beginning of 300,000 events /livez
under 100 ms and POST /v1/jobs at most three times of without."""
import contextlib
import hashlib
import json
import os
import resource
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INSIST = os.environ.get("INSIST", os.path.join(TOP, "build", "insist"))
JOB = b'{"destination":"yard","payload":{"text":"hello"}}'


class Daemon:
    def __init__(self, limits="", tokens=0):
        self.folder = tempfile.mkdtemp(prefix="insist-door-", dir=os.environ.get("BENCH_TMP"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        os.mkdir(os.path.join(self.folder, "data"))
        config = os.path.join(self.folder, "insist.yaml")
        self.tokens = [f"token-number-{i}" for i in range(tokens)]
        with open(os.path.join(self.folder, "tokens.yaml"), "w") as out:
            out.write("tokens:\n")
            for i, token in enumerate(self.tokens):
                out.write(f"  - {{ name: t{i}, scopes: [admin], sha256: {hashlib.sha256(token.encode()).hexdigest()} }}\n")
        with open(config, "w") as out:
            out.write(f"listen: 127.0.0.1:{self.port}\nstore: sqlite:{self.folder}/data/insist.db\n")
            out.write(f"limits: {{ {limits} }}\n" if limits else "")
            out.write("auth: { tokens_file: tokens.yaml }\n" if tokens else "")
            out.write("destinations: { yard: { transport: pull } }\n")
        helped = subprocess.run([INSIST, "serve", "--help"], capture_output=True, text=True).stdout
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen([INSIST, "serve", *(["--init"] if "--init" in helped else []), "-c", config],
                                            cwd=self.folder, stdout=log, stderr=log)
        while self.process.poll() is None:
            with contextlib.suppress(OSError), self.connect() as one:
                if call(one, b"GET", b"/livez")[0] == 200:
                    return
            time.sleep(0.05)
        raise SystemExit(f"{INSIST} did not start; see {self.folder}/log")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def rss_mb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def call(to, method, path, body=b"", token=None):
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\n" % (method, path)
    head += b"Content-Length: %d\r\n" % len(body) if body else b""
    head += b"Authorization: Bearer %s\r\n" % token.encode() if token else b""
    to.sendall(head + b"\r\n" + body)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = to.recv(65536)
        if not piece:
            raise ConnectionError("closed")
        got += piece
    head, got = got.split(b"\r\n\r\n", 1)
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(got) < length:
        got += to.recv(65536)
    return int(head.split()[1]), got


def latencies(daemon, calls, request):
    """In milliseconds, sorted. A client that was sent away comes again, and that counts."""
    times, to = [], daemon.connect()
    for _ in range(calls):
        began = time.perf_counter()
        for _ in range(20):
            try:
                if request(to)[0] < 300:
                    break
            except OSError:
                pass
            to.close()
            to = daemon.connect()
        times.append((time.perf_counter() - began) * 1000)
    to.close()
    return sorted(times)


def p99(times):
    return times[int(len(times) * 0.99)]


def post(token=None):
    return lambda to: call(to, b"POST", b"/v1/jobs", JOB, token)


def connect_many(daemon, count, first):
    clients = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            one = daemon.connect()
            one.sendall(first)
            clients.append(one)
    return clients


def drip(clients, stop):
    """A byte from each now and then; who was sent away comes no more."""
    while not stop.wait(1):
        for one in clients:
            with contextlib.suppress(OSError):
                one.send(b"x", socket.MSG_DONTWAIT)


def beside(name, limits, count, first, bound, repeat, calls):
    ratios = []
    for _ in range(repeat):
        daemon = Daemon(limits)
        without = p99(latencies(daemon, calls, post()))
        clients, stop = connect_many(daemon, count, first), threading.Event()
        dripping = threading.Thread(target=drip, args=(clients, stop))
        dripping.start()
        ratios.append(p99(latencies(daemon, calls, post())) / without)
        stop.set()
        dripping.join()
        for one in clients:
            one.close()
        daemon.end()
    return tell(name, statistics.median(ratios), bound, "x of without, p99 of POST /v1/jobs", ratios)


def tell(name, value, bound, unit, all_values):
    good = value <= bound
    print(json.dumps({"name": name, "value": round(value, 2), "bound": bound, "unit": unit, "good": good,
                      "all": [round(one, 2) for one in all_values]}), flush=True)
    return good


def memory(repeat, part):
    """Lists of 50 MB that nobody reads, bodies of 60 MB that do not come."""
    most = []
    for _ in range(repeat):
        daemon = Daemon()
        with daemon.connect() as to:
            for i in range(50):
                call(to, b"POST", b"/v1/jobs", b'{"destination":"yard","payload":"%s"}' % (b"x" * (1000 * 1000)))
        asking = connect_many(daemon, 60 // part, b"GET /v1/jobs?payload=true&limit=50 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        body = b"POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n"
        sending = connect_many(daemon, 30 // part, body)
        for one in sending:
            one.setblocking(False)
        peak, until = daemon.rss_mb(), time.monotonic() + 15
        while time.monotonic() < until:
            for one in sending:
                with contextlib.suppress(OSError):
                    one.send(b"[" * 1000000)
            peak = max(peak, daemon.rss_mb())
            time.sleep(0.02)
        most.append(peak)
        for one in asking + sending:
            one.close()
        daemon.end()
    return tell("memory", statistics.median(most), 300, "MB RSS at most", most)


def read_all(streams, stop):
    poll = select.epoll()
    for one in streams:
        poll.register(one.fileno(), select.EPOLLIN)
    by_number = {one.fileno(): one for one in streams}
    while not stop.is_set():
        for number, _ in poll.poll(0.2):
            with contextlib.suppress(OSError):
                if not by_number[number].recv(1 << 18, socket.MSG_DONTWAIT):
                    poll.unregister(number)


def streams(repeat, part, calls):
    slowest, ratios = [], []
    for _ in range(repeat):
        daemon = Daemon(tokens=8)
        token = daemon.tokens[0]
        with daemon.connect() as to:
            for _ in range(300 // part):
                call(to, b"POST", b"/v1/jobs/batch", b"\n".join([JOB] * 1000), token)
        without = p99(latencies(daemon, calls, post(token)))
        ask = b"GET /v1/events/stream?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
        following = [one for each in daemon.tokens for one in connect_many(daemon, 8, ask % each.encode())]
        stop = threading.Event()
        reading = threading.Thread(target=read_all, args=(following, stop))
        reading.start()
        slowest.append(p99(latencies(daemon, calls // 2, lambda to: call(to, b"GET", b"/livez"))))
        ratios.append(p99(latencies(daemon, calls // 2, post(token))) / without)
        stop.set()
        reading.join()
        for one in following:
            one.close()
        daemon.end()
    live = tell("streams livez", statistics.median(slowest), 100, "ms, p99", slowest)
    return tell("streams", statistics.median(ratios), 3, "x of without, p99 of POST /v1/jobs", ratios) and live


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("-")] or ["idle", "slow", "heads", "memory", "streams"]
    repeat = next((int(word[9:]) for word in sys.argv if word.startswith("--repeat=")), 3)
    part, calls = (10, 200) if "--small" in sys.argv else (1, 1000)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    runs = {
        "idle": lambda: beside("idle", "", 10000 // part, b"", 2, repeat, calls),
        "slow": lambda: beside("slow", "", 1000 // part, b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n",
                               2, repeat, calls),
        "heads": lambda: beside("heads", f"connections: {1024 // part}", 1100 // part, b"GET /livez HTTP/1.1\r\nX-", 2, repeat, calls),
        "memory": lambda: memory(repeat, part),
        "streams": lambda: streams(repeat, part, calls),
    }
    return 0 if all([runs[name]() for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
