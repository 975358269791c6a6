#!/usr/bin/env python3
"""What bad clients cost the good ones: how long a call takes without them and with them, in turns, on one daemon.

    bench/door.py [--small] [--repeat=N] [NAME...]

    NAME      idle slow both heads memory streams; without one: all
    --small   a tenth of everything, to see that it works
    --repeat  how many turns, 3 without it; the medians count

INSIST=FILE measures another program than build/insist. Each line says what is asked, what was seen and whether that is met;
it ends with 1 when something is not. A daemon takes half of the files that a process may open for connections: where fewer
than 23,000 are allowed (`ulimit -Hn`), fewer idle clients are beside the slow ones.

- a normal client's p99 at most twice of without, beside 10,000 idle clients, beside 1,000 that send a byte of a body now and
  then, beside both, and beside 1,100 slow heads at `connections: 1024`. They are another process's; one that is sent away comes
  back after a second, and so many connections must really be open as that process holds or the daemon takes;
- RSS under 300 MB with 60 clients that do not read and 30 that do not finish;
- beside 64 streams by eight tokens from the beginning of 300,000 events every /livez under 100 ms, and POST /v1/jobs at most
  three times of without. A stream that has caught up begins again."""
import argparse
import contextlib
import hashlib
import heapq
import multiprocessing
import os
import resource
import select
import socket
import statistics
import sys
import time

from lib.daemon import TOP, Daemon, Pauses, call, quantile, tell

INSIST = os.environ.get("INSIST", os.path.join(TOP, "build", "insist"))
JOB = b'{"destination":"yard","payload":{"text":"hello"}}'
PULL = "destinations: { yard: { transport: pull } }\n"
FILES = 65536  # of this process and of the daemon, which takes half of it for connections at most
CALL_EVERY_S, BACK_AFTER_S, DRIP_EVERY_S, STREAM_QUIET_S = 0.005, 1, 1, 1
BODY = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n"
HEAD = b"GET /livez HTTP/1.1\r\nX-"


# ---- bad clients, in a process of their own so that the good one does not wait for them in Python ----

class Crowd:
    """Connections that are always there. `groups`: (how many, what each sends first, whether a byte follows now and then)."""

    def __init__(self, port, groups, reads=False):
        self.port, self.reads, self.poll, self.by_number, self.due = port, reads, select.epoll(), {}, []
        for count, first, drips in groups:
            for i in range(count):
                heapq.heappush(self.due, (time.monotonic() + i / count, len(self.due), None, first, drips))

    def open(self, first, drips):
        one = socket.socket()
        try:
            one.connect(("127.0.0.1", self.port))
            one.setblocking(False)
            if first:
                one.send(first)
        except OSError:
            one.close()
            heapq.heappush(self.due, (time.monotonic() + BACK_AFTER_S, id(one), None, first, drips))
            return
        self.by_number[one.fileno()] = [one, first, drips, time.monotonic()]
        self.poll.register(one.fileno(), select.EPOLLIN | select.EPOLLHUP)
        if drips or self.reads:
            heapq.heappush(self.due, (time.monotonic() + DRIP_EVERY_S, id(one), one, first, drips))

    def leave(self, number):
        one, first, drips, _ = self.by_number.pop(number)
        self.poll.unregister(number)
        one.close()
        heapq.heappush(self.due, (time.monotonic() + BACK_AFTER_S, id(one), None, first, drips))

    def act(self, one, first, drips):
        """Its time has come: a byte, or a stream that has nothing more to tell begins again."""
        known = self.by_number.get(one.fileno()) if one else None
        if one is None:
            self.open(first, drips)
        elif known and known[0] is one:
            if drips:
                with contextlib.suppress(OSError):
                    one.send(b"x")
            elif time.monotonic() - known[3] > STREAM_QUIET_S:
                self.leave(one.fileno())
                return
            heapq.heappush(self.due, (time.monotonic() + DRIP_EVERY_S, id(one), one, first, drips))

    def heard(self, number):
        """Bytes that came. Who hears anything, or that it is over, was sent away, unless it reads a stream."""
        known = self.by_number[number]
        try:
            got = known[0].recv(1 << 18)
        except BlockingIOError:
            return 0
        except OSError:
            got = b""
        if self.reads and got:
            known[3] = time.monotonic()
        else:
            self.leave(number)
        return len(got)

    def run(self, told, stop):
        """Tells now and then how many there are and how many bytes came."""
        came, next_told = 0, 0
        while not stop.is_set():
            while self.due and self.due[0][0] <= time.monotonic():
                self.act(*heapq.heappop(self.due)[2:])
            for number, _ in self.poll.poll(0.01):
                came += self.heard(number)
            if time.monotonic() >= next_told:
                told[0], told[1], next_told = len(self.by_number), came, time.monotonic() + 0.2


