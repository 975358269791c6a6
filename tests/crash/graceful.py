#!/usr/bin/env python3
"""The daemon's ways to stop, to reload and to fail: each must be orderly, and say clearly what is wrong."""
import os
import resource
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

PLENTY = "limits: { disk_free: 1MB }\n"
NOBODY = 65534


class Hold:
    """A receiver that answers when it is let go, or after a while."""

    def __init__(self, seconds):
        self.let_go = threading.Event()
        self.receiver = process.Receiver(lambda key, attempt: (200, self.wait(seconds)))
        self.port = self.receiver.port

    def wait(self, seconds):
        self.let_go.wait(seconds)
        return 0

    def arrived(self):
        """The request is recorded when it is answered, so look at the connection's thread instead."""
        return process.wait_until(lambda: threading.active_count() > self.threads)

    def mark(self):
        self.threads = threading.active_count()

    def close(self):
        self.let_go.set()
        self.receiver.close()


def to(port, name="d", more=""):
    return (f"  {name}: {{ url: 'http://127.0.0.1:{port}/', allow_private: true, in_doubt: resend, timeout: 25s, concurrency: 1,"
            f" retry: {{ base: 100ms, factor: 1, floor: 0s, cap: 1s }}{more} }}\n")


def states(path):
    """Job id to state."""
    database = process.open_database(path)
    rows = dict(database.execute("SELECT id, state FROM job_now"))
    database.close()
    return rows


def problem_of(answer):
    status, body = answer
    return status, body.get("type", "").rsplit("/", 1)[-1] if isinstance(body, dict) else ""


def refused_start(tap, daemon, name, words, codes=(1,), before=None):
    """It must end by itself, with one of the codes, and with these words."""
    daemon.start(wait=False, before=before)
    try:
        code = daemon.process.wait(process.WAIT_S)
    except subprocess.TimeoutExpired:
        code = "still running"
        daemon.kill()
    said = daemon.said()
    tap.check(code in codes and all(word in said for word in words), name, f"exit code {code}, wanted {words}\n{said[-1500:]}")


def stop_drains(tap, folder):
    for number in (signal.SIGTERM, signal.SIGINT):
        name = signal.Signals(number).name
        hold = Hold(25)
        daemon = process.Daemon(os.path.join(folder, name), to(hold.port), PLENTY)
        daemon.start()
        hold.mark()
        for i in range(5):
            daemon.add("d", f"j{i}")
        arrived = hold.arrived()
        daemon.signal(number)
        alive = daemon.stopping() and daemon.process.poll() is None
        daemon.write_config(to(hold.port, "other"), PLENTY)
        daemon.signal(signal.SIGHUP)
        refused = process.wait_until(lambda: "the daemon is stopping; the next start reads the file" in daemon.said())
        daemon.write_config(to(hold.port), PLENTY)
        tap.check(refused and daemon.process.poll() is None, f"{name}: a SIGHUP while it drains is refused, and ends nothing",
                  daemon.said()[-1500:])
        hold.let_go.set()
        code = daemon.process.wait(process.WAIT_S)
        ends = sorted(states(daemon.database).values())
        tap.check(arrived and alive and code == 0, f"{name} waits for the send under way and ends with 0",
                  f"arrived {arrived}, alive {alive}, code {code}\n{daemon.said()[-1500:]}")
        tap.check('"event":"stopped"' in daemon.said().splitlines()[-1], f"{name}: its last line says so", daemon.said()[-500:])
        tap.check(ends.count(process.STATE_COMPLETED) == 1 and 2 not in ends and len(ends) == 5,
                  f"{name}: that one is completed, none is left running, four wait", ends)
        daemon.start()
        tap.check(daemon.drained(["d"]) and len(hold.receiver.seen()) == 5, f"{name}: the next start sends the rest, once",
                  hold.receiver.seen())
        daemon.end()
        hold.close()


def second_signal_is_quick(tap, folder):
    hold = Hold(25)
    daemon = process.Daemon(folder, to(hold.port), PLENTY)
    daemon.start()
    hold.mark()
    daemon.add("d", "j")
    arrived = hold.arrived()
    daemon.signal(signal.SIGTERM)
    alive = daemon.stopping() and daemon.process.poll() is None
    daemon.signal(signal.SIGTERM)
    began = time.monotonic()
    try:
        code = daemon.process.wait(process.WAIT_S)
    except subprocess.TimeoutExpired:
        code = None
        daemon.kill()
    took = time.monotonic() - began
    tap.check(arrived and alive and code == 0 and took < 15, "a second SIGTERM does not wait for sends",
              f"arrived {arrived}, alive {alive}, code {code} after {took:.1f} s\n{daemon.said()[-1500:]}")
    ends = states(daemon.database)
    tap.check(ends == {"j": 3}, "what it gave up waits to be sent again", ends)
    hold.close()


