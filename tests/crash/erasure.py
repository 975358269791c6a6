#!/usr/bin/env python3
"""Kills the daemon in the middle of a person's erasure: it goes on, nothing of the person is left in the store's files, and the trail holds.

    tests/crash/erasure.py [--jobs N] [--kills K]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

DESTINATIONS = "  d: { transport: pull }\n"
WORD = "ana.unica@example.py"
STRANGER = "eva.ninguna@example.py"  # of whom there is nothing


def insist(daemon, *arguments):
    done = subprocess.run([process.INSIST, *arguments, "--server", f"http://127.0.0.1:{daemon.port}"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=process.WAIT_S)
    return done.returncode, done.stdout, done.stderr


def fill(daemon, count):
    """A third dies, a third is delivered, a third waits; every second tells of the person, every tenth is large."""
    deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    jobs = []
    for i in range(count):
        who = WORD if i % 2 else "nobody@example.py"
        job = {"destination": "d", "id": f"j{i}", "tenant": f"t{i % 3}", "metadata": {"patient": who},
               "payload": {"to": who, "text": "x" * (9000 if i % 10 < 2 else 10), "end": who}}
        if i % 3 == 0:
            job["deadline"] = deadline
        jobs.append(job)
    for first in range(0, count, 500):
        daemon.call("POST", "/v1/jobs/batch", jobs[first:first + 500])
    dead = process.wait_until(lambda: daemon.counts("d")["dead"] >= count // 3)
    taken = 0
    while taken < count // 3:
        leases = daemon.call("POST", "/v1/leases", {"destination": "d", "max": 100, "lease_s": 600})[1]["leases"]
        if not leases:
            break
        taken += len(leases)
        daemon.call("POST", "/v1/leases/ack", {"leases": [one["lease"] for one in leases]})
    return dead and taken > 0


def words(daemon, word=WORD):
    """How often the files have the word."""
    found = 0
    for end in ("", "-wal"):
        if os.path.exists(daemon.database + end):
            with open(daemon.database + end, "rb") as file:
                found += file.read().count(word.encode())
    return found


def run(tap, daemon, jobs, kills):
    chance = random.Random(3)
    tap.check(fill(daemon, jobs), "jobs of every kind", daemon.counts("d"))
    status, begun = daemon.call("POST", "/v1/dead/redrives", {"filter": {"tenant": "t0"}, "payload_patch": {"corrected": True}})
    done = process.wait_until(lambda: daemon.call("GET", f"/v1/dead/redrives/{begun['id']}")[1]["state"] == "done")
    tap.check(status == 202 and done, "some were sent back corrected, so that their payloads are there twice", begun)
    code, lines, err = insist(daemon, "subject", "history", WORD.upper())
    lines = [json.loads(line) for line in lines.splitlines()]
    found = [line["job"] for line in lines if "job" in line]
    tap.check(code == 0 and len(found) == jobs // 2 and all(WORD in json.dumps(job["payload"]) for job in found) and
              lines[-1]["found"]["jobs"] == jobs // 2, "all that is stored of the person is told", err + str(lines[-1:]))
    tap.check(words(daemon) > jobs / 2, "and is in the file", words(daemon))
    leased = daemon.call("POST", "/v1/leases", {"destination": "d", "max": 3, "lease_s": 600})[1]["leases"]
    status, erasure = daemon.call("DELETE", f"/v1/subjects/{WORD}")
    tap.check(status == 202, "an erasure begins", erasure)
    for _ in range(kills):
        time.sleep(chance.uniform(0, 0.05))
        daemon.kill()
        daemon.start()
    daemon.call("POST", "/v1/leases/ack", {"leases": [one["lease"] for one in leased]})
    path = f"/v1/erasures/{erasure['id']}"
    tap.check(process.wait_until(lambda: (daemon.call("GET", path)[1] or {}).get("state") == "done"),
              f"after {kills} kills it is done", daemon.call("GET", path))
    shown = daemon.call("GET", path)[1]
    tap.check(WORD not in json.dumps(shown) and shown["by"] == "loopback" and shown["not_reached"], "and does not say of whom", shown)
    tap.check(process.wait_until(lambda: words(daemon) == 0), "nothing of it is in the files while the daemon runs", words(daemon))
    code, out, err = insist(daemon, "subject", "history", WORD)
    tap.check(code == 0 and json.loads(out)["found"] == {"jobs": 0, "events": 0}, "nor told", out + err)
    code, out, err = insist(daemon, "subject", "erase", "nobody@example.py", "--yes", "--tenant", "t1")
    tap.check(code == 0 and "jobs erased" in out and "Not reached" in out, "the command erases, and says what it does not reach", out + err)
    code, out, err = insist(daemon, "subject", "erase", "nobody@example.py")
    tap.check(code == 2 and "--yes" in err, "where nobody can be asked it wants to be told", out + err)
    code, out, err = insist(daemon, "subject", "erase", STRANGER, "--yes")
    tap.check(code == 0 and process.wait_until(lambda: words(daemon, STRANGER) == 0), "nor does the order to erase say of whom, when it is done",
              f"{words(daemon, STRANGER)}\n{out}{err}")
    code, out, err = insist(daemon, "subject", "erasures")
    tap.check(code == 0 and out.count("done") == 3, "erasures are listed", out + err)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1200)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    tap = process.Tap()
    folder = process.scratch_folder()
    daemon = process.Daemon(folder, DESTINATIONS, "limits: { disk_free: 1MB }\n")
    try:
        daemon.start()
        run(tap, daemon, options.jobs, options.kills)
        tap.check(daemon.stop() == 0, "the daemon ends in order", daemon.said()[-1500:])
        tap.check(words(daemon) == 0, "nothing of it is in the files afterwards", words(daemon))
        verified = subprocess.run([process.INSIST, "audit", "verify", "-c", daemon.config], capture_output=True, text=True,
                                  timeout=process.WAIT_S)
        tap.check(verified.returncode == 0 and "was erased" in verified.stdout, "the trail holds", verified.stdout + verified.stderr)
        process.check_database(tap, daemon.database).close()
    finally:
        daemon.end()
        process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
