#!/usr/bin/env python3
"""Kills the daemon again and again under load, then asks whether it kept its word.

    tests/crash/crash.py [--rounds N] [--seed N] [--keep]

Every job that was acknowledged must end, once; what was sent twice must have been under way at a kill; the store must be
whole. The receiver answers some with 503 (again later) and some with 422 (never).
"""
import argparse
import collections
import hashlib
import http.client
import json
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

SUBMITTERS = 3
TENANTS = 4
CONCURRENCY = 16
PAUSE_S = 0.006       # between two jobs of a submitter
UP_S = (0.02, 0.45)   # how long a daemon lives
DRAIN_S = 180
SLACK_MS = 3          # of two clocks' readings

DESTINATION = """\
  d:
    url: http://127.0.0.1:{port}/
    allow_private: true
    in_doubt: resend
    timeout: 20s
    concurrency: {concurrency}
    retry: {{ max_retries: 40, base: 50ms, factor: 1, floor: 0s, cap: 1s, jitter: 0.5 }}
    errors: {{ permanent: ["422"], transient: ["503"] }}
"""


def fate(key, attempt):
    """What the receiver says: the same for the same question, in every run."""
    dice = hashlib.sha256(f"{key} {attempt}".encode()).digest()
    if hashlib.sha256(key.encode()).digest()[0] < 6:
        return 422, 0
    seconds = 0.08 if dice[1] < 40 else 0
    return (503 if dice[0] < 50 else 200), seconds


