#!/usr/bin/env python3
"""Kills the daemon and its PostgreSQL under load, then asks whether it kept its word.

    tests/crash/postgres.py [--rounds N] [--seed N] [--keep]

A private server in a temporary folder, with fsync on, as an unprivileged user. In each round the daemon is killed, or the
server is stopped, killed or taken away for a while. Every job that was acknowledged must end, once; while the server is away
nothing is accepted, and the daemon says so; the store must be whole. The rest is as in crash.py. Then no standby answers, of
which one must, so that no commit ends. At last a standby takes over.
"""
import argparse
import os
import pwd
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import crash  # noqa: E402
import process  # noqa: E402

UP_S = (0.2, 1.0)
STOP_S = 45  # as the service's TimeoutStopSec


class Server:
    """PostgreSQL, on a socket in its folder; with a port also on loopback, where a password is asked for. One that follows another is
    its standby, and can only be read."""

    def __init__(self, programs, superuser="insist", port=None, follows=None):
        self.programs, self.superuser, self.port = programs, superuser, port or 5432
        self.addresses = "127.0.0.1" if port else ""
        self.folder = tempfile.mkdtemp(prefix="insist-pg-")
        self.user = None
        if os.geteuid() == 0:
            self.user = next(name for name in ("postgres", "nobody") if any(row.pw_name == name for row in pwd.getpwall()))
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, pwd.getpwnam(self.user).pw_gid)
        self.log = open(os.path.join(self.folder + ".log"), "ab")
        self.process = None
        data = os.path.join(self.folder, "data")
        if follows:
            self.run("pg_basebackup", "-D", data, "-h", follows.folder, "-U", superuser, "-R", "-c", "fast", "--no-sync").wait()
        else:
            self.run("initdb", "-D", data, "-A", "trust", "--auth-host=scram-sha-256", "-U", superuser, "-E", "UTF8", "--no-locale").wait()

    def run(self, program, *arguments):
        user = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []} if self.user else {}
        return subprocess.Popen([os.path.join(self.programs, program), *arguments], stdin=subprocess.DEVNULL, stdout=self.log,
                                stderr=self.log, cwd=self.folder, **user)

    def start(self):
        """Again and again: some processes of one that was killed may still be there, and it refuses to be beside them."""
        def is_up():
            if not self.process or self.process.poll() is not None:
                self.process = self.run("postgres", "-D", os.path.join(self.folder, "data"), "-c", f"listen_addresses={self.addresses}",
                                        "-c", f"port={self.port}", "-c", f"unix_socket_directories={self.folder}",
                                        "-c", "shared_buffers=32MB", "-c", "authentication_timeout=5s")
            return self.ask("SELECT 1") == [["1"]]
        return process.wait_until(is_up, every=0.1)

    def stop(self, number):
        if self.process:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def ask(self, sql):
        answer = subprocess.run([os.path.join(self.programs, "psql"), "-X", "-q", "-A", "-t", "-F", "\t", "-h", self.folder,
                                 "-p", str(self.port), "-U", self.superuser, "-d", "postgres", "-c", sql], capture_output=True, text=True)
        return [line.split("\t") for line in answer.stdout.splitlines()] if answer.returncode == 0 else None

    def address(self, *others, schema=None):
        """Its own; or of those that can be written, the first."""
        path = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgres:///postgres?host={','.join(server.folder for server in (self, *others))}&user=insist{path}"

    def end(self):
        self.stop(signal.SIGQUIT)
        self.log.close()
        os.unlink(self.folder + ".log")
        shutil.rmtree(self.folder, ignore_errors=True)


def away(tap, daemon, server, dice, number):
    """The server goes, and comes back. Meanwhile the daemon lives, and takes nothing."""
    server.stop(number)
    refused = process.wait_until(lambda: daemon.call("GET", "/readyz")[0] == 503)
    tap.check(refused and daemon.call("GET", "/livez")[0] == 200, f"it waits for a server that got {signal.Signals(number).name}",
              daemon.said()[-2000:])
    tap.check(daemon.add("d", "while-it-is-away")[0] == 503, "nothing is accepted meanwhile")
    time.sleep(dice.uniform(0, 1.5))
    tap.check(server.start(), "the server starts again")
    back = process.wait_until(lambda: daemon.call("GET", "/readyz")[0] == 200)
    tap.check(back, "and it goes on when the server is back", daemon.said()[-2000:])


