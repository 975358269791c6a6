#!/usr/bin/env python3
"""What may happen around a running daemon: signals at its start, files that are cut, moved or emptied.

    tests/crash/faults.py
"""
import atexit
import glob
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

PULL = "  d: { transport: pull }\n  e: { transport: pull }\n"
STARTS = 12


def new_daemon(folder, name, destinations=PULL, more=""):
    place = os.path.join(folder, name)
    os.mkdir(place)
    daemon = process.Daemon(place, destinations, more)
    atexit.register(daemon.end)  # whatever ends this script
    return daemon


def mask(pid, name):
    try:
        with open(f"/proc/{pid}/status") as status:
            return int(re.search(rf"^{name}:\s*([0-9a-f]+)", status.read(), re.M).group(1), 16)
    except (OSError, AttributeError):
        return 0


def hangups(tap, folder):
    """From the program's first instruction on, SIGHUP reads the file and ends nothing."""
    daemon = new_daemon(folder, "hangups")
    hangup = 1 << (signal.SIGHUP - 1)
    alive = held = reloaded = 0
    for round_ in range(STARTS):
        daemon.start(wait=False)
        pid = daemon.process.pid
        held += process.wait_until(lambda: mask(pid, "SigBlk") & hangup or mask(pid, "SigCgt") & hangup or
                                   daemon.process.poll() is not None, every=0) and daemon.process.poll() is None
        generator = random.Random(round_)
        for _ in range(5):
            if daemon.process.poll() is None:
                os.kill(pid, signal.SIGHUP)
            time.sleep(generator.random() * 0.004)
        alive += daemon.ready()
        reloaded += process.wait_until(lambda: daemon.said().count('"reloaded"') > round_)
        daemon.stop()
    tap.check(held == STARTS, "SIGHUP is held from the start", held)
    tap.check(alive == STARTS, f"{STARTS} starts outlive SIGHUPs on their way", alive)
    tap.check(reloaded == STARTS, "and heed them when they are up", reloaded)


