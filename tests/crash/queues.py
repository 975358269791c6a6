#!/usr/bin/env python3
"""Jobs to a real Redis and a real RabbitMQ, which are killed on the way, and so is the daemon: none is lost, and those of a key
that are sent one at a time arrive in their order. So do the events of these jobs, which go the same ways.

    tests/crash/queues.py [--jobs N]
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

DESTINATIONS = """\
  stream:
    preset: redis
    url: redis://:secret@127.0.0.1:{redis}/3
    allow_private: true
    redis: {{ stream: jobs }}
    timeout: 5s
    retry: {{ base: 100ms, cap: 500ms, floor: 0s, max_retries: 1000, throttle_min: 0s }}
  queue:
    preset: amqp
    url: amqp://127.0.0.1:{amqp}
    allow_private: true
    amqp: {{ routing_key: jobs }}
    timeout: 10s
    retry: {{ base: 100ms, cap: 500ms, floor: 0s, max_retries: 1000, throttle_min: 0s }}
  told-stream:
    preset: redis
    url: redis://:secret@127.0.0.1:{redis}/3
    allow_private: true
    redis: {{ stream: events }}
    timeout: 5s
    retry: {{ base: 100ms, cap: 500ms, floor: 0s, max_retries: 1000, throttle_min: 0s }}
  told-queue:
    preset: amqp
    url: amqp://127.0.0.1:{amqp}
    allow_private: true
    amqp: {{ routing_key: events }}
    timeout: 10s
    retry: {{ base: 100ms, cap: 500ms, floor: 0s, max_retries: 1000, throttle_min: 0s }}
  nowhere:
    preset: amqp
    url: amqp://127.0.0.1:{amqp}
    allow_private: true
    amqp: {{ routing_key: no-such-queue }}
  missing:
    preset: amqp
    url: amqp://127.0.0.1:{amqp}
    allow_private: true
    amqp: {{ exchange: no-such-exchange, routing_key: x }}
  stranger:
    preset: amqp
    url: amqp://nobody:wrong@127.0.0.1:{amqp}
    allow_private: true
    amqp: {{ routing_key: jobs }}
