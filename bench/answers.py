#!/usr/bin/env python3
"""What answers that are costly to search cost the other destinations.

    bench/answers.py [--insist FILE] [--seconds N] [--repeat N]

One destination's answers are XML of 1 MB with 85,000 attributes in one element, which a parser takes minutes for, and it is
sent to all the time; another's are small. How long the other's jobs take from the call to the receiver, without and with the
costly ones in turns. It says what is asked, what was seen and whether that is met, and ends with 1 when it is not.
"""
import argparse
import os
import statistics
import sys
import time

from lib.daemon import TOP, Daemon, Pauses, call, quantile, tell
from lib.receiver import Receiver

READ = """error_code: ["xpath://*[local-name()='dCodRes']", http.status], success: ['app:0260'], in_doubt: resend, concurrency: 10,
    retry: {{ max_retries: 1000, base: 10ms, floor: 0s, cap: 20ms }}, response_max: 2MB, allow_private: true"""
SETTINGS = f"""destinations:
  costly: {{{{ url: 'http://127.0.0.1:{{costly}}/', {READ} }}}}
  other: {{{{ url: 'http://127.0.0.1:{{other}}/', {READ} }}}}
"""
COSTLY = ("<r " + " ".join(f"a{i}=''" for i in range(85000)) + "/>").encode()
GOOD = b"<r><dCodRes>0260</dCodRes></r>"
EVERY_S, COSTLY_JOBS = 0.01, 20000


def measure(program, seconds, costly_jobs):
    """The other destination's times in milliseconds, without those in which the machine stood still, and how many costly answers came."""
    costly, other = Receiver(lambda _: (0, COSTLY)), Receiver(lambda _: (0, GOOD))
    daemon = Daemon(program, SETTINGS.format(costly=costly.port, other=other.port))
    to, sent, pauses = daemon.connect(), {}, Pauses()
    if costly_jobs:
        call(to, "POST", "/v1/jobs/batch", b"\n".join(b'{"destination":"costly","payload":{"id":%d}}' % i for i in range(costly_jobs)))
        time.sleep(1)
    before, began = costly.count.value, time.monotonic()
    while time.monotonic() < began + seconds:
        sent[len(sent)] = at = time.monotonic()
        status, text = call(to, "POST", "/v1/jobs", b'{"destination":"other","payload":{"id":%d}}' % (len(sent) - 1))
        assert status < 300, (status, text)
        time.sleep(max(0, at + EVERY_S - time.monotonic()))
    answers = costly.count.value - before
    time.sleep(2)
    came, now, still = other.arrivals(), time.monotonic(), pauses.end()
    daemon.end()
    costly.end()
    other.end()
    times = [(came.get(i, now) - at) * 1000 for i, at in sent.items() if not pauses.hit(at, came.get(i, now))]
    if len(times) < len(sent):
        print(f"  {len(sent) - len(times)} of {len(sent)} jobs left out: {still}")
    return times, answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--insist", default=os.path.join(TOP, "build", "insist"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    without, along, answers = [], [], []
    for _ in range(options.repeat):
        without.append(quantile(measure(options.insist, options.seconds, 0)[0], 0.99))
        times, count = measure(options.insist, options.seconds, COSTLY_JOBS)
        along.append(quantile(times, 0.99))
        answers.append(count)
    print(f"  p99 {statistics.median(without):.2f} ms without costly answers")
    came = tell("answers: costly ones meanwhile", ("at least", 50), answers, "answers")
    return 0 if tell("answers: other destinations' p99 beside them", ("under", 100), along, "ms") and came else 1


if __name__ == "__main__":
    sys.exit(main())