def reloads(tap, folder):
    receiver = process.Receiver(lambda key, attempt: (200, 0))
    daemon = process.Daemon(folder, to(receiver.port), PLENTY)
    daemon.start()
    before = daemon.add("e", "early")[0]
    daemon.write_config(to(receiver.port) + to(receiver.port, "e"), PLENTY)
    daemon.signal(signal.SIGHUP)
    known = process.wait_until(lambda: daemon.counts("e") is not None)
    added = daemon.add("e", "one")[0]
    tap.check(before in (404, 422) and known and added == 201, "SIGHUP brings a new destination", (before, known, added))
    tap.check(daemon.drained(["e"]), "and it is sent to", daemon.counts("e"))

    daemon.write_config(to(receiver.port, "f", ", concurency: 3"), PLENTY)
    daemon.signal(signal.SIGHUP)
    told = process.wait_until(lambda: "not_reloaded" in daemon.said())
    said = daemon.said()
    tap.check(told and "concurency" in said and ".yaml:" in said, "a bad file is named with its line", said[-1500:])
    added = [daemon.add("d", "two")[0], daemon.add("e", "three")[0], daemon.add("f", "four")[0]]
    tap.check(added[:2] == [201, 201] and added[2] != 201, "and changes nothing", added)
    tap.check(daemon.drained(["d", "e"]), "work goes on", [daemon.counts("d"), daemon.counts("e")])

    daemon.write_config(to(receiver.port), PLENTY)
    daemon.signal(signal.SIGHUP)
    gone = process.wait_until(lambda: daemon.add("e", "five")[0] not in (200, 201))
    tap.check(gone and daemon.add("d", "six")[0] == 201, "a destination can be taken away", daemon.said()[-500:])
    tap.check("restart_needed" not in daemon.said(), "and nobody is told to restart for that", daemon.said()[-500:])

    daemon.write_config(to(receiver.port), "limits: { disk_free: 1MB, pending: 5 }\n")
    daemon.signal(signal.SIGHUP)
    told = process.wait_until(lambda: "restart_needed" in daemon.said())
    tap.check(told and '"setting":"limits.pending"' in daemon.said(), "what only a start reads is named", daemon.said()[-500:])
    tap.check(daemon.stop() == 0, "it stops in order after all that", daemon.said()[-1500:])
    receiver.close()


def second_daemon_is_refused(tap, folder):
    """S4-023: one instance works on a store."""
    receiver = process.Receiver(lambda key, attempt: (200, 0))
    first = process.Daemon(folder, to(receiver.port), PLENTY)
    first.start()
    second = process.Daemon(folder, to(receiver.port), PLENTY, store=first.store)
    refused_start(tap, second, "a second daemon on the same store is refused, and told who has it",
                  [f"process {first.process.pid}"])
    tap.check(first.add("d", "j")[0] == 201 and first.drained(["d"]), "the first one does not notice")

    other = os.path.join(folder, "other")
    os.mkdir(other)
    third = process.Daemon(other, to(receiver.port), PLENTY, port=first.port)
    refused_start(tap, third, "a port in use is named", [str(first.port), "in use"])
    tap.check(first.add("d", "k")[0] == 201, "its owner goes on")
    first.end()
    receiver.close()


def as_nobody():
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def unwritable_folder_is_refused(tap, folder):
    receiver = process.Receiver(lambda key, attempt: (200, 0))
    closed = os.path.join(folder, "closed")
    os.mkdir(closed)
    daemon = process.Daemon(folder, to(receiver.port), PLENTY, store=f"sqlite:{closed}/insist.db")
    os.chmod(folder, 0o755)
    os.chmod(closed, 0o555)
    root = os.geteuid() == 0
    refused_start(tap, daemon, "a folder that cannot be written to is named", [f"{closed}/insist.db"],
                  before=as_nobody if root else None)
    daemon = process.Daemon(folder, to(receiver.port), PLENTY, store=f"sqlite:{daemon.config}/insist.db")
    refused_start(tap, daemon, "a folder that cannot be made is named", [f"{daemon.config.rsplit('-', 1)[0]}"])
    os.chmod(closed, 0o755)
    receiver.close()


def bad_file_is_refused(tap, folder):
    daemon = process.Daemon(folder, "  d: { url: 'http://127.0.0.1:1/', concurrency: many }\n", PLENTY)
    refused_start(tap, daemon, "a bad configuration starts nothing, with 2 and its line", [".yaml:", "concurrency"], codes=(2,))
    tap.check(not os.path.exists(daemon.database), "and makes no store")


def add_until_refused(daemon, limit):
    """Jobs acknowledged, and the first other answer."""
    acknowledged = []
    for i in range(limit):
        status, body = daemon.add("d", f"j{i}", payload="x" * 20000)
        if status != 201:
            return acknowledged, (status, body)
        acknowledged.append(f"j{i}")
    return acknowledged, None


