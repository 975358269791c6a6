#!/usr/bin/env python3
"""Kills the daemon in the middle of a redrive and of its undo: it goes on where it was, counts exactly, and gives back what was.

    tests/crash/redrive.py [--letters N] [--kills K] [--speed]

With --speed it is then done once more without a kill, beside somebody who adds jobs: how many letters go back in a second of the
daemon's processor time and of the clock, and how long the other waits with and without it.
"""
import argparse
import json
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

DESTINATIONS = "  d: { transport: pull }\n  e: { transport: pull }\n"
COLUMNS = ("seq, state, priority, step, rank, generation, attempts, attempts_total, retry_count, step_count, redrives_auto,"
           " doubted, first_at, run_at, deadline, updated_at, dead_at, expires_at, last_class, last_code, last_error, dead_code,"
           " redrive, failed_at, look_failed_at")


MIDDLE_LETTERS = 10000  # fewer may be done before anybody can look
TARGET = 20000          # letters in a second


def make_letters(daemon, count):
    """Jobs whose time is over before anybody takes them."""
    for first in range(0, count, 1000):
        deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
        jobs = [{"destination": "d", "id": f"j{i}", "tenant": f"t{i % 7}", "deadline": deadline, "payload": {"n": i}}
                for i in range(first, min(first + 1000, count))]
        daemon.call("POST", "/v1/jobs/batch", jobs)
    return process.wait_until(lambda: daemon.counts("d")["dead"] == count)


def rows(daemon):
    database = process.open_database(daemon.database)
    found = database.execute(f"SELECT {COLUMNS} FROM job ORDER BY seq").fetchall()
    bodies = database.execute("SELECT seq, body FROM payload ORDER BY seq").fetchall()
    database.close()
    return found, bodies