@contextlib.contextmanager
def crowd(daemon, groups, reads=False):
    """Beside it there are these. Yields what it tells: how many there are, and how many bytes came."""
    told, stop = multiprocessing.Array("q", 2), multiprocessing.Event()
    process = multiprocessing.Process(target=lambda: Crowd(daemon.port, groups, reads).run(told, stop))
    process.start()
    wanted, until = sum(count for count, _, _ in groups), time.monotonic() + 30
    while told[0] < wanted * 0.9 and time.monotonic() < until:
        time.sleep(0.05)
    yield told
    stop.set()
    process.join()


# ---- the good client ----

def latencies(daemon, seconds, request):
    """In milliseconds, of a call each few milliseconds. A client that is sent away comes again, and that counts. Calls in which
    the machine itself stood still are left out."""
    calls, to, pauses, began = [], daemon.connect(), Pauses(), time.perf_counter()
    while (at := time.perf_counter()) < began + seconds:
        for _ in range(20):
            with contextlib.suppress(OSError):
                if request(to)[0] < 300:
                    break
            to.close()
            to = daemon.connect()
        calls.append((at, time.perf_counter()))
        time.sleep(max(0, at + CALL_EVERY_S - time.perf_counter()))
    to.close()
    still = pauses.end()
    times = [(ended - at) * 1000 for at, ended in calls if not pauses.hit(at, ended)]
    if len(times) < len(calls):
        print(f"  {len(calls) - len(times)} of {len(calls)} calls left out, {max(b - a for a, b in calls) * 1000:.0f} ms at most: {still}")
    return times


def post(token=None):
    return lambda to: call(to, "POST", "/v1/jobs", JOB, token)


