#!/usr/bin/env python3
"""Measures on real sockets how soon the good jobs are delivered when a destination returns, with bad ones in front.

    bench/outage.py [--insist FILE] [--jobs N] [--bad SHARE] [--check S] [--repeat N]

The destination answers 503 for a while, then 200, but 500 to the bad jobs for ever: 30 % of all, and the oldest. Seen is when
nine of ten good ones are there, in intervals between looks (`contingency.check`) since the return, and how often a bad one was
sent after it. Less than ten seconds between looks says little: none follows another within a second. Ratios only; it ends
with 1 when something is not met.
"""
import argparse
import http.server
import json
import os
import sys
import threading
import time

from lib.daemon import TOP, Daemon, call, tell

RETRIES = 3
SETTINGS = """destinations:
  d: {{ url: 'http://127.0.0.1:{port}/', allow_private: true, timeout: 10s, concurrency: 20,
       retry: {{ base: 1s, floor: 1s, cap: 1s, max_retries: {retries} }}, success: [2xx],
       contingency: {{ ramp: [5, 10, 20], stable: 1h, check: {check}s, activate_on_single_event: true }} }}
"""


class Destination(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.lock, self.back_at, self.done, self.bad = threading.Lock(), None, {}, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def status_of(self, job):
        with self.lock:
            if self.back_at is None:
                return 503
            if job["bad"]:
                self.bad[job["id"]] = self.bad.get(job["id"], 0) + 1
                return 500
            self.done.setdefault(job["id"], time.monotonic() - self.back_at)
            return 200


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.status_of(job))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def measure(options):
    """In intervals between looks: when nine of ten good ones had been delivered; and the most sends of a bad one."""
    destination = Destination()
    daemon = Daemon(options.insist, SETTINGS.format(port=destination.server_address[1], check=options.check, retries=RETRIES))
    bad = int(options.jobs * options.bad)
    jobs = [{"destination": "d", "tenant": f"t{i % 5}", "id": f"j{i}", "payload": {"id": f"j{i}", "bad": i < bad}}
            for i in range(options.jobs)]
    with daemon.connect() as to:
        status, text = call(to, "POST", "/v1/jobs/batch", "\n".join(json.dumps(one) for one in jobs).encode())
        assert status < 300, (status, text)
    time.sleep(2.5 * options.check)
    with destination.lock:
        destination.back_at = time.monotonic()
    good, until = options.jobs - bad, time.monotonic() + 60 * options.check
    while len(destination.done) < good and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(2 * options.check)
    times = sorted(destination.done.values()) + [float("inf")] * (good - len(destination.done))
    daemon.end()
    destination.shutdown()
    return times[good * 9 // 10] / options.check, max(destination.bad.values(), default=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--insist", default=os.path.join(TOP, "build", "insist"))
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--bad", type=float, default=0.3)
    parser.add_argument("--check", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    seen = [measure(options) for _ in range(options.repeat)]
    # Two looks, and goes of 5, 10, 20, 20... jobs, a second each.
    goes = 3 + max(0, options.jobs - 35) / 20
    met = tell("nine of ten good ones are delivered", ("at most", 2 + (goes + 1) / options.check), [one[0] for one in seen], "looks")
    met = tell("a bad one is sent after the return", ("at most", RETRIES + 2), [one[1] for one in seen], "times") and met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