def live(tap, daemon, server, dice, rounds, submitters):
    kills = []
    daemon.start()
    for submitter in submitters:
        submitter.start()
    for number in [dice.choice((signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, None, None)) for _ in range(rounds)]:
        time.sleep(dice.uniform(*UP_S))
        before = process.now_ms()
        if number is None:
            daemon.kill()
            tap.check(daemon.start(), "it starts after a kill", daemon.said()[-2000:])
        else:
            away(tap, daemon, server, dice, number)
        kills.append((before, process.now_ms()))
    time.sleep(dice.uniform(*UP_S))
    return kills


def look(tap, daemon):
    """From outside: what doctor and audit find."""
    for command in (["audit", "verify"], ["doctor"]):
        done = subprocess.run([process.INSIST, *command, "-c", daemon.config], capture_output=True, text=True)
        tap.check(done.returncode == 0, f"insist {' '.join(command)} finds no fault", done.stdout + done.stderr)


def interrupted(daemon):
    """Attempts that were not settled at a kill: while the server is away answers wait, also of what was claimed ahead."""
    return sum(int(count) for count in re.findall(r'"event":"attempts_recovered","count":(\d+)', daemon.said()))


def judge(tap, daemon, server, receiver, submitters, kills):
    acknowledged = [name for submitter in submitters for name in submitter.acknowledged]
    strange = [answer for submitter in submitters for answer in submitter.strange]
    tap.check(not strange, "no request got a strange answer", strange[:5])
    tap.check(daemon.drained(["d"], crash.DRAIN_S), "it works off what is left", daemon.counts("d"))
    look(tap, daemon)
    code = daemon.stop()
    tap.check(code == 0, "it stops in order", f"exit code {code}\n{daemon.said()[-2000:]}")
    names = "convert_from(l.tenant, 'UTF8'), convert_from({}, 'UTF8')"
    states = {(tenant, job): int(state) for tenant, job, state in server.ask(
        f"SELECT {names.format('j.id')}, coalesce(s.state, 1) FROM job j JOIN lane l ON l.id = j.lane"
        " LEFT JOIN state s ON s.seq = j.seq")}
    events = {}
    for tenant, job, *numbers in server.ask(
            f"SELECT {names.format('v.job')}, v.type, v.state, v.attempt, v.at FROM event v JOIN lane l ON l.id = v.lane"
            " WHERE v.job <> '' ORDER BY v.number"):
        events.setdefault((tenant, job), []).append(tuple(int(number) for number in numbers))
    crash.check_ends(tap, acknowledged, events, states)
    crash.check_requests(tap, receiver.seen(), kills, events, states, interrupted(daemon))
    process.note(f"{len(kills)} kills, {len(acknowledged)} jobs acknowledged")