def beside(name, limits, groups, repeat, seconds):
    without, along, held = [], [], []
    wanted = sum(count for count, _, _ in groups)
    for _ in range(repeat):
        daemon = Daemon(INSIST, f"limits: {{ {limits} }}\n" + PULL)
        without.append(quantile(latencies(daemon, seconds, post()), 0.99))
        with crowd(daemon, groups):
            along.append(quantile(latencies(daemon, seconds, post()), 0.99))
            held.append(daemon.connections())
        daemon.end()
    least = 0.9 * min(wanted, int(limits.split()[-1]), resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    met = tell(f"{name}: open connections of {wanted} clients", ("at least", round(least)), held, "connections")
    ratios = [after / before for before, after in zip(without, along)]
    print(f"  p99 of POST /v1/jobs: {statistics.median(without):.2f} ms without, {statistics.median(along):.2f} ms beside them")
    return tell(f"{name}: p99 of POST /v1/jobs", ("at most", 2), ratios, "times of without",
                statistics.median(along) <= 2 * statistics.median(without)) and met


def memory(repeat, part):
    """Lists of 50 MB that nobody reads, bodies of 60 MB that do not come."""
    most = []
    for _ in range(repeat):
        daemon = Daemon(INSIST, PULL)
        with daemon.connect() as to:
            for _ in range(50):
                call(to, "POST", "/v1/jobs", b'{"destination":"yard","payload":"%s"}' % (b"x" * (1000 * 1000)))
        asking = [daemon.connect() for _ in range(60 // part)]
        for one in asking:
            one.sendall(b"GET /v1/jobs?payload=true&limit=50 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sending = [daemon.connect() for _ in range(30 // part)]
        for one in sending:
            one.sendall(b"POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n")
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
    return tell(f"memory: RSS with {60 // part} clients that do not read and {30 // part} that do not finish", ("under", 300), most, "MB")


def streams(repeat, part, seconds):
    slowest, nearly, without, along, read = [], [], [], [], []
    tokens = [f"token-number-{i}" for i in range(8)]
    kept = "".join(f"  - {{ name: t{i}, scopes: [admin], sha256: {hashlib.sha256(token.encode()).hexdigest()} }}\n"
                   for i, token in enumerate(tokens))
    for _ in range(repeat):
        daemon = Daemon(INSIST, "auth: { tokens_file: tokens.yaml }\n" + PULL, {"tokens.yaml": "tokens:\n" + kept})
        with daemon.connect() as to:
            for _ in range(300 // part):
                call(to, "POST", "/v1/jobs/batch", b"\n".join([JOB] * 1000), tokens[0])
        without.append(quantile(latencies(daemon, seconds, post(tokens[0])), 0.99))
        ask = "GET /v1/events/stream?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n"
        with crowd(daemon, [(8, ask.format(token).encode(), False) for token in tokens], reads=True) as told:
            before = told[1]
            live = latencies(daemon, seconds, lambda to: call(to, "GET", "/livez"))
            along.append(quantile(latencies(daemon, seconds, post(tokens[0])), 0.99))
            read.append((told[1] - before) / 1e6)
            held = told[0]
        slowest.append(max(live))
        nearly.append(quantile(live, 0.99))
        daemon.end()
    print(f"  {held} streams at the end; they read {statistics.median(read):.0f} MB meanwhile; p99 of /livez {max(nearly):.2f} ms; p99 of "
          f"POST /v1/jobs {statistics.median(without):.2f} ms without, {statistics.median(along):.2f} ms beside them")
    met = tell("streams: the slowest /livez of all", ("under", 100), slowest, "ms", max(slowest) < 100)
    ratios = [after / before for before, after in zip(without, along)]
    return tell("streams: p99 of POST /v1/jobs", ("at most", 3), ratios, "times of without",
                statistics.median(along) <= 3 * statistics.median(without)) and met


def raise_files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(FILES, most), max(FILES, most)))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        print(f"only {most} open files are allowed: a daemon takes half of it for connections")


def main():
    measures = ["idle", "slow", "both", "heads", "memory", "streams"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {' '.join(measures)}; all by default")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tenth of the clients, to see that it works")
    options = parser.parse_args()
    if unknown := set(options.names) - set(measures):
        parser.error(f"no measure is called {' '.join(sorted(unknown))}")
    names, repeat = options.names or measures, options.repeat
    part, seconds = (10, 3) if options.small else (1, 12)
    raise_files()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    idle, slow, many = (10000 // part, b"", False), (1000 // part, BODY, True), "connections: 20000"
    fitting = (min(idle[0], files // 2 - slow[0] - 100), b"", False)  # beside the slow ones, where more files are not allowed
    runs = {
        "idle": lambda: beside("idle", many, [idle], repeat, seconds),
        "slow": lambda: beside("slow", many, [slow], repeat, 3 * seconds),  # a body may take half a minute
        "both": lambda: beside("both", many, [fitting, slow], repeat, seconds),
        "heads": lambda: beside("heads", f"connections: {1024 // part}", [(1100 // part, HEAD, True)], repeat, seconds),
        "memory": lambda: memory(repeat, part),
        "streams": lambda: streams(repeat, part, seconds),
    }
    return 0 if all([runs[name]() for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
