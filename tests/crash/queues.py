#!/usr/bin/env python3
"""Jobs to a real Redis and a real RabbitMQ, which are killed on the way, and so is the daemon: none is lost, and those of a key
that are sent one at a time arrive in their order.

    tests/crash/queues.py [--jobs N]
"""
import argparse
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

    def payloads(self):
        lines = self.ask("XRANGE", "jobs", "-", "+")
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
        return process.wait_until(lambda: self.tool("amqp-declare-queue", "-d", "-q", "jobs").returncode == 0, 180, 0.3)

    def tool(self, name, *words):
        return subprocess.run([name, "--url", self.url, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)

    def payloads(self):
        found = []
        while True:
            one = self.tool("amqp-get", "-q", "jobs")
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
    chains = [Chain(daemon, "stream", f"k{key}", jobs) for key in range(KEYS)]
    for _ in range(3):
        some_done(chains)
        redis.kill()
        time.sleep(0.2)
        redis.start()
    daemon.kill()
    daemon.start()
    chains_end(tap, "Redis", chains)
    in_order(tap, "Redis", redis.payloads(), jobs)


def rabbit_dies(tap, daemon, rabbit, jobs):
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


def run(tap, folder, jobs):
    redis, rabbit = Redis(folder), Rabbit(folder) if WITH_RABBIT else None
    daemon = process.Daemon(folder, DESTINATIONS.format(redis=redis.port, amqp=rabbit.port if rabbit else 1))
    try:
        if rabbit:
            rabbit.start(wait=False)  # takes its time
        tap.check(redis.start(), "Redis runs")
        tap.check(daemon.start(), "the daemon runs")
        redis_dies(tap, daemon, redis, jobs)
        if rabbit:
            tap.check(rabbit.ready(), "RabbitMQ runs")
            rabbit_dies(tap, daemon, rabbit, jobs)
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
