#!/usr/bin/env python3
"""Entries of a real Redis stream become jobs, each exactly one: Redis is killed on the way, and so is the daemon; entries that can be
no jobs, a consumer that died, a store that is full, a tenant that has its share, a Redis that stalls, and one with unsafe settings;
two nodes on a PostgreSQL that goes away.

    tests/crash/sources.py [--entries N]
"""
import argparse
import glob
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import postgres  # noqa: E402
import process  # noqa: E402

PLAIN = "variant" not in process.BUILD  # what is long or large is enough once
WORK = "  work: { transport: pull }\n"


class Refused(Exception):
    """What Redis answers with a minus."""


class Redis:
    """A server of its own that has every write on the disk before it answers, and one connection to it."""

    def __init__(self, folder):
        self.folder, self.port, self.process, self.line = folder, process.free_port(), None, None

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--appendonly", "yes",
             "--appendfsync", "always", "--save", "", "--requirepass", "secret"], stdout=subprocess.DEVNULL)
        return process.wait_until(lambda: self.tried("PING") == "PONG", every=0.02)

    def connect(self):
        self.line = socket.create_connection(("127.0.0.1", self.port), 10)
        self.stream = self.line.makefile("rb")
        self.say("AUTH", "secret")
        self.say("SELECT", "2")

    def answer(self):
        head = self.stream.readline()
        if not head.endswith(b"\r\n"):
            raise OSError("it is gone")
        kind, text = head[:1], head[1:-2].decode(errors="replace")
        if kind == b"-":
            raise Refused(text)
        if kind == b"$":
            return None if text == "-1" else self.stream.read(int(text) + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return None if text == "-1" else [self.answer() for _ in range(int(text))]
        return int(text) if kind == b":" else text

    def say(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.line.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.answer()

    def ask(self, *words):
        if not self.line:
            self.connect()
        try:
            return self.say(*words)
        except OSError:
            self.line = None
            raise

    def tried(self, *words):
        """None: it cannot be asked."""
        try:
            return self.ask(*words)
        except (OSError, Refused):
            self.line = None
            return None

    def entries(self, stream):
        return self.ask("XRANGE", stream, "-", "+")

    def pending(self, stream, group="insist"):
        return self.ask("XPENDING", stream, group)[0]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.line = None


def source(redis, stream, more=""):
    return f'  - {{ name: {stream}, redis: "redis://127.0.0.1:{redis.port}/2", password: secret, stream: "{stream}", destination: work{more} }}\n'


def jobs_of(daemon):
    """Ids of all that wait, as often as they are listed."""
    found, cursor = [], ""
    while True:
        status, page = daemon.call("GET", f"/v1/jobs?destination=work&limit=500{cursor}")
        if status != 200:
            return None
        found += [job["id"] for job in page["jobs"]]
        if not page["next"]:
            return found
        cursor = "&cursor=" + page["next"]


def figures(daemon, name):
    status, body = daemon.call("GET", f"/v1/sources/{name}")
    return body if status == 200 else {}


class Producer(threading.Thread):
    """Adds entries, every tenth of which can be no job, and does not give up while Redis is away."""

    def __init__(self, redis, count):
        super().__init__(daemon=True)
        self.redis, self.count, self.made = Redis(redis.folder), count, 0
        self.redis.port = redis.port
        self.start()

    def run(self):
        for number in range(self.count):
            words = ["payload", json.dumps({"number": number}), "tenant", f"t{number % 7}"]
            if number % 10 == 9:
                words += ["run_art", "tomorrow"]
            while not self.redis.tried("XADD", "in", "*", *words):
                time.sleep(0.02)
            self.made += 1


def both_die(tap, daemon, redis, count):
    producer = Producer(redis, count)
    for step in range(1, 5):
        process.wait_until(lambda: producer.made >= step * count // 6)
        if step % 2:
            redis.kill()
            time.sleep(0.1)
            redis.start()
        else:
            daemon.kill()
            daemon.start(wait=False)
    producer.join(process.WAIT_S)
    tap.check(producer.made == count and daemon.ready(), "all are added, and both run again")
    bad = {entry for entry, words in redis.entries("in") if "run_art" in words}
    good = {entry for entry, _ in redis.entries("in")} - bad
    tap.check(process.wait_until(lambda: redis.pending("in") == 0 and len(jobs_of(daemon) or []) >= len(good)),
              "every entry is done with", (figures(daemon, "in"), redis.ask("XPENDING", "in", "insist")))
    found = jobs_of(daemon)
    tap.check(sorted(found) == sorted(f"in-{entry}" for entry in good), "every entry is exactly one job",
              f"{len(found)} jobs, {len(set(found))} ids, {len(good)} entries")
    rejected = [dict(zip(words[::2], words[1::2])) for _, words in redis.entries("in:rejected")]
    tap.check(sorted(one["insist_entry"] for one in rejected) == sorted(bad), "what can be no job is set aside, once",
              (len(rejected), len(bad)))
    tap.check(all("run_art" in one["insist_detail"] and one["run_art"] == "tomorrow" and one["payload"] for one in rejected),
              "with what is wrong, and all that it had", rejected[:1])
    process.note(f"{len(found)} jobs, {len(rejected)} rejected, {figures(daemon, 'in')}")


def entries_of_every_kind(tap, daemon, redis):
    redis.ask("XADD", "in", "*", "id", "own", "tenant", "acme", "priority", "high", "metadata", '{"a":1}', "headers", '{"X-A":"b"}',
              "correlation_id", "c1", "key", "k", "payload", "plain text")
    redis.ask("XADD", "in", "*", "id", "own", "tenant", "acme", "payload", "another body")
    redis.ask("XADD", "in", "*", "id", "bytes", "payload", b"\xff\x00\xfe")
    redis.ask("XADD", "in", "*", "id", "number", "payload", ' {"amount": 19.90} ')
    redis.ask("XADD", "in", "*", "id", "inject", "payload", "x", "metadata", '{}, "tenant": "other"')
    redis.ask("XADD", "in", "*", "nothing", "")
    redis.ask("XADD", "in", "*", "id", "large", "payload", b"x" * (3 << 20))
    if PLAIN:
        redis.ask("XADD", "in", "*", "id", "huge", "payload", b"x" * (65 << 20))
    redis.ask("XADD", "in", "*", "id", "last", "payload", "")
    tap.check(process.wait_until(lambda: daemon.call("GET", "/v1/jobs/last")[0] == 200), "what comes behind goes on", figures(daemon, "in"))
    own = daemon.call("GET", "/v1/jobs/own?tenant=acme&payload=true")[1]
    tap.check(own.get("payload") == "plain text" and own.get("priority") == "high" and own.get("metadata") == {"a": 1} and
              own.get("correlation_id") == "c1", "fields are the members of a job", own)
    raw = daemon.call("GET", "/v1/jobs/bytes?payload=true")[1]
    tap.check(raw.get("payload_base64") == "/wD+", "bytes stay what they are", raw)
    number = daemon.call("GET", "/v1/jobs/number?payload=true")[1]
    tap.check(number.get("content_type") == "application/json", "JSON is JSON", number)
    reasons = [dict(zip(words[::2], words[1::2])) for _, words in redis.entries("in:rejected")]
    types = sorted(one["insist_type"] for one in reasons if "run_art" not in one)
    tap.check(types == ["id_conflict", "invalid_member", *["payload_too_large"] * (1 + PLAIN), "unknown_member"], "each rejection says why", types)
    state = figures(daemon, "in")
    tap.check(state.get("state") == "reading" and "last_rejected" in state and "could not become jobs" in state.get("why", ""),
              "the source says so, too", state)


def nowhere_to_set_aside(tap, daemon, redis):
    """Redis goes on with a transaction of which a command has failed: an entry that was not copied must not be acknowledged."""
    redis.ask("RENAME", "in:rejected", "aside")
    redis.ask("SET", "in:rejected", "no stream")
    entry = redis.ask("XADD", "in", "*", "nothing", "kept")
    redis.ask("XADD", "in", "*", "id", "behind", "payload", "")
    tap.check(process.wait_until(lambda: figures(daemon, "in").get("held") == 1), "what cannot be set aside is held", figures(daemon, "in"))
    tap.check(process.wait_until(lambda: daemon.call("GET", "/v1/jobs/behind")[0] == 200), "what comes behind it goes on")
    tap.check("source_cannot_set_aside" in daemon.said() and "in:rejected is a string" in daemon.said(), "and the log says why")
    redis.ask("DEL", "in:rejected")
    tap.check(process.wait_until(lambda: [dict(zip(words[::2], words[1::2])).get("insist_entry")
                                          for _, words in redis.entries("in:rejected")] == [entry]), "and is set aside when it can be",
              redis.entries("in:rejected"))
    tap.check(process.wait_until(lambda: redis.pending("in") == 0), "once", redis.pending("in"))


def another_consumer_died(tap, daemon, redis):
    before = len(jobs_of(daemon))
    daemon.stop()
    for number in range(5):
        redis.ask("XADD", "in", "*", "id", f"left-{number}", "payload", "x")
    redis.ask("XREADGROUP", "GROUP", "insist", "dead", "COUNT", "5", "STREAMS", "in", ">")
    daemon.start()
    tap.check(process.wait_until(lambda: len(jobs_of(daemon) or []) == before + 5 and redis.pending("in") == 0),
              "what a dead consumer left is taken over", figures(daemon, "in"))


def reload(tap, daemon, redis):
    accepted = figures(daemon, "in")["accepted"]
    daemon.write_config(WORK, "sources:\n" + source(redis, "in", ", claim_after: 1s") + source(redis, "second"))
    daemon.signal(signal.SIGHUP)
    redis.ask("XADD", "second", "*", "id", "second", "payload", "x")
    redis.ask("XADD", "in", "*", "id", "first", "payload", "x")
    tap.check(process.wait_until(lambda: all(daemon.call("GET", f"/v1/jobs/{job}")[0] == 200 for job in ("first", "second"))),
              "a reload brings a source more", daemon.call("GET", "/v1/sources"))
    tap.check(process.wait_until(lambda: figures(daemon, "in")["accepted"] > accepted), "and the counts of the others go on", figures(daemon, "in"))
    daemon.write_config(WORK, "sources:\n" + source(redis, "in", ", claim_after: 1s"))
    daemon.signal(signal.SIGHUP)
    tap.check(process.wait_until(lambda: daemon.call("GET", "/v1/sources/second")[0] == 404), "one that is left out ends")


def redis_stalls(tap, daemon, redis):
    redis.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    added = [daemon.add("work", f"meanwhile-{number}")[0] for number in range(5)]
    tap.check(added == [201] * 5, "a Redis that stalls does not stop the API", added)
    code = daemon.stop()
    tap.check(code == 0, "nor the end of the daemon", code)
    process.note(f"stopped {time.monotonic() - began:.1f} s after Redis was")
    redis.process.send_signal(signal.SIGCONT)


def full(tap, folder, redis):
    daemon = process.Daemon(folder, WORK, "limits: { pending: 30, pending_per_tenant: 12 }\nsources:\n" + source(redis, "full", ", delete: true, batch: 10"),
                            store=f"sqlite:{folder}/full.db")
    try:
        daemon.start()
        for number in range(20):
            redis.ask("XADD", "full", "*", "tenant", "a", "payload", number)
        redis.ask("XADD", "full", "*", "tenant", "b", "payload", "b")
        tap.check(process.wait_until(lambda: len(jobs_of(daemon) or []) == 13), "a tenant that has its share holds up nobody else",
                  figures(daemon, "full"))
        for number in range(40):
            redis.ask("XADD", "full", "*", "tenant", f"c{number % 4}", "payload", number)
        tap.check(process.wait_until(lambda: len(jobs_of(daemon) or []) == 30 and figures(daemon, "full").get("state") == "waiting"),
                  "a full store takes no more", figures(daemon, "full"))
        tap.check(len(redis.entries("full")) == 61 - 30, "what is not stored is neither acknowledged nor deleted", len(redis.entries("full")))
        daemon.kill()
        daemon.start()
        done = []

        def work():
            leases = daemon.call("POST", "/v1/leases", {"destination": "work", "max": 20, "wait_s": 1, "lease_s": 30})[1]["leases"]
            done.extend((lease["tenant"], lease["payload"]) for lease in leases)
            if leases:
                daemon.call("POST", "/v1/leases/ack", {"leases": [lease["lease"] for lease in leases]})
            return len(done) >= 61
        tap.check(process.wait_until(work) and not redis.entries("full"), "and goes on by itself when there is room", (len(done), figures(daemon, "full")))
        tap.check(len(set(done)) == len(done) == 61, "each once", len(done))
        mine = [int(payload) for tenant, payload in done if tenant == "a"]
        tap.check(mine == sorted(mine), "those of a tenant in their order", mine)
        tap.check(daemon.stop() == 0, "the daemon stops")
    finally:
        daemon.end()


def nodes_share(tap, folder, redis):
    """Two nodes read as consumers of one group; their store goes away, and one of them dies with what it has read."""
    server = postgres.Server(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
    more = "sources:\n" + source(redis, "shared", ", claim_after: 1s, batch: 5")
    nodes = [process.Daemon(folder, WORK, f"node: {{ name: {name} }}\n{more}", store=server.address()) for name in "ab"]
    try:
        tap.check(server.start() and all(node.start() for node in nodes), "two nodes run")
        for number in range(60):
            redis.ask("XADD", "shared", "*", "tenant", f"t{number % 3}", "payload", number)
        process.wait_until(lambda: len(jobs_of(nodes[0]) or []) >= 20)
        server.stop(signal.SIGQUIT)
        for number in range(60, 80):
            redis.ask("XADD", "shared", "*", "payload", number)
        waits = process.wait_until(lambda: "waiting" in [figures(node, "shared").get("state") for node in nodes])
        tap.check(waits and redis.pending("shared") > 0, "while the store is away nothing is acknowledged", [figures(node, "shared") for node in nodes])
        nodes[1].kill()
        tap.check(server.start(), "the store is back")
        wanted = sorted(f"shared-{entry}" for entry, _ in redis.entries("shared"))
        tap.check(process.wait_until(lambda: redis.pending("shared") == 0 and len(jobs_of(nodes[0]) or []) >= 80),
                  "all goes on, with what the dead node had", (figures(nodes[0], "shared"), redis.ask("XPENDING", "shared", "insist")))
        found = jobs_of(nodes[0])
        tap.check(sorted(found) == wanted, "every entry is exactly one job", (len(found), len(set(found)), len(wanted)))
    finally:
        for node in nodes:
            node.end()
        server.end()


def doctor(tap, daemon, redis):
    def told():
        out = subprocess.run([process.INSIST, "doctor", "-c", daemon.config, "-o", "json"], stdout=subprocess.PIPE, check=False)
        return [(one["result"], one["detail"]) for one in json.loads(out.stdout)["checks"] if one["check"] == "redis"]
    redis.ask("CONFIG", "SET", "maxmemory", "512mb")
    tap.check([result for result, _ in told()] == ["ok"], "doctor finds nothing wrong with a Redis as it should be", told())
    for setting, wrong, right, result, says in (
            ("maxmemory-policy", "allkeys-lru", "noeviction", "fail", "noeviction"), ("appendfsync", "no", "everysec", "fail", "everysec"),
            ("appendonly", "no", "yes", "fail", "appendonly yes"), ("aof-use-rdb-preamble", "no", "yes", "warn", "preamble"),
            ("auto-aof-rewrite-percentage", "0", "100", "warn", "rewrite"), ("auto-aof-rewrite-min-size", "1gb", "64mb", "warn", "64mb"),
            ("maxmemory", "0", "512mb", "warn", "maxmemory")):
        redis.ask("CONFIG", "SET", setting, wrong)
        found = told()
        tap.check(len(found) == 1 and found[0][0] == result and says in found[0][1], f"{setting} {wrong} is told", found)
        redis.ask("CONFIG", "SET", setting, right)
    used = int(next(line for line in redis.ask("INFO", "memory").splitlines() if line.startswith("used_memory:")).split(":")[1])
    for share, result in ((0.85, "warn"), (0.95, "fail")):
        redis.ask("CONFIG", "SET", "maxmemory", int(used / share))
        tap.check(any(found[0] == result and "of" in found[1] for found in told()), f"memory at {share:.0%} is told", told())
    redis.ask("CONFIG", "SET", "maxmemory", "0")


def unsafe_is_an_alert(tap, daemon):
    def alerts():
        return [one["alert"] for one in daemon.call("GET", "/v1/alerts")[1]["alerts"]]
    tap.check(process.wait_until(lambda: {"redis_unsafe", "source_rejected"} <= set(alerts()), every=0.2), "what is unsafe is an alert, and what was rejected",
              (alerts(), figures(daemon, "in")))
    text = daemon.call("GET", "/metrics")[1]
    tap.check('insist_source_up{source="in"} 1' in text and 'insist_source_entries_total{source="in",result="accepted"}' in text,
              "/metrics has the source")


def run(tap, folder, entries):
    redis = Redis(folder)
    daemon = process.Daemon(folder, WORK, "sources:\n" + source(redis, "in", ", claim_after: 1s"))
    try:
        tap.check(redis.start(), "Redis runs")
        tap.check(daemon.start(), "the daemon runs")
        both_die(tap, daemon, redis, entries)
        redis.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        another_consumer_died(tap, daemon, redis)
        entries_of_every_kind(tap, daemon, redis)
        nowhere_to_set_aside(tap, daemon, redis)
        if PLAIN and glob.glob("/usr/lib/postgresql/*/bin"):
            nodes_share(tap, folder, redis)
        full(tap, folder, redis)
        unsafe_is_an_alert(tap, daemon)
        redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        reload(tap, daemon, redis)
        redis_stalls(tap, daemon, redis)
        process.check_database(tap, daemon.database)
        doctor(tap, daemon, redis)
    finally:
        daemon.end()
        if redis.process and redis.process.poll() is None:
            redis.process.send_signal(signal.SIGCONT)
            redis.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=600)
    arguments = parser.parse_args()
    tap, folder = process.Tap(), process.scratch_folder()
    try:
        run(tap, folder, arguments.entries)
    finally:
        process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "detect_leaks=0")
    sys.exit(main())
