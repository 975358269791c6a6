#!/usr/bin/env python3
"""Kills the daemon in the middle of a redrive and of its undo: it goes on where it was, counts exactly, and gives back what was.

    tests/crash/redrive.py [--letters N] [--kills K]
"""
import argparse
import json
import random
import sys
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

DESTINATIONS = "  d: { transport: pull }\n"
COLUMNS = ("seq, state, priority, step, rank, generation, attempts, attempts_total, retry_count, step_count, redrives_auto,"
           " doubted, first_at, run_at, deadline, updated_at, dead_at, expires_at, last_class, last_code, last_error, dead_code,"
           " redrive, failed_at, look_failed_at")


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


def kill_and_start(daemon, kills, seed):
    chance = random.Random(seed)
    for _ in range(kills):
        time.sleep(chance.uniform(0, 0.05))
        daemon.kill()
        daemon.start()


def look(daemon, redrive):
    return daemon.call("GET", f"/v1/dead/redrives/{redrive}")[1]


def run(tap, daemon, letters, kills):
    tap.check(make_letters(daemon, letters), f"{letters} letters are dead", daemon.counts("d"))
    before = rows(daemon)
    status, begun = daemon.call("POST", "/v1/dead/redrives", {"all": True, "payload_patch": [
        {"op": "add", "path": "/corrected", "value": True}]} if letters <= 3000 else {"all": True})
    tap.check(status == 202 and begun["matched"] == letters, "a redrive of all begins", begun)
    kill_and_start(daemon, kills, 1)
    done = process.wait_until(lambda: look(daemon, begun["id"])["state"] == "done")
    found = look(daemon, begun["id"])
    tap.check(done and found["redriven"] == letters and found["left"] == 0 and found["skipped"] == 0,
              f"after {kills} kills all are sent back, and counted", json.dumps(found))
    tap.check(daemon.counts("d")["pending"] == letters and daemon.counts("d")["dead"] == 0, "and wait", daemon.counts("d"))
    leased = daemon.call("POST", "/v1/leases", {"destination": "d", "max": 5, "lease_s": 600})[1]["leases"]
    daemon.call("POST", "/v1/leases/ack", {"leases": [one["lease"] for one in leased]})
    delivered = {one["job"]["id"] if "job" in one else one["id"] for one in leased}
    status, _ = daemon.call("POST", f"/v1/dead/redrives/{begun['id']}/undo", {})
    kill_and_start(daemon, kills, 2)
    undone = process.wait_until(lambda: look(daemon, begun["id"])["state"] == "undone")
    found = look(daemon, begun["id"])
    tap.check(status == 200 and undone and found["undone"] == letters - 5 and found["delivered"] == 5 and
              found["under_way"] == 0, "after as many kills the rest is undone, and counted", json.dumps(found))
    tap.check(len(delivered) == 5, "five were delivered meanwhile", delivered)
    return before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--letters", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=3)
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
    finally:
        daemon.end()
        process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