"""

TO_STREAM = "  - { name: s, to: told-stream, on: [all] }\n"
TO_QUEUE = "  - { name: q, to: told-queue, on: [attempt, accepted] }\n"
QUEUED_TYPES = ("accepted", "completed", "retry_scheduled", "released", "dead")  # those that the entry above names

KEYS = 4
WITH_RABBIT = "variant" not in process.BUILD  # its start takes ten seconds: once is enough


class Redis:
    """With every write on the disk before it is answered: what it has answered it keeps."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, process.free_port(), None

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--appendonly", "yes",
             "--appendfsync", "always", "--save", "", "--requirepass", "secret"], stdout=subprocess.DEVNULL)
        return process.wait_until(lambda: self.ask("PING") == ["PONG"], every=0.05)

    def ask(self, *words):
        out = subprocess.run(["redis-cli", "-p", str(self.port), "-n", "3", "--no-auth-warning", "-a", "secret", *words],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return out.stdout.decode().split("\n")[:-1]

    def payloads(self, stream="jobs"):
        lines = self.ask("XRANGE", stream, "-", "+")
        return [lines[i + 1] for i in range(len(lines) - 1) if lines[i] == "payload"]

    def kill(self):
        self.process.kill()
        self.process.wait()


class Rabbit:
    """A node of its own: folder, ports, name and name service."""

    def __init__(self, folder):
        self.folder, self.port, self.distribution = folder, process.free_port(), process.free_port()
        self.names = None
        self.process = None
        self.names_port = process.free_port()
        self.url = f"amqp://127.0.0.1:{self.port}"
        with open(os.path.join(folder, "plugins"), "w") as out:
            out.write("[].\n")

    def environment(self):
        return {"PATH": os.environ["PATH"] + ":/usr/sbin", "HOME": self.folder, "RABBITMQ_NODENAME": f"insist{self.port}@localhost",
                "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(self.port),
                "RABBITMQ_DIST_PORT": str(self.distribution), "RABBITMQ_MNESIA_BASE": os.path.join(self.folder, "mnesia"),
                "RABBITMQ_LOG_BASE": os.path.join(self.folder, "log"), "RABBITMQ_CONFIG_FILE": os.path.join(self.folder, "none"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": os.path.join(self.folder, "plugins"), "ERL_EPMD_PORT": str(self.names_port),
                "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_CTL_ERL_ARGS": "", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1"}

    @staticmethod
    def program():
        """The server's own script: the one in the PATH wants to be another user."""
        top = "/usr/lib/rabbitmq/lib"
        found = [os.path.join(top, name, "sbin/rabbitmq-server") for name in (os.listdir(top) if os.path.isdir(top) else [])]
        return next((path for path in found if os.access(path, os.X_OK)), None)

    def start(self, wait=True):
        if not self.names:  # else the server would leave one behind
            self.names = subprocess.Popen(["epmd", "-port", str(self.names_port), "-address", "127.0.0.1"],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        out = open(os.path.join(self.folder, "out"), "ab")
        self.process = subprocess.Popen([self.program()], env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                        cwd=self.folder, start_new_session=True)
        out.close()
        return self.ready() if wait else None

    def ready(self):
        return all(process.wait_until(lambda: self.tool("amqp-declare-queue", "-d", "-q", name).returncode == 0, 180, 0.3)
                   for name in ("jobs", "events"))

    def tool(self, name, *words):
        return subprocess.run([name, "--url", self.url, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)

    def payloads(self, queue="jobs"):
        found = []
        while True:
            one = self.tool("amqp-get", "-q", queue)
            if one.returncode != 0:
                return found
            found.append(one.stdout.decode())

    def kill(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end(self):
        self.kill()
        if self.names:
            self.names.kill()
            self.names.wait()


class Chain(threading.Thread):
    """Jobs that belong together: the next is added when the one before is done."""

    def __init__(self, daemon, destination, key, count):
        super().__init__(daemon=True)
        self.insist, self.destination, self.key, self.count, self.done = daemon, destination, key, count, 0
        self.start()

    def is_done(self, job):
        found = self.insist.call("GET", f"/v1/jobs/{job}?tenant={self.key}")[1]
        return isinstance(found, dict) and found.get("state") == "completed"

    def run(self):
        for number in range(self.count):
            job = f"{self.destination}-{self.key}-{number}"
            added = {201, 200}  # the answer may be lost with the daemon
            if not process.wait_until(lambda: self.insist.add(self.destination, job, self.key, f"{self.key} {number}")[0] in added, 180):
                return
            if not process.wait_until(lambda: self.is_done(job), 240, 0.05):
                return
            self.done += 1


def in_order(tap, name, found, count):
    """Each is there; a second copy comes only after a doubt, and before the next one of its key."""
    keys = {}
    for text in found:
        key, number = text.split()
        keys.setdefault(key, []).append(int(number))
    tap.check(len(keys) == KEYS and all(set(numbers) == set(range(count)) for numbers in keys.values()), f"{name}: none is lost", keys)
    tap.check(all(numbers == sorted(numbers) for numbers in keys.values()), f"{name}: those of a key are in their order", keys)
    process.note(f"{name}: {len(found)} for {KEYS * count} jobs")


def trail(daemon):
    """The events of all jobs but those that are told of nothing, by number: type, destination, whose job."""
    found, after = {}, ""
    while True:
        page = daemon.call("GET", f"/v1/events?limit=1000&after={after}")[1]
        if not isinstance(page, dict):
            return None
        for event in page["events"]:
            if event.get("job") and event["destination"] not in ("told-stream", "told-queue"):
                found[int(event["id"])] = (event["type"], event["destination"], (event.get("tenant"), event["job"]))
        after = page.get("next")
        if not after:
            return found


def told(payloads):
    """Number and whose job of each event, as they came."""
    events = [json.loads(text) for text in payloads]
    return [(int(event["id"]), (event["data"].get("tenant"), event["subject"])) for event in events]


def none_lost(tap, name, events, wanted):
    """Each is there; those of a job are in their order. A second copy comes only after a doubt, and before the next one.

    S0-075, S1-047.
    """
    there = {number for number, _ in events}
    tap.check(not set(wanted) - there, f"{name}: no event is lost", {n: wanted[n] for n in set(wanted) - there})
    jobs = {}
    for number, job in events:
        jobs.setdefault(job, []).append(number)
    wrong = {job: numbers for job, numbers in jobs.items() if numbers != sorted(numbers)}
    tap.check(not wrong, f"{name}: those of a job are in their order", wrong)
    process.note(f"{name}: {len(events)} for {len(wanted)} events of {len(jobs)} jobs")


def events_end(tap, name, daemon, redis):
    """All that has happened so far, once Redis has been told of it, and with it every other that is told."""
    wanted = trail(daemon)
    tap.check(wanted, f"{name}: there are events")
    process.wait_until(lambda: set(wanted) <= {number for number, _ in told(redis.payloads("events"))}, 240, 0.3)
    none_lost(tap, name, told(redis.payloads("events")), wanted)
    return wanted


def says(daemon, job, text):
    return process.wait_until(lambda: text in str(daemon.call("GET", f"/v1/jobs/{job}?tenant=t")[1]), every=0.2)


def refusals(tap, daemon):
    for name, code, what in (("nowhere", "amqp:312", "a message without a queue"), ("missing", "amqp:404", "an exchange that is not there"),
                             ("stranger", "amqp:403", "a login that is refused")):
        daemon.add(name, f"{name}-1")
        tap.check(says(daemon, f"{name}-1", code), f"{what} is told ({code})", daemon.call("GET", f"/v1/jobs/{name}-1?tenant=t"))
        tap.check(says(daemon, f"{name}-1", "'blocked'"), "and holds its job")


def chains_end(tap, name, chains):
    for chain in chains:
        chain.join(300)
    tap.check(all(chain.done == chain.count for chain in chains), f"{name}: all are delivered", [chain.done for chain in chains])


def some_done(chains):
    return process.wait_until(lambda: sum(chain.done for chain in chains) >= KEYS, 180)


def redis_dies(tap, daemon, redis, jobs):
    chains = [Chain(daemon, "stream", f"k{key}", jobs) for key in range(KEYS)]  # from its first moment on
    tap.check(daemon.start(), "the daemon runs")
    for _ in range(3):
        some_done(chains)
        redis.kill()
        time.sleep(0.2)
        redis.start()
    daemon.kill()
    daemon.start()
    chains_end(tap, "Redis", chains)
    in_order(tap, "Redis", redis.payloads(), jobs)
    events_end(tap, "told by Redis", daemon, redis)


def rabbit_dies(tap, daemon, redis, rabbit, jobs):
    chains = [Chain(daemon, "queue", f"k{key}", jobs) for key in range(KEYS)]
    some_done(chains)
    rabbit.kill()
    rabbit.start(wait=False)
    daemon.kill()
    daemon.start()
    tap.check(rabbit.ready(), "RabbitMQ runs again")
    refusals(tap, daemon)
    chains_end(tap, "RabbitMQ", chains)
    in_order(tap, "RabbitMQ", rabbit.payloads(), jobs)
    wanted = {number: event for number, event in events_end(tap, "told by Redis", daemon, redis).items()
              if event[1] == "queue" and event[0] in QUEUED_TYPES}
    tap.check(daemon.drained(["told-queue"], 240), "told by RabbitMQ: all are delivered")
    none_lost(tap, "told by RabbitMQ", told(rabbit.payloads("events")), wanted)


def run(tap, folder, jobs):
    redis, rabbit = Redis(folder), Rabbit(folder) if WITH_RABBIT else None
    destinations = DESTINATIONS.format(redis=redis.port, amqp=rabbit.port if rabbit else 1)
    daemon = process.Daemon(folder, destinations, "events:\n" + TO_STREAM)
    try:
        if rabbit:
            rabbit.start(wait=False)  # takes its time
        tap.check(redis.start(), "Redis runs")
        redis_dies(tap, daemon, redis, jobs)
        if rabbit:
            tap.check(rabbit.ready(), "RabbitMQ runs")
            daemon.write_config(destinations, "events:\n" + TO_STREAM + TO_QUEUE)
            tap.check(daemon.stop() == 0 and daemon.start(), "the daemon tells RabbitMQ of events from now on")
            rabbit_dies(tap, daemon, redis, rabbit, jobs)
        tap.check(daemon.stop() == 0, "the daemon stops")
        process.check_database(tap, daemon.database)
    finally:
        daemon.end()
        if redis.process and redis.process.poll() is None:
            redis.kill()
        if rabbit:
            rabbit.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=6, help="of each key")
    options = parser.parse_args()
    tap = process.Tap()
    folder = process.scratch_folder()
    if WITH_RABBIT and not Rabbit.program():
        print("Bail out! there is no rabbitmq-server")
        return 1
    run(tap, folder, options.jobs)
    process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