def kept(tap, daemon, acknowledged, name):
    found = states(daemon.database)
    lost = [job for job in acknowledged if job not in found]
    tap.check(acknowledged and not lost, name, f"{len(acknowledged)} acknowledged, lost {lost[:10]}")


def full_disk(tap, folder):
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", disk], stderr=subprocess.DEVNULL).returncode == 0
    if not mounted:
        tap.skip("a full disk refuses, and loses nothing", "no file system can be mounted here")
        return
    hold = Hold(60)
    daemon = process.Daemon(folder, to(hold.port), "limits: { disk_free: 0KB }\n", store=f"sqlite:{disk}/insist.db")
    daemon.database = os.path.join(disk, "insist.db")
    try:
        filler = os.path.join(disk, "filler")
        with open(filler, "wb") as out:
            out.write(bytes(3 << 20))
        if not tap.check(daemon.start(), "it starts on a small disk", daemon.said()[-1500:]):
            return
        acknowledged, refusal = add_until_refused(daemon, 1000)
        tap.check(refusal and refusal[0] in (503, 507) and problem_of(refusal)[1] not in ("", "blank"),
                  "a full disk refuses, and says why", refusal)
        tap.check(daemon.process.poll() is None and daemon.call("GET", "/livez")[0] == 200, "the daemon lives on",
                  daemon.said()[-1500:])
        os.unlink(filler)
        again = process.wait_until(lambda: daemon.add("d", "after")[0] in (200, 201), every=0.2)
        tap.check(again, "with room again it accepts again", daemon.said()[-1500:])
        hold.let_go.set()
        tap.check(daemon.drained(["d"]), "and works off all of it", daemon.counts("d"))
        tap.check(daemon.stop() == 0, "it stops in order", daemon.said()[-1500:])
        kept(tap, daemon, acknowledged + ["after"], "nothing that was acknowledged is lost on a full disk")
        process.check_database(tap, daemon.database).close()
    finally:
        daemon.end()
        hold.close()
        subprocess.run(["umount", "-l", disk], check=False)


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))


def failing_writes(tap, folder):
    """A write that fails for another reason than room: whatever was acknowledged must be there at the next start."""
    receiver = process.Receiver(lambda key, attempt: (200, 0))
    daemon = process.Daemon(folder, to(receiver.port), PLENTY)
    daemon.start(before=small_files)
    acknowledged, refusal = add_until_refused(daemon, 1000)
    tap.check(refusal is not None and refusal[0] in (0, 503, 507), "a write that fails is not acknowledged", refusal)
    ended = process.wait_until(lambda: daemon.process.poll() is not None)
    tap.check(ended and daemon.process.returncode == 1 and "store_failed" in daemon.said(), "the daemon ends, and says why",
              f"{daemon.process.returncode}\n{daemon.said()[-1500:]}")
    daemon.end()
    tap.check(daemon.start(), "it starts again without the limit", daemon.said()[-1500:])
    tap.check(daemon.drained(["d"]), "and works off all of it", daemon.counts("d"))
    daemon.stop()
    kept(tap, daemon, acknowledged, "nothing that was acknowledged is lost by a failed write")
    process.check_database(tap, daemon.database).close()
    receiver.close()


def little_room_is_refused(tap, folder):
    receiver = process.Receiver(lambda key, attempt: (200, 0))
    daemon = process.Daemon(folder, to(receiver.port), "limits: { disk_free: 100000GB }\n")
    daemon.start()
    refusal = daemon.add("d", "j")
    tap.check(problem_of(refusal) == (503, "disk_full"), "less room than limits.disk_free: 503 disk_full", refusal)
    tap.check(daemon.call("GET", "/readyz")[0] == 503, "and it is not ready")
    daemon.write_config(to(receiver.port), PLENTY)
    daemon.signal(signal.SIGHUP)
    tap.check(process.wait_until(lambda: daemon.add("d", "j")[0] in (200, 201), every=0.2), "a smaller limit is heeded after a reload",
              daemon.add("d", "k"))
    tap.check(daemon.drained(["d"]) and daemon.stop() == 0, "and all goes on", daemon.said()[-1500:])
    receiver.close()


def main():
    tap = process.Tap()
    folder = process.scratch_folder()
    os.chmod(folder, 0o755)
    try:
        for number, case in enumerate((stop_drains, second_signal_is_quick, reloads, second_daemon_is_refused,
                                       unwritable_folder_is_refused, bad_file_is_refused, full_disk, failing_writes,
                                       little_room_is_refused)):
            place = os.path.join(folder, str(number))
            os.mkdir(place)
            for name in ("SIGTERM", "SIGINT") if case is stop_drains else ():
                os.mkdir(os.path.join(place, name))
            case(tap, place)
    finally:
        process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