def check_unheard(tap, folder, server):
    """A commit that waits for a standby which is gone waits for ever: nobody else does. One daemon has its store for itself, one is a node."""
    daemons = {}
    for name, more in (("alone", ""), ("node", "node: { name: one }\n")):
        server.ask(f"CREATE SCHEMA {name}")
        daemons[name] = process.Daemon(folder, "  idle: { transport: pull }\n", more, store=f"'{server.address(schema=name)}'")
    try:
        for name, daemon in daemons.items():
            tap.check(daemon.start() and daemon.add("idle", "before")[0] == 201, f"{name}: it takes a job", daemon.said()[-1000:])
        server.ask("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        server.ask("SELECT pg_reload_conf()")
        process.wait_until(lambda: server.ask("SHOW synchronous_standby_names") == [["nobody"]])
        adding = [threading.Thread(target=daemon.add, args=("idle", "meanwhile")) for daemon in daemons.values()]
        for thread in adding:
            thread.start()
        for name, daemon in daemons.items():
            tap.check(process.wait_until(lambda d=daemon: d.call("GET", "/readyz")[0] == 503),
                      f"{name}: it says that the store is away", daemon.said()[-1000:])
        for thread in adding:
            thread.join()
        for name, daemon in daemons.items():
            tap.check(daemon.add("idle", "refused")[0] == 503, f"{name}: nothing is accepted meanwhile", daemon.said()[-1000:])
            began = time.monotonic()
            code = daemon.stop(2 * STOP_S)
            took = time.monotonic() - began
            tap.check(code is not None and took < STOP_S, f"{name}: and it can be stopped",
                      f"exit code {code} after {took:.1f} s\n{daemon.said()[-2000:]}")
        server.ask("ALTER SYSTEM RESET synchronous_standby_names")
        server.ask("SELECT pg_reload_conf()")
        for name, daemon in daemons.items():
            again = daemon.start() and daemon.add("idle", "meanwhile")[0] in (200, 201)
            tap.check(again, f"{name}: it goes on when commits end", daemon.said()[-1000:])
            jobs = server.ask(f"SELECT convert_from(id, 'UTF8'), count(*) FROM {name}.job GROUP BY 1 ORDER BY 1")
            tap.check(jobs == [["before", "1"], ["meanwhile", "1"]], f"{name}: with each job once", jobs)
            look(tap, daemon)
            tap.check(daemon.stop() == 0, f"{name}: and stops in order", daemon.said()[-1000:])
    finally:
        for daemon in daemons.values():
            daemon.end()


def check_standby(tap, daemon, server):
    """One that can only be read is refused, and passed over for one that can be written; when it can be, it takes its place."""
    standby = Server(server.programs, follows=server)

    def on(address):
        daemon.store = f"'{address}'"
        daemon.write_config("  idle: { transport: pull }\n")
    try:
        tap.check(standby.start(), "a standby starts")
        on(standby.address())
        daemon.start(wait=False)
        tap.check(daemon.process.wait(process.WAIT_S) != 0 and "session is read-only" in daemon.said(), "the daemon does not start on it",
                  daemon.said()[-1000:])
        on(standby.address(server))
        tap.check(daemon.start() and daemon.add("idle", "before")[0] == 201, "but on the other, whichever comes first", daemon.said()[-1000:])
        server.stop(signal.SIGINT)  # which tells the standby everything
        tap.check(standby.ask("SELECT pg_promote()") == [["t"]], "it takes over")
        tap.check(process.wait_until(lambda: daemon.add("idle", "after")[0] in (200, 201)), "and the daemon goes on there", daemon.said()[-1000:])
        tap.check(daemon.call("GET", "/v1/jobs/before?tenant=t")[0] == 200, "with what it had")
        tap.check(daemon.stop() == 0, "and stops in order", daemon.said()[-1000:])
    finally:
        standby.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="leave the files behind")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    process.note(f"--seed {seed} --rounds {options.rounds}")
    tap = process.Tap()
    programs = process.postgres_programs(tap, "the daemon on PostgreSQL")
    if not programs:
        return tap.end()
    folder = process.scratch_folder()
    receiver = process.Receiver(crash.fate)
    server = Server(programs)
    daemon = process.Daemon(folder, crash.DESTINATION.format(port=receiver.port, concurrency=crash.CONCURRENCY),
                            store=server.address())
    stop = threading.Event()
    submitters = [crash.Submitter(daemon.port, who, stop) for who in range(crash.SUBMITTERS)]
    try:
        tap.check(server.start(), "PostgreSQL starts")
        kills = live(tap, daemon, server, random.Random(seed), options.rounds, submitters)
        stop.set()
        for submitter in submitters:
            submitter.join()
        judge(tap, daemon, server, receiver, submitters, kills)
        check_unheard(tap, folder, server)
        check_standby(tap, daemon, server)
    finally:
        stop.set()
        daemon.end()
        server.end()
        receiver.close()
        process.clear(tap, folder, options.keep)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
