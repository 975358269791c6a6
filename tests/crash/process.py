"""What the tests of the running daemon share: the process, a receiver that remembers, the checks of a store's file."""
import glob
import hashlib
import http.client
import http.server
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSIST = os.environ.get("INSIST", os.path.join(TOP, "build", "insist"))
BUILD = os.environ.get("INSIST_BUILD", os.path.join(TOP, "build"))

WAIT_S = 60  # for anything: a machine may be busy, and a sanitizer slow

STATE_COMPLETED, STATE_DEAD = 4, 5
EVENT_CLAIMED = 2


class Tap:
    """Test lines; the plan comes last."""

    def __init__(self):
        self.count = self.failed = 0

    def check(self, good, name, detail=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        if not good and detail:
            for line in str(detail).splitlines()[:40]:
                print(f"# {line}")
        sys.stdout.flush()
        return good

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # skip {reason}")

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def note(text):
    print(f"# {text}")
    sys.stdout.flush()


def postgres_programs(tap, what):
    """Where the newest PostgreSQL's programs are; None, and `what` is skipped, where there are none. In CI there are."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not programs and "CI" not in os.environ:
        tap.skip(what, "PostgreSQL's programs are not installed (tools/deps test installs them)")
        return None
    return programs[-1]


def scratch_folder():
    """On the disk of the build, not in memory: a sync must mean something."""
    os.makedirs(BUILD, exist_ok=True)
    return tempfile.mkdtemp(prefix="crash-", dir=BUILD)


def free_port():
    """Of those that no connection gets by itself: whoever is killed finds its own free again."""
    for _ in range(100):
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise OSError("no port is free")


def wait_until(condition, seconds=WAIT_S, every=0.02):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(every)
    return bool(condition())


def now_ms():
    return time.time_ns() // 1000000


class ReceiverServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # the daemon was killed in the middle of it


class Receiver:
    """A destination in this process. `answer(key, attempt)` gives status and seconds to wait; every request is kept."""

    def __init__(self, answer):
        receiver = self
        self.lock = threading.Lock()
        self.requests = []  # (key, attempt, status, received at in ms)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body leave together

            def do_POST(self):
                received = now_ms()
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                key = self.headers.get("Idempotency-Key", "")
                attempt = int(self.headers.get("Insist-Attempt", 0))
                status, seconds = answer(key, attempt)
                with receiver.lock:
                    receiver.requests.append((key, attempt, status, received))
                if seconds:
                    time.sleep(seconds)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = ReceiverServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def seen(self):
        with self.lock:
            return list(self.requests)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Daemon:
    """`insist serve` in a folder of its own, on a port that stays the same."""

    def __init__(self, folder, destinations, more="", port=None, store=None):
        self.folder = folder
        self.port = port or free_port()
        self.config = os.path.join(folder, f"insist-{self.port}.yaml")
        self.database = os.path.join(folder, "insist.db")
        self.store = store or f"sqlite:{self.database}"
        self.log = os.path.join(folder, f"log-{self.port}")
        self.process = None
        self.write_config(destinations, more)

    def write_config(self, destinations, more=""):
        with open(self.config, "w") as out:
            out.write(f"listen: 127.0.0.1:{self.port}\nstore: {self.store}\n{more}destinations:\n{destinations}")

    def start(self, wait=True, before=None, environment=None):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([INSIST, "serve", "--init", "-c", self.config], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=before,
                                            env={**os.environ, **(environment or {})})
        return self.ready() if wait else None

    def ready(self, seconds=WAIT_S):
        def answers():
            return self.process.poll() is not None or self.call("GET", "/livez")[0] == 200
        return wait_until(answers, seconds, 0.005) and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, seconds=WAIT_S):
        """The exit code, or None when it had to be killed."""
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def end(self):
        if self.process and self.process.poll() is None:
            self.kill()

    def said(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def call(self, method, path, body=None, timeout=30):
        """Status and JSON; status 0 when there is no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()

    def add(self, destination, job, tenant="t", payload="x"):
        return self.call("POST", "/v1/jobs", {"destination": destination, "id": job, "tenant": tenant, "payload": payload})

    def stopping(self):
        """Whether it has noticed that it is to stop."""
        return wait_until(lambda: self.call("GET", "/readyz")[0] == 503)

    def counts(self, destination):
        status, body = self.call("GET", f"/v1/destinations/{destination}")
        return body if status == 200 else None

    def drained(self, destinations, seconds=WAIT_S):
        def idle():
            for name in destinations:
                counts = self.counts(name)
                if not counts or counts["pending"] + counts["running"] + counts["waiting"] > 0:
                    return False
            return True
        return wait_until(idle, seconds, 0.1)


def number(value):
    return struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF)