def early_hangup(tap, folder):
    """While it reads its file for the first time, which a pipe makes last: it has no handler yet."""
    daemon = new_daemon(folder, "early")
    with open(daemon.config, "rb") as config:
        text = config.read()
    os.remove(daemon.config)
    os.mkfifo(daemon.config)

    def reader_came():
        try:
            return os.open(daemon.config, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None
    daemon.start(wait=False)
    opened = []
    process.wait_until(lambda: opened.append(reader_came()) or opened[-1] is not None or daemon.process.poll() is not None)
    if opened[-1] is not None:
        daemon.signal(signal.SIGHUP)
        os.write(opened[-1], text)
        os.remove(daemon.config)
        with open(daemon.config, "wb") as config:
            config.write(text)
        os.close(opened[-1])
    tap.check(opened[-1] is not None and daemon.ready(), "a SIGHUP before there is a handler ends nothing", daemon.process.poll())
    tap.check(process.wait_until(lambda: '"reloaded"' in daemon.said()), "and is heeded", daemon.said()[-300:])
    daemon.stop()


def empty_files(tap, folder):
    daemon = new_daemon(folder, "empty")
    for name, text in (("empty", ""), ("of comments", "# nothing yet\n---\n")):
        with open(daemon.config, "w") as out:
            out.write(text)
        ended = subprocess.run([process.INSIST, "serve", "--init", "-c", daemon.config], capture_output=True, text=True)
        tap.check(ended.returncode == 2 and "is empty" in ended.stderr, f"a file {name} is refused", ended)
    daemon.write_config(PULL)
    daemon.start()
    for name, text, reason in (("an empty file", "", "is empty"),
                               ("a file without destinations", f"listen: 127.0.0.1:{daemon.port}\n", "names no destination")):
        before = daemon.said().count('"not_reloaded"')
        with open(daemon.config, "w") as out:
            out.write(text)
        daemon.signal(signal.SIGHUP)
        told = process.wait_until(lambda: daemon.said().count('"not_reloaded"') > before)
        status, _ = daemon.add("d", f"job-{before}")
        tap.check(told and reason in daemon.said().splitlines()[-1] and status == 201, f"a reload by {name} changes nothing",
                  daemon.said()[-600:])
    daemon.write_config("  d: { transport: pull }\n")
    daemon.signal(signal.SIGHUP)
    tap.check(process.wait_until(lambda: '"reloaded"' in daemon.said()) and daemon.add("e", "x")[0] == 422,
              "one that drops some is taken")
    daemon.stop()


def places(tap, folder):
    """A mistyped path starts no empty store."""
    daemon = new_daemon(folder, "places")
    def serve(*options):
        return subprocess.run([process.INSIST, "serve", *options, "-c", daemon.config], capture_output=True, text=True)
    ended = serve()
    tap.check(ended.returncode == 2 and "--init" in ended.stderr and not os.path.exists(daemon.database),
              "no store in a folder with other files", ended)
    daemon.start()
    daemon.add("d", "kept")
    daemon.stop()
    with open(daemon.database, "w"):
        pass
    ended = serve("--init")
    tap.check(ended.returncode == 2 and "the file is empty" in ended.stderr, "a store of no bytes is no new store", ended)


def log_removed(tap, folder, name, harm, kept):
    """After it nothing is acknowledged, and what was, is there: but for a log whose bytes are gone."""
    daemon = new_daemon(folder, "log-" + name)
    daemon.start()
    acknowledged = 0
    while acknowledged < 60:
        acknowledged += daemon.add("d", f"job-{acknowledged}")[0] == 201
    harm(daemon.database + "-wal")
    taken = [job for job in range(60, 90) if daemon.add("d", f"job-{job}")[0] in (200, 201)]
    tap.check(not taken, f"log {name}: nothing is acknowledged afterwards", taken)
    code = daemon.process.wait(process.WAIT_S)
    said = [json.loads(line) for line in daemon.said().splitlines() if '"store_failed"' in line]
    tap.check(code == 1 and said and "-wal was " in said[0]["error"], f"log {name}: it says so and ends", daemon.said()[-800:])
    if kept:
        daemon.start()
        found = daemon.counts("d")
        tap.check(found and found["pending"] == 60, f"log {name}: all that was acknowledged is there", found)
        daemon.stop()
        process.check_database(tap, daemon.database).close()


def damaged(tap, folder):
    """A page that cannot be read is told to who asked, and to the log."""
    daemon = new_daemon(folder, "damaged")
    daemon.start()
    for job in range(300):
        daemon.add("d", f"job-{job}", payload="x" * 2000)
    daemon.stop()
    with sqlite3.connect(daemon.database) as database:
        roots = [row[0] for row in database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'payload'")]
    database.close()
    with open(daemon.database, "r+b") as file:
        file.seek((roots[0] - 1) * 4096)
        file.write(b"\xff" * 4096)
    daemon.start()
    status, body = daemon.call("GET", "/v1/jobs/job-7?tenant=t&payload=true")
    tap.check(status == 503 and "damaged" in body["detail"], "a damaged page is told to who asks", (status, body))
    tap.check(process.wait_until(lambda: '"store_damaged"' in daemon.said()), "and to the log", daemon.said()[-500:])
    def alerts():
        return [alert["alert"] for alert in daemon.call("GET", "/v1/alerts")[1]["alerts"]]
    tap.check(process.wait_until(lambda: "store_damaged" in alerts()), "and it is an alert", alerts())
    daemon.end()


def changed(tap, folder):
    """A payload that was changed while nobody looked is sent to nobody; with the right one it goes."""
    receiver = process.Receiver(lambda key, attempt: (200, 0))
    push = f"  p: {{ url: 'http://127.0.0.1:{receiver.port}/', allow_private: true }}\n"
    away = f"  p: {{ url: 'http://127.0.0.1:{process.free_port()}/', allow_private: true, retry: {{ base: 1h, cap: 1h }} }}\n"
    daemon = new_daemon(folder, "changed", PULL + away)
    daemon.start()
    daemon.call("POST", "/v1/destinations/d/pause", {})
    for job in ("good", "bad"):
        daemon.add("d", "pull-" + job)
        daemon.add("p", "push-" + job)
    tried = process.wait_until(lambda: (daemon.counts("p") or {}).get("waiting") == 2)
    daemon.stop()
    with sqlite3.connect(daemon.database) as database:
        database.execute("UPDATE payload SET body = 'y' WHERE seq IN (SELECT seq FROM job WHERE id LIKE '%-bad')")
    database.close()
    daemon.write_config(PULL + push)
    daemon.start()
    for job in ("good", "bad"):
        daemon.call("POST", f"/v1/jobs/push-{job}/retry?tenant=t", {})
    daemon.call("POST", "/v1/destinations/d/resume", {})
    ended = process.wait_until(lambda: daemon.drained(["p"], 1) and daemon.counts("p")["dead"] == 1)
    tap.check(tried and ended and [key for key, *_ in receiver.seen()] == ["t/push-good"], "a changed payload is not sent",
              (receiver.seen(), daemon.counts("p")))
    _, leased = daemon.call("POST", "/v1/leases", {"destination": "d", "max": 10, "wait_s": 5})
    tap.check([lease["id"] for lease in leased["leases"]] == ["pull-good"], "nor given to a worker", leased)
    for job in ("push-bad", "pull-bad"):
        dead = process.wait_until(lambda: daemon.call("GET", f"/v1/jobs/{job}?tenant=t")[1]["state"] == "dead")
        _, body = daemon.call("GET", f"/v1/jobs/{job}?tenant=t")
        tap.check(dead and body["last_code"] == "insist:payload_damaged", f"{job} is a dead letter", body)
    told = [json.loads(line) for line in daemon.said().splitlines() if '"insist:payload_damaged"' in line]
    tap.check(len(told) == 2 and all(line["level"] == "error" for line in told), "the log tells", told)
    daemon.call("POST", "/v1/jobs/push-bad/retry?tenant=t", {"payload": "x"})
    daemon.stop()
    daemon.start()
    tap.check(process.wait_until(lambda: len(receiver.seen()) == 2), "given anew it is sent", receiver.seen())
    daemon.stop()
    receiver.close()


RETRY = """\
  d:
    url: http://127.0.0.1:{port}/
    allow_private: true
    retry: {{ max_retries: 5, base: 4s, factor: 1, floor: 4s, cap: 4s, jitter: 0 }}
  e: {{ transport: pull, in_doubt: resend, retry: {{ base: 1s, floor: 1s, cap: 1s, jitter: 0 }} }}
"""


def fake_clock(by):
    """The environment of a process whose clock is off by so much; None: there is no way to do that."""
    library = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    linked = subprocess.run(["ldd", process.INSIST], capture_output=True, text=True).stdout
    if not library or "libasan" in linked or "libtsan" in linked:
        return None
    return {"LD_PRELOAD": library[0], "FAKETIME": by, "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1"}


def clock_put_back(tap, folder, name, by):
    """A retry due in seconds, and a lease of seconds, do not wait for the clock to catch up."""
    environment = fake_clock(by)
    if not environment:
        tap.skip(f"clock {name} over a restart", "no libfaketime, or a sanitizer's library that must be loaded first")
        return
    answers = iter([503])
    receiver = process.Receiver(lambda key, attempt: (next(answers, 200), 0))
    daemon = new_daemon(folder, "clock-" + name, RETRY.format(port=receiver.port))
    daemon.start()
    daemon.add("d", "waits")
    daemon.add("e", "leased")
    lease = daemon.call("POST", "/v1/leases", {"destination": "e", "lease_s": 5})
    process.wait_until(lambda: daemon.counts("d")["waiting"] == 1)
    daemon.kill()
    daemon.start(environment=environment)
    tap.check(lease[0] == 200 and "clock_put_back" in daemon.said(), f"clock {name}: the log tells of it", daemon.said()[-600:])
    delivered = process.wait_until(lambda: len(receiver.seen()) == 2)
    tap.check(delivered, f"clock {name}: the retry comes when it was due", daemon.call("GET", "/v1/jobs/waits?tenant=t"))
    again = process.wait_until(lambda: daemon.call("POST", "/v1/leases", {"destination": "e"})[1].get("leases"))
    tap.check(again, f"clock {name}: the lease ends when it was to end")
    events = daemon.call("GET", "/v1/events?type=note&limit=100")[1]
    tap.check("clock_put_back" in json.dumps(events), f"clock {name}: and so does the trail", events)
    doctor = subprocess.run([process.INSIST, "--server", f"http://127.0.0.1:{daemon.port}", "doctor", "-c", daemon.config],
                            capture_output=True, text=True, env={**os.environ, **fake_clock(by.replace("-", "-1"))})
    tap.check("behind the store's newest event" in doctor.stdout, f"clock {name}: doctor sees a clock that is behind", doctor.stdout)
    daemon.stop()
    receiver.close()


def clock_steps(tap, folder):
    """While it runs: a step forward is no standstill, a step back holds nobody up."""
    place = os.path.join(folder, "offset")
    environment = fake_clock("+0")
    if not environment:
        tap.skip("a clock that steps", "no libfaketime, or a sanitizer's library that must be loaded first")
        return
    environment.update(FAKETIME_TIMESTAMP_FILE=place, FAKETIME_NO_CACHE="1")
    del environment["FAKETIME"]

    def set_clock(offset):
        with open(place + ".new", "w") as out:
            out.write(offset + "\n")
        os.rename(place + ".new", place)
    set_clock("+0")
    answers = iter([503])
    receiver = process.Receiver(lambda key, attempt: (next(answers, 200), 0))
    daemon = new_daemon(folder, "steps", RETRY.format(port=receiver.port))
    daemon.start(environment=environment)
    process.wait_until(lambda: daemon.call("GET", "/readyz")[0] == 200)  # what runs once a second has run
    set_clock("+45")
    bad = []
    for _ in range(150):
        status, body = daemon.call("GET", "/livez")
        bad += [] if status == 200 else [(status, body)]
        time.sleep(0.02)
    tap.check(not bad, "a step forward is no standstill", bad[:2])
    daemon.add("d", "waits")
    process.wait_until(lambda: daemon.counts("d")["waiting"] == 1)
    set_clock("-2h")
    tap.check(process.wait_until(lambda: len(receiver.seen()) == 2), "a step back holds no retry up",
              daemon.call("GET", "/v1/jobs/waits?tenant=t"))
    tap.check(process.wait_until(lambda: "clock_put_back" in daemon.said()), "and is told")
    daemon.stop()
    receiver.close()


def small_disk(folder, kind, name=""):
    """A mounted file system of 8 MB, or None."""
    place = os.path.join(folder, f"disk-{kind}{name}")
    os.mkdir(place)
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", place]
    if kind != "tmpfs":
        image = place + ".img"
        with open(image, "wb") as out:
            out.truncate(16 << 20)
        block = kind.split("-")[1]
        made = shutil.which("mkfs.ext4") and subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-b", block, "-J", "size=4", image],
                                                            capture_output=True).returncode == 0
        if not made:
            return None
        command = ["mount", "-o", "loop", image, place]
    return place if subprocess.run(command, capture_output=True).returncode == 0 else None


def fill_up(place):
    """Not one block is left."""
    with open(os.path.join(place, "filler"), "ab", buffering=0) as out:
        for size in (1 << 20, 1 << 16, 4096, 1024, 1):
            try:
                while True:
                    out.write(bytes(size))
            except OSError:
                pass


def daemon_on(folder, disk, name):
    place = os.path.join(folder, "on-" + name)
    os.mkdir(place)
    daemon = process.Daemon(place, PULL, "limits: { disk_free: 0KB }\n", store=f"sqlite:{disk}/insist.db")
    daemon.database = os.path.join(disk, "insist.db")
    return daemon


def unmount(disk):
    """At once, or when the last who has a file open there is gone; a loop device goes with it."""
    if subprocess.run(["umount", disk], capture_output=True).returncode != 0:
        subprocess.run(["umount", "-l", disk], check=False)


def full_disk(tap, folder, kind):
    """It lives on a full disk, is killed there, starts there, and goes on when there is room."""
    disk = small_disk(folder, kind)
    if not disk:
        tap.skip(f"a full disk, {kind}", "no such file system can be mounted here")
        return
    daemon = daemon_on(folder, disk, kind)
    try:
        daemon.start()
        acknowledged = []

        def add_some(count, payload):
            refused = 0
            for _ in range(count):
                job = f"job-{len(acknowledged) + refused}-{random.random()}"
                if daemon.add("d", job, payload=payload)[0] == 201:
                    acknowledged.append(job)
                else:
                    refused += 1
                    if refused > 5:
                        return
        add_some(40, "x" * 1000)
        fill_up(disk)
        add_some(3000, "x" * 3000)
        alive = daemon.process.poll() is None and daemon.call("GET", "/livez")[0] == 200
        tap.check(alive, f"{kind}: the daemon lives on a full disk", daemon.said()[-800:])
        daemon.end()
        fill_up(disk)
        for round_ in range(3):
            started = daemon.start()
            found = daemon.counts("d") if started else None
            tap.check(started and found["pending"] == len(acknowledged), f"{kind}: it starts on a full disk, {round_}",
                      (found, len(acknowledged), daemon.said()[-800:]))
            status, body = daemon.add("d", "one more", payload="x" * 60000)
            tap.check(status in (503, 507) or status == 201, f"{kind}: and says of a job whether it has it", (status, body))
            if status == 201:
                acknowledged.append("one more")
            alive = daemon.process.poll() is None and daemon.call("GET", "/v1/jobs?limit=5")[0] == 200
            tap.check(alive, f"{kind}: it answers readers", daemon.said()[-800:])
            daemon.end()
        daemon.start()
        os.unlink(os.path.join(disk, "filler"))
        again = process.wait_until(lambda: daemon.add("d", "after")[0] in (200, 201), every=0.2)
        tap.check(again, f"{kind}: with room it takes jobs again", daemon.said()[-800:])
        tap.check(daemon.stop() == 0, f"{kind}: it stops in order", daemon.said()[-800:])
        database = process.check_database(tap, daemon.database)
        stored = {row[0] for row in database.execute("SELECT id FROM job")}
        lost = [job for job in acknowledged + ["after"] if job not in stored]
        tap.check(not lost, f"{kind}: nothing that was acknowledged is lost", lost[:5])
        database.close()
    finally:
        daemon.end()
        unmount(disk)


def little_room(tap, folder):
    """Blocks smaller than a page of memory, a start that must make the log's index anew, and room for a part of it."""
    disk = small_disk(folder, "ext4-1024", "little")
    if not disk:
        tap.skip("little room for the index", "no such file system can be mounted here")
        return
    daemon = daemon_on(folder, disk, "little")
    kept = os.path.join(folder, "kept")
    gap = os.path.join(disk, "gap")
    os.mkdir(kept)
    try:
        daemon.start()
        acknowledged = sum(daemon.add("d", f"job-{job}", payload="x" * 1000)[0] == 201 for job in range(40))
        daemon.kill()
        for name in ("insist.db", "insist.db-wal", "insist.db.lock"):
            shutil.copy(os.path.join(disk, name), kept)
        for room in (0, 8, 16, 28, 64):
            for name in os.listdir(disk):
                if name != "lost+found":
                    os.unlink(os.path.join(disk, name))
            shutil.copytree(kept, disk, dirs_exist_ok=True)
            with open(gap, "wb") as out:
                out.write(bytes(room << 10))
            fill_up(disk)
            os.sync()
            os.unlink(gap)
            os.sync()
            before = daemon.said().count("the disk is full")
            started = daemon.start()
            if started:
                found = (daemon.counts("d") or {}).get("pending")
                tap.check(found == acknowledged, f"{room} KB for the index: it starts", found)
            else:
                tap.check(room < 64 and daemon.process.poll() == 1 and daemon.said().count("the disk is full") > before,
                          f"{room} KB for the index: it says why it does not start",
                          (daemon.process.poll(), daemon.said()[-400:]))
            daemon.end()
    finally:
        daemon.end()
        unmount(disk)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # nothing stays mounted
    tap = process.Tap()
    folder = process.scratch_folder()
    hangups(tap, folder)
    early_hangup(tap, folder)
    empty_files(tap, folder)
    places(tap, folder)
    log_removed(tap, folder, "removed", os.unlink, True)
    log_removed(tap, folder, "cut", lambda path: os.truncate(path, 0), False)
    damaged(tap, folder)
    changed(tap, folder)
    clock_put_back(tap, folder, "back by an hour", "-1h")
    clock_put_back(tap, folder, "back by two years", "-730d")
    clock_steps(tap, folder)
    for kind in ("tmpfs", "ext4-4096", "ext4-1024"):
        full_disk(tap, folder, kind)
    little_room(tap, folder)
    process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
