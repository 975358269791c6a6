#!/usr/bin/env python3
"""Moves a store from a file to PostgreSQL and back with the command, each time interrupted and resumed, and asks the daemon for all of it.

    tests/cases/migrate.py [--jobs N]
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
import postgres  # noqa: E402
import process  # noqa: E402

DESTINATIONS = "  work: { transport: pull }\n  letters: { transport: pull }\n  ordered: { transport: pull }\n"
LETTERS, LEASED, KEYED = 30, 20, 6


def pages(daemon, path, member):
    """All of a list, whatever a page holds."""
    found, cursor = [], ""
    for _ in range(1000):
        status, body = daemon.call("GET", f"{path}{'&' if '?' in path else '?'}limit=500{cursor and '&cursor=' + cursor}")
        assert status == 200, body
        found += body[member]
        cursor = body["next"] or ""
        if not cursor:
            return found
    return found


def lease(daemon, destination, count):
    leases, until = [], time.monotonic() + 60
    while len(leases) < count and time.monotonic() < until:
        body = daemon.call("POST", "/v1/leases", {"destination": destination, "max": count - len(leases), "lease_s": 3600})[1]
        leases += body["leases"]
    return leases


def fill(tap, daemon, count):
    """Jobs in every state that a pull worker can bring them to, behind others of their key, dead, and on their way back."""
    deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    letters = [{"destination": "letters", "id": f"l{i}", "tenant": f"t{i % 3}", "deadline": deadline, "payload": {"n": i}}
               for i in range(LETTERS)]
    ordered = [{"destination": "ordered", "id": f"o{i}", "tenant": "t", "key": "one", "payload": {"n": i}} for i in range(KEYED)]
    work = [{"destination": "work", "tenant": f"t{i % 7}", "payload": {"n": i}, "metadata": {"i": str(i)}} for i in range(count)]
    for jobs in (letters + ordered, *(work[at:at + 1000] for at in range(0, count, 1000))):
        status, body = daemon.call("POST", "/v1/jobs/batch", jobs)
        tap.check(status == 200 and body["accepted"] == len(jobs), f"{len(jobs)} jobs are taken", body)
    tap.check(process.wait_until(lambda: daemon.counts("letters")["dead"] == LETTERS), "some are dead", daemon.counts("letters"))
    done = lease(daemon, "work", LEASED)
    daemon.call("POST", "/v1/leases/ack", {"leases": [one["lease"] for one in done]})
    for one in lease(daemon, "work", 3):
        status, body = daemon.call("POST", "/v1/leases/nack", {"lease": one["lease"], "error": "TIMEOUT: not now", "retry_after": 3600})
        tap.check(status == 200, "one waits", body)
    held = lease(daemon, "work", LEASED) + lease(daemon, "ordered", 1)
    before = pages(daemon, "/v1/dead", "dead")
    status, redrive = daemon.call("POST", "/v1/dead/redrives", {"all": True})
    tap.check(status == 202, "all letters go back", redrive)
    sent = process.wait_until(lambda: daemon.call("GET", f"/v1/dead/redrives/{redrive['id']}")[1]["state"] == "done")
    tap.check(sent, "they are under way", daemon.call("GET", f"/v1/dead/redrives/{redrive['id']}"))
    return before, held, redrive["id"]


def look(daemon):
    """What the daemon says of all that it has."""
    jobs = pages(daemon, "/v1/jobs", "jobs")
    history = {name: daemon.call("GET", f"/v1/jobs/{name}?tenant={tenant}") for name, tenant in (("l0", "t0"), ("o0", "t"), ("o1", "t"))}
    return {"jobs": jobs, "dead": pages(daemon, "/v1/dead", "dead"), "history": history,
            "redrives": daemon.call("GET", "/v1/dead/redrives")[1]}


def interrupted(tap, origin, target, config):
    """Killed when some of the jobs are there; nobody starts on that half; then run again."""
    command = [process.INSIST, "migrate", "--from", origin, "--to", target, "-c", config, "-o", "json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = ""
    for line in child.stderr:
        said += line
        if line.rstrip().endswith(" jobs moved"):
            break
    child.send_signal(signal.SIGKILL)
    child.communicate()
    tap.check(child.returncode == -signal.SIGKILL, "a move is killed in the middle", f"{child.returncode}\n{said}")
    serve = subprocess.run([process.INSIST, "serve", "-c", config], capture_output=True, text=True)
    tap.check(serve.returncode != 0 and "insist migrate" in serve.stderr + serve.stdout, "no daemon starts on a half",
              f"{serve.returncode}\n{serve.stdout}{serve.stderr}")
    done = subprocess.run(command, capture_output=True, text=True)
    result = json.loads(done.stdout) if done.returncode == 0 else {}
    tap.check(result.get("resumed") and result.get("trail_valid"), "the same command goes on and ends it", done.stdout + done.stderr)
    again = subprocess.run(command, capture_output=True, text=True)
    tap.check(again.returncode == 0 and json.loads(again.stdout) == result, "a third says the same: all of it is there",
              again.stdout + again.stderr)
    told = subprocess.run(command[:-2], capture_output=True, text=True)
    tap.check(told.returncode == 0 and "had been moved before" in told.stdout, "and that nothing was to do", told.stdout + told.stderr)
    verify = subprocess.run([process.INSIST, "audit", "verify", "-c", config, "--expect", result.get("head", "")],
                            capture_output=True, text=True)
    tap.check(verify.returncode == 0, "the trail holds, up to the head that was told", verify.stdout + verify.stderr)


def differing(before, after):
    return "\n".join(f"{name}: {str([pair for pair in zip(before[name], after[name]) if pair[0] != pair[1]][:2])[:1500]}"
                     if isinstance(before[name], list) else f"{name}: {before[name]} {after[name]}"
                     for name in before if before[name] != after[name])


def start_on(tap, daemon, store, before, name):
    daemon.store = store
    daemon.write_config(DESTINATIONS)
    tap.check(daemon.start(), f"the daemon starts on {name}", daemon.said()[-2000:])
    after = look(daemon)
    tap.check(after == before, f"{name} has all {len(before['jobs'])} jobs, histories and redrives as they were", differing(before, after))
    return after


def run(tap, daemon, server, count):
    tap.check(daemon.start(), "the daemon starts", daemon.said())
    letters, held, redrive = fill(tap, daemon, count)
    before = look(daemon)
    tap.check(daemon.stop() == 0, "and stops", daemon.said()[-2000:])
    first, second, third = daemon.store, server.address(), f"sqlite:{os.path.join(daemon.folder, 'back', 'insist.db')}"
    os.makedirs(os.path.join(daemon.folder, "back"))
    daemon.store = second
    daemon.write_config(DESTINATIONS)
    interrupted(tap, first, second, daemon.config)
    start_on(tap, daemon, second, before, "PostgreSQL")
    status, body = daemon.call("POST", "/v1/leases/ack", {"leases": [one["lease"] for one in held[:5]]})
    tap.check(status == 200, "a worker ends what it had taken before", body)
    before = look(daemon)
    tap.check(daemon.stop() == 0, "it stops", daemon.said()[-2000:])
    used = subprocess.run([process.INSIST, "migrate", "--from", first, "--to", second, "-c", daemon.config], capture_output=True, text=True)
    tap.check(used.returncode == 1 and "is not empty" in used.stderr, "where a daemon has worked nothing is moved to", used.stdout + used.stderr)
    daemon.store = third
    daemon.write_config(DESTINATIONS)
    interrupted(tap, second, third, daemon.config)
    start_on(tap, daemon, third, before, "the file")
    status, body = daemon.call("POST", "/v1/leases/ack", {"leases": [one["lease"] for one in held[5:]]})
    tap.check(status == 200, "and the rest of it", body)
    tap.check(process.wait_until(lambda: lease(daemon, "ordered", 1)[0]["id"] == "o1"), "what was behind it follows")
    daemon.call("POST", f"/v1/dead/redrives/{redrive}/undo", {})
    undone = process.wait_until(lambda: daemon.call("GET", f"/v1/dead/redrives/{redrive}")[1]["state"] == "undone")
    tap.check(undone, "a redrive is undone two stores later", daemon.call("GET", f"/v1/dead/redrives/{redrive}"))
    after = pages(daemon, "/v1/dead", "dead")
    tap.check(after == letters, "and each letter is what it was", differing({"dead": letters}, {"dead": after}))
    tap.check(daemon.stop() == 0, "it stops in order", daemon.said()[-2000:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2500)
    options = parser.parse_args()
    tap = process.Tap()
    programs = process.postgres_programs(tap, "a store moves")
    if not programs:
        return tap.end()
    folder = process.scratch_folder()
    server = postgres.Server(programs)
    daemon = process.Daemon(folder, DESTINATIONS)
    try:
        tap.check(server.start(), "PostgreSQL starts")
        run(tap, daemon, server, options.jobs)
    finally:
        daemon.end()
        server.end()
        process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
