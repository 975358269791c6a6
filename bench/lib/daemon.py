"""What bench/*.py share: a daemon on a store of its own, a call, and how a figure is told against what is asked of it."""
import contextlib
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Daemon:
    """`settings`: the configuration without where it listens and stores. `files`: name → text, beside it."""

    def __init__(self, program, settings, files=None):
        self.folder = tempfile.mkdtemp(prefix="insist-bench-", dir=os.environ.get("BENCH_TMP"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        os.mkdir(self.path("data"))
        listen = f"listen: 127.0.0.1:{self.port}\nstore: sqlite:{self.path('data/insist.db')}\n"
        for name, text in {**(files or {}), "insist.yaml": listen + settings}.items():
            with open(self.path(name), "w", encoding="utf-8") as out:
                out.write(text)
        with open(self.path("log"), "wb") as log:
            self.process = subprocess.Popen([program, "serve", "-c", self.path("insist.yaml")], cwd=self.folder, stdout=log, stderr=log)
        while self.process.poll() is None:
            with contextlib.suppress(OSError), self.connect() as one:
                if call(one, "GET", "/livez")[0] == 200:
                    return
            time.sleep(0.05)
        raise SystemExit(f"{program} did not start; see {self.path('log')}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def connections(self):
        """How many are open, as the kernel sees the daemon's side. Those that it closed and the other side has not are not."""
        with open("/proc/net/tcp", encoding="ascii") as table:
            words = (line.split(maxsplit=4) for line in table)
            return sum(1 for word in words if word[3] == "01" and word[1].endswith(f":{self.port:04X}"))

    def rss_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

    def end(self):
        """At once: what is under way is of no use any more."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def call(to, method, path, body=b"", token=None):
    """One request on a connection. Returns the status and the answer's body."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Length: {len(body)}\r\n" if body else ""
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    to.sendall(head.encode() + b"\r\n" + body)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = to.recv(65536)
        if not piece:
            raise ConnectionError("closed")
        got += piece
    head, got = got.split(b"\r\n\r\n", 1)
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(got) < length:
        piece = to.recv(65536)
        if not piece:
            raise ConnectionError("closed")
        got += piece
    return int(head.split()[1]), got


class Pauses:
    """When the machine, not the program, stood still: on each processor something that only sleeps was woken late. A virtual
    machine's processor may be taken away for a tenth of a second, and nothing on it answers meanwhile."""

    LATE_S = 0.02

    def __init__(self):
        self.seen, self.ends = [], []
        context = multiprocessing.get_context("fork")
        for processor in os.sched_getaffinity(0):
            hear, say = context.Pipe(duplex=False)
            process = context.Process(target=self.sleep, args=(processor, say), daemon=True)
            process.start()
            self.ends.append(process)
            threading.Thread(target=self.listen, args=(hear,), daemon=True).start()

    def sleep(self, processor, say):
        os.sched_setaffinity(0, {processor})
        while True:
            began = time.perf_counter()
            time.sleep(0.001)
            if (ended := time.perf_counter()) - began > self.LATE_S:
                say.send((began, ended))

    def listen(self, hear):
        with contextlib.suppress(EOFError, OSError):
            while True:
                self.seen.append(hear.recv())

    def end(self):
        """How many there were, and the longest, in words."""
        time.sleep(0.2)
        for process in self.ends:
            process.kill()
            process.join()
        longest = max((ended - began for began, ended in self.seen), default=0)
        return f"the machine stood still {len(self.seen)} times, {longest * 1000:.0f} ms at most"

    def hit(self, began, ended):
        return any(began < until and since < ended for since, until in self.seen)


def quantile(values, part):
    """The smallest value that this part of all does not exceed."""
    ranked = sorted(values)
    return ranked[max(0, min(len(ranked) - 1, round(len(ranked) * part + 0.499999) - 1))]


def tell(what, asked, values, unit, met=None):
    """`asked`: ("at most" or "at least" or "under", bound). The median of `values` counts. Returns whether it is kept."""
    word, bound = asked
    value = statistics.median(values)
    if met is None:
        met = value >= bound if word == "at least" else value < bound if word == "under" else value <= bound
    each = f" ({', '.join(f'{one:.2f}' for one in values)})" if len(values) > 1 else ""
    print(f"{what}: asked {word} {bound:g} {unit}, seen {value:.2f}{each}: {'met' if met else 'MISSED'}", flush=True)
    return met