class Submitter(threading.Thread):
    """Adds jobs one after the other; one that was not acknowledged is tried again under the same id."""

    def __init__(self, port, who, stop):
        super().__init__(daemon=True)
        self.port, self.who, self.stop = port, who, stop
        self.acknowledged = []
        self.again = 0     # acknowledged as known already: an answer was lost in a kill
        self.strange = []  # answers that are neither

    def post(self, connection, job, tenant):
        connection.request("POST", "/v1/jobs", json.dumps({"destination": "d", "id": job, "tenant": tenant, "payload": job}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status in (200, 201):
            self.acknowledged.append((tenant, job))
            self.again += answer.status == 200
            return True
        if answer.status not in (429, 503):
            self.strange.append((answer.status, body[:200]))
            return True
        return False

    def run(self):
        connection = None
        count = 0
        while not self.stop.is_set():
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                if self.post(connection, f"j{self.who}-{count}", f"t{count % TENANTS}"):
                    count += 1
                time.sleep(PAUSE_S)
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = None
                time.sleep(0.01)


def one_life(daemon, dice, kills):
    """Starts it, lets it live for a while, kills it. A third dies before it is ready."""
    if dice.random() < 0.33:
        daemon.start(wait=False)
        time.sleep(dice.uniform(0, 0.08))
    else:
        if not daemon.start():
            return False
        time.sleep(dice.uniform(*UP_S))
    before = process.now_ms()
    daemon.kill()
    kills.append((before, process.now_ms()))
    return True


def live(daemon, dice, rounds, submitters):
    """Returns the times of the kills, and how many rounds it could be started in."""
    kills = []
    for submitter in submitters:
        submitter.start()
    for done in range(rounds):
        if not one_life(daemon, dice, kills):
            return kills, done
        if done % 500 == 499:
            process.note(f"{done + 1} rounds")
    return kills, rounds


def events_of_jobs(database):
    """(tenant, id) to its events in order: (type, state, attempt, at)."""
    events = collections.defaultdict(list)
    for tenant, job, kind, state, attempt, at in database.execute(
            "SELECT l.tenant, v.job, v.type, v.state, v.attempt, v.at FROM event v JOIN lane l ON l.id = v.lane"
            " WHERE v.job IS NOT NULL AND v.job <> '' ORDER BY v.number"):
        events[tenant, job].append((kind, state, attempt, at))
    return events


def outcome_of(events, attempt):
    """When the attempt was claimed, when it was settled, and in which state that left the job."""
    for i, (kind, _, number, at) in enumerate(events):
        if kind == process.EVENT_CLAIMED and number == attempt:
            return (at, events[i + 1][3], events[i + 1][1]) if i + 1 < len(events) else (at, None, None)
    return None


def check_ends(tap, acknowledged, events, states):
    """S2-012: nothing is lost, and nothing ends twice."""
    final = (process.STATE_COMPLETED, process.STATE_DEAD)
    lost = [name for name in acknowledged if name not in states]
    tap.check(not lost, f"all {len(acknowledged)} acknowledged jobs are there", lost[:10])
    open_ = [name for name in acknowledged if name in states and states[name] not in final]
    tap.check(not open_, "each is completed or dead", [(name, states[name]) for name in open_[:10]])
    ends = {name: sum(state in final for _, state, _, _ in trail) for name, trail in events.items()}
    twice = [name for name in states if ends.get(name) != 1]
    tap.check(not twice, "each ended once", [(name, ends.get(name)) for name in twice[:10]])


def check_requests(tap, requests, kills, events, states, under_way):
    seen = collections.Counter((key, attempt) for key, attempt, _, _ in requests)
    repeated = [what for what, count in seen.items() if count > 1]
    tap.check(not repeated, "no attempt was made twice", repeated[:10])

    delivered = collections.Counter()
    strangers, forgotten = [], []
    for key, attempt, status, _ in requests:
        name = tuple(key.split("/", 1))
        outcome = outcome_of(events.get(name, []), attempt)
        if outcome is None:
            strangers.append((key, attempt))
            continue
        if status != 200:
            continue
        delivered[name] += 1
        claimed, settled, state = outcome
        killed = any(claimed - SLACK_MS <= after and (settled is None or before <= settled + SLACK_MS) for before, after in kills)
        if state != process.STATE_COMPLETED and not killed:
            forgotten.append((key, attempt, state))
    tap.check(not strangers, "every request was written down before it was made", strangers[:10])
    tap.check(not forgotten, "a delivery is only forgotten by a kill", forgotten[:10])
    unfounded = [name for name, state in states.items() if state == process.STATE_COMPLETED and not delivered[name]]
    tap.check(not unfounded, "what is completed was delivered", unfounded[:10])
    again = sum(count - 1 for count in delivered.values() if count > 1)
    tap.check(again <= under_way, "no more deliveries twice than were under way at kills", again)
    process.note(f"{len(requests)} requests, {sum(delivered.values())} deliveries, {again} of them again after a kill")


def judge(tap, daemon, receiver, submitters, kills):
    acknowledged = [name for submitter in submitters for name in submitter.acknowledged]
    strange = [answer for submitter in submitters for answer in submitter.strange]
    tap.check(not strange, "no request got a strange answer", strange[:5])
    if not tap.check(daemon.start(), "it starts once more", daemon.said()[-2000:]):
        return
    tap.check(daemon.drained(["d"], DRAIN_S), "it works off what is left", daemon.counts("d"))
    counts = daemon.counts("d")
    code = daemon.stop()
    tap.check(code == 0, "it stops in order", f"exit code {code}\n{daemon.said()[-2000:]}")
    tap.check("Sanitizer" not in daemon.said(), "no sanitizer has complained", daemon.said()[-3000:])
    database = process.check_database(tap, daemon.database)
    states = {(tenant, job): state for tenant, job, state in
              database.execute("SELECT l.tenant, j.id, j.state FROM job_now j JOIN lane l ON l.id = j.lane")}
    events = events_of_jobs(database)
    dead = sum(state == process.STATE_DEAD for state in states.values())
    tap.check(counts and counts["dead"] == dead, "the API counts the same dead", counts)
    check_ends(tap, acknowledged, events, states)
    check_requests(tap, receiver.seen(), kills, events, states, len(kills) * CONCURRENCY)
    database.close()
    process.note(f"{len(kills)} kills, {len(acknowledged)} jobs acknowledged, {sum(s.again for s in submitters)} at the second try,"
                 f" {dead} dead")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("CRASH_ROUNDS", 200)))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="leave the files behind")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    process.note(f"--seed {seed} --rounds {options.rounds}")
    tap = process.Tap()
    folder = process.scratch_folder()
    receiver = process.Receiver(fate)
    daemon = process.Daemon(folder, DESTINATION.format(port=receiver.port, concurrency=CONCURRENCY),
                            more="limits: { disk_free: 1MB }\n")
    stop = threading.Event()
    submitters = [Submitter(daemon.port, who, stop) for who in range(SUBMITTERS)]
    try:
        kills, done = live(daemon, random.Random(seed), options.rounds, submitters)
        stop.set()
        for submitter in submitters:
            submitter.join()
        tap.check(done == options.rounds, f"it starts after each of {options.rounds} kills", daemon.said()[-3000:])
        judge(tap, daemon, receiver, submitters, kills)
    finally:
        stop.set()
        daemon.end()
        receiver.close()
        process.clear(tap, folder, options.keep)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