def text(value):
    value = value or b""
    return number(len(value)) + value


def broken_link(database):
    """The number of the first event that does not follow from the one before; 0 when there is none."""
    trimmed = database.execute("SELECT hash FROM trimmed").fetchone()
    before = trimmed[0] if trimmed else bytes(32)
    rows = database.execute(
        "SELECT v.number, v.at, v.type, v.state, v.attempt, v.previous,"
        " CAST(coalesce(l.destination, v.destination) AS BLOB), CAST(l.tenant AS BLOB), CAST(v.job AS BLOB),"
        " CAST(v.data AS BLOB), v.hash, v.form, v.salt, v.digest FROM event v LEFT JOIN lane l ON l.id = v.lane ORDER BY v.number")
    for event, at, kind, state, attempt, previous, destination, tenant, job, data, kept, form, salt, erased in rows:
        told = (hashlib.sha256(salt + data).digest() if data else erased or bytes(32)) if form else text(data)
        digest = hashlib.sha256(before + (number(-form) if form else b"") + number(event) + number(at) +
                                number(kind << 32 | state) + number(attempt) + number(previous) + text(destination) +
                                text(tenant) + text(job) + told).digest()
        if digest != kept:
            return event
        before = kept
    return 0


def wrong_counters(database):
    """Lanes whose counters differ from a count of their jobs."""
    return database.execute(
        "SELECT * FROM (SELECT l.id, l.pending, l.running, l.waiting, l.dead, l.ready,"
        " (SELECT count(*) FROM job_now j WHERE j.lane = l.id AND j.state = 1) AS p,"
        " (SELECT count(*) FROM job_now j WHERE j.lane = l.id AND j.state = 2) AS r,"
        " (SELECT count(*) FROM job_now j WHERE j.lane = l.id AND j.state = 3) AS w,"
        " (SELECT count(*) FROM job_now j WHERE j.lane = l.id AND j.state = 5) AS d,"
        " (SELECT count(*) FROM ready y WHERE y.lane = l.id) AS y,"
        " l.completed, (SELECT count(*) FROM event v WHERE v.lane = l.id AND v.state = 4 AND v.type <> 17) AS c FROM lane l)"
        " WHERE pending <> p OR running <> r OR waiting <> w OR dead <> d OR ready <> y OR completed <> c").fetchall()


def open_database(path):
    """Only when no daemon has it open."""
    return sqlite3.connect(path)


def check_database(tap, path):
    database = open_database(path)
    sound = database.execute("PRAGMA integrity_check").fetchone()[0]
    tap.check(sound == "ok", "the database is sound", sound)
    event = broken_link(database)
    tap.check(event == 0, "the chain of events is unbroken", f"event {event} does not follow from the one before")
    wrong = wrong_counters(database)
    tap.check(not wrong, "the counters are those of a recount", wrong[:5])
    orphans = database.execute("SELECT count(*) FROM lease l LEFT JOIN job_now j ON j.seq = l.seq"
                               " WHERE j.state IS NULL OR j.state <> 2").fetchone()[0]
    tap.check(orphans == 0, "no lease is left without its job", orphans)
    return database


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)


def clear(tap, folder, keep=False):
    """What a failed run left is kept for whoever looks into it."""
    if keep or tap.failed:
        note(f"the files are in {os.path.relpath(folder)}")
    else:
        remove(folder)