def kill_and_start(daemon, redrive, count, letters, kills):
    """Each after a further part of it is done; how many of them came before its end."""
    early = 0
    for kill in range(kills):
        process.wait_until(lambda: (look(daemon, redrive) or {}).get(count, 0) > letters * kill // (kills + 1), every=0.002)
        early += look(daemon, redrive)[count] < letters
        daemon.kill()
        daemon.start()
    return early


def look(daemon, redrive):
    return daemon.call("GET", f"/v1/dead/redrives/{redrive}")[1]


def run(tap, daemon, letters, kills):
    tap.check(make_letters(daemon, letters), f"{letters} letters are dead", daemon.counts("d"))
    before = rows(daemon)
    status, begun = daemon.call("POST", "/v1/dead/redrives", {"all": True, "payload_patch": [
        {"op": "add", "path": "/corrected", "value": True}]} if letters <= 3000 else {"all": True})
    tap.check(status == 202 and begun["matched"] == letters, "a redrive of all begins", begun)
    early = kill_and_start(daemon, begun["id"], "redriven", letters, kills)
    done = process.wait_until(lambda: look(daemon, begun["id"])["state"] == "done")
    found = look(daemon, begun["id"])
    tap.check(early > 0 or letters < MIDDLE_LETTERS, "it was killed in the middle", early)
    tap.check(done and found["redriven"] == letters and found["left"] == 0 and found["skipped"] == 0,
              f"after {kills} kills all are sent back, and counted", json.dumps(found))
    tap.check(daemon.counts("d")["pending"] == letters and daemon.counts("d")["dead"] == 0, "and wait", daemon.counts("d"))
    leased = daemon.call("POST", "/v1/leases", {"destination": "d", "max": 5, "lease_s": 600})[1]["leases"]
    daemon.call("POST", "/v1/leases/ack", {"leases": [one["lease"] for one in leased]})
    delivered = {one["job"]["id"] if "job" in one else one["id"] for one in leased}
    status, _ = daemon.call("POST", f"/v1/dead/redrives/{begun['id']}/undo", {})
    early = kill_and_start(daemon, begun["id"], "undone", letters - 5, kills)
    tap.check(early > 0 or letters < MIDDLE_LETTERS, "it was killed in the middle", early)
    undone = process.wait_until(lambda: look(daemon, begun["id"])["state"] == "undone")
    found = look(daemon, begun["id"])
    tap.check(status == 200 and undone and found["undone"] == letters - 5 and found["delivered"] == 5 and
              found["under_way"] == 0, "after as many kills the rest is undone, and counted", json.dumps(found))
    tap.check(len(delivered) == 5, "five were delivered meanwhile", delivered)
    return before


class Other(threading.Thread):
    """Adds jobs elsewhere, and notes how long each took."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.target, self.ended, self.waits = daemon, threading.Event(), []

    def run(self):
        while not self.ended.is_set():
            began = time.monotonic()
            if self.target.call("POST", "/v1/jobs", {"destination": "e", "payload": "x"})[0] == 201:
                self.waits.append((began, time.monotonic() - began))
            time.sleep(0.002)

    def told(self, since, until):
        waits = sorted(took for began, took in self.waits if since <= began < until)
        return "nobody" if not waits else \
            f"p50 {waits[len(waits) // 2] * 1000:.1f} ms, p99 {waits[len(waits) * 99 // 100] * 1000:.1f} ms of {len(waits)}"


def processor_s(daemon):
    fields = open(f"/proc/{daemon.process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(daemon, condition):
    """Seconds by the clock and by the processor."""
    began, before = time.monotonic(), processor_s(daemon)
    done = process.wait_until(condition, every=0.05)
    return done, time.monotonic() - began, processor_s(daemon) - before


def speed(tap, daemon):
    letters = daemon.counts("d")["dead"]
    other = Other(daemon)
    other.start()
    time.sleep(2)
    counted = time.monotonic()
    begun = daemon.call("POST", "/v1/dead/redrives", {"filter": {"destination": "d"}})[1]
    began = time.monotonic()
    done, took, worked = timed(daemon, lambda: look(daemon, begun["id"])["state"] == "done")
    ended = time.monotonic()
    daemon.call("POST", f"/v1/dead/redrives/{begun['id']}/undo", {})
    undone, undo_took, undo_worked = timed(daemon, lambda: look(daemon, begun["id"])["state"] == "undone")
    other.ended.set()
    other.join()
    process.note(f"{letters} letters are counted in {began - counted:.2f} s, sent back in {took:.2f} s ({letters / took:.0f} a second;"
                 f" {worked:.2f} s of processor time), undone in {undo_took:.2f} s ({letters / undo_took:.0f} a second)")
    process.note(f"an enqueue waits before {other.told(0, counted)}; beside the redrive {other.told(began, ended)}")
    tap.check(done and undone and daemon.counts("d")["dead"] == letters, "once more without a kill", daemon.counts("d"))
    tap.check(letters / worked >= TARGET and letters / undo_worked >= TARGET,
              f"{TARGET} a second of processor time go back, and as many are undone", f"{letters / worked:.0f} {letters / undo_worked:.0f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--letters", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    tap = process.Tap()
    folder = process.scratch_folder()
    daemon = process.Daemon(folder, DESTINATIONS, "limits: { disk_free: 1MB }\n")
    try:
        daemon.start()
        before = run(tap, daemon, options.letters, options.kills)
        tap.check(daemon.stop() == 0, "the daemon ends in order", daemon.said()[-1500:])
        after = rows(daemon)
        same = len(set(before[0]) & set(after[0]))
        tap.check(same == options.letters - 5, "each is the letter that it was, in every column",
                  f"{same} of {options.letters}: {[pair for pair in zip(before[0], after[0]) if pair[0] != pair[1]][:3]}")
        tap.check(len(set(before[1]) & set(after[1])) >= options.letters - 5, "and has the payload that it had")
        process.check_database(tap, daemon.database).close()
        if options.speed:
            tap.check(daemon.start(), "it starts again")
            speed(tap, daemon)
    finally:
        daemon.end()
        process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
