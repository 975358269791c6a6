#!/usr/bin/env python3
"""Three nodes on one PostgreSQL, and everything that can happen to them.

    tests/crash/nodes.py [--seed N] [--schedules N] [--seconds S] [--keep]

Each schedule, by its seed: jobs go in at all three nodes, with ids and without, while nodes are killed, stopped and let go on,
cut off from the server by a proxy of their own (delayed, cut, swallowed one way or both), stopped in order and started, and the
server is killed or taken away, several of these at once. Then the faults end, and it is judged: every acknowledged job ended,
once; a second request for a job began after the first had ended, or could not last any more; never more at once at a
destination than it allows, and in no stretch of time more than its rate; every destination has one owner within ten seconds; every
chain verifies; the store is whole; no node ended by itself. The same nodes then play the next schedule. Before the first, how long it
takes from the death of a node to the first send of another is measured, and a stop in order.
"""
import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import cluster as parts  # noqa: E402
import postgres  # noqa: E402
import process  # noqa: E402
from cluster import BURST, CONCURRENCY, DESTINATIONS, NODES, RATE, TIMEOUT_S  # noqa: E402

SLACK_S = 0.3     # of this process's clock, which notes a request when its thread runs; and twice as much as it was late
OWNED_S = 10
DRAINED_S = 45    # what waits for a takeover's grace and for the rate, on a busy machine
LONG_S = 60       # that the server is away for in one of ten schedules, where those are long
STOPPED_S = 1     # in order, until another has what it had; sends under way may last longer
SHORT_S = 10      # a schedule of fewer seconds has few faults that outlast a node's trust
GAP_S = (0.1, 0.7)
AFTER_S = 0.5     # that the clients go on behind the faults


def measure(tap, cluster, watch):
    """A takeover, and a stop in order."""
    owners = cluster.owners()
    victim = owners["d0"]
    other = next(name for name in NODES if name != victim)
    cluster.nodes[victim].kill()
    watch.begin()
    died = time.monotonic()
    cluster.nodes[other].add("d0", "after-the-death")

    def taken_over():
        return any(row[1] == "d0" and row[2] > died for row in cluster.receiver.seen())
    tap.check(process.wait_until(taken_over), "another sends for a node that was killed", cluster.said())
    took = time.monotonic() - died
    tap.check(took < OWNED_S + watch.sum, f"{took:.1f} s from the death of a node to the first send of another", cluster.said())

    def gone():
        status, body = cluster.nodes[other].call("GET", "/v1/alerts")
        return [alert["reason"] for alert in body["alerts"] if alert["alert"] == "node_gone"] if status == 200 else None
    tap.check(process.wait_until(lambda: any(reason.startswith(victim + " since") for reason in gone() or [])),
              "an alert names who is gone", gone())
    tap.check(cluster.nodes[victim].start(), "and it starts again", cluster.said())
    tap.check(process.wait_until(lambda: gone() == []), "and the alert is over", gone())
    tap.check(cluster.owned(OWNED_S * 3), "every destination has an owner", cluster.owners())
    leaver = cluster.owners()["d0"]
    session = cluster.server.ask("SELECT session FROM shard WHERE destination = 'd0'")[0][0]
    stop = threading.Event()
    clients = [Retrier(cluster, leaver, who, stop) for who in range(2)]
    for client in clients:
        client.start()
    began, late = time.monotonic(), watch.sum
    code = cluster.nodes[leaver].stop()
    tap.check(code == 0, "a node stops in order", f"{code}\n" + cluster.said())
    tap.check(process.wait_until(lambda: cluster.owners().get("d0") not in ("", leaver, None)), "and another has what it had")
    took = time.monotonic() - began
    longest = max([row[3] - max(row[2], began) for row in cluster.receiver.seen() if row[3] and row[3] > began] + [0])
    tap.check(took < STOPPED_S + longest + watch.sum - late, f"{took:.2f} s from the order to stop to another owner", cluster.said())
    tap.check(not any(f'"node_fenced","session":{session},' in cluster.nodes[name].said() for name in NODES),
              "without taking it for dead", cluster.said())
    stop.set()
    for client in clients:
        client.join()
    failed = [job for client in clients for job in client.failed]
    tap.check(not failed, "who tries once more elsewhere noticed nothing", failed[:5])
    tap.check(cluster.nodes[leaver].start(), "it starts again", cluster.said())


class Retrier(threading.Thread):
    """A client of the node that is stopped, which tries another once."""

    def __init__(self, cluster, leaver, who, stop):
        super().__init__(daemon=True)
        others = [name for name in NODES if name != leaver]
        self.first, self.second = cluster.nodes[leaver], cluster.nodes[others[who % len(others)]]
        self.who, self.stop, self.failed = who, stop, []

    def run(self):
        count = 0
        while not self.stop.is_set():
            job = f"retried{self.who}-{count}"
            if all(node.add("d1", job)[0] not in (200, 201) for node in (self.first, self.second)):
                self.failed.append(job)
            count += 1
            time.sleep(parts.PAUSE_S)


class Schedule:
    """Faults by chance, several at once, but one at a time of each node and of the server; and what ends each."""

    def __init__(self, cluster, seed, seconds):
        self.cluster, self.dice, self.seconds = cluster, random.Random(seed), seconds
        self.long = seconds >= SHORT_S and seed % 10 == 0
        self.heals = {}     # of a target: when, and what
        self.down, self.starting = set(), set()  # nodes that were ended; and those that were started and are not ready yet
        self.history, self.ended = [], []

    def lasts(self):
        if self.seconds < SHORT_S and self.dice.random() < 0.75:
            return self.dice.choice((0.3, 1, 2))
        return self.dice.choice((0.3, 1, 3, 7.5))

    def begin(self, target):
        seconds = self.lasts()
        if target == "server":
            seconds = LONG_S if self.long else min(seconds, 3)
            self.long = False
            self.cluster.server.process.send_signal(self.dice.choice((signal.SIGINT, signal.SIGQUIT)))
            what, heal = "away", self.restart
        else:
            what = self.dice.choice(("kill", "kill", "pause", "pause", "stop", "delay", "cut", "swallow", "mute", "deafen"))
            heal = self.hurt(target, what)
        self.history.append(f"{target} {what} {seconds} s")
        self.heals[target] = (time.monotonic() + seconds, heal)

    def restart(self):
        """Meanwhile the rest goes on: the server may wait for connections whose proxy swallows what they say."""
        def run():
            self.cluster.server.stop(signal.SIGINT)
            self.cluster.server.start()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def hurt(self, name, what):
        node, proxy = self.cluster.nodes[name], self.cluster.proxies[name]
        if what == "pause":
            node.signal(signal.SIGSTOP)
            return lambda: node.signal(signal.SIGCONT)
        if what in ("kill", "stop"):
            self.down.add(name)
            node.signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            return lambda: self.start(name)
        proxy.set(what)
        return lambda: proxy.set("pass")

    def start(self, name):
        node = self.cluster.nodes[name]
        try:
            node.process.wait(process.WAIT_S)
        except subprocess.TimeoutExpired:
            self.ended.append((name, "it did not stop"))
            node.kill()
        node.start(wait=False)
        self.starting.add(name)
        self.down.discard(name)

    def tend(self):
        """Who does not come up because the server is away is started again, as a supervisor does it; nobody ends by itself."""
        for name in NODES:
            node = self.cluster.nodes[name]
            if name in self.down:
                continue
            if node.process.poll() is None:
                if name in self.starting and node.call("GET", "/livez", timeout=1)[0] == 200:
                    self.starting.discard(name)
            elif name in self.starting:
                node.start(wait=False)
            else:
                self.ended.append((name, node.process.returncode, node.said()[-600:]))
                self.start(name)

    def play(self):
        until = time.monotonic() + self.seconds
        following = time.monotonic()
        while time.monotonic() < until or self.heals:
            for target, (when, heal) in list(self.heals.items()):
                if time.monotonic() < when:
                    continue
                running = heal()
                if running:
                    self.heals[target] = (when, lambda running=running: running if running.is_alive() else None)
                else:
                    del self.heals[target]
            free = [target for target in (*NODES, *NODES, "server") if target not in self.heals and target not in self.starting]
            if following <= time.monotonic() < until and free:
                self.begin("server" if self.long and "server" in free else self.dice.choice(free))
                following = time.monotonic() + self.dice.uniform(*GAP_S)
            self.tend()
            time.sleep(0.02)

    def settle(self):
        """Until all nodes have come up."""
        def all_are_up():
            self.tend()
            return not self.starting
        return process.wait_until(all_are_up, every=0.05)


def check_concurrency(tap, destination, rows, slack):
    """A sender that gives up begins another at once, and the receiver hears of the end a moment later: its limit counts."""
    spans = [(row[2], row[3] if row[4] else min(row[3], row[2] + TIMEOUT_S - min(slack, TIMEOUT_S)), row) for row in rows]
    marks = sorted([(began, 1) for began, _, _ in spans] + [(ended, -1) for _, ended, _ in spans])
    most = now = fullest = 0
    for at, change in marks:
        now += change
        if now > most:
            most, fullest = now, at
    crowd = [row for began, ended, row in spans if began <= fullest < ended] if most > CONCURRENCY else []
    tap.check(most <= CONCURRENCY, f"never more than {CONCURRENCY} at once at {destination}", f"{most}, slack {slack:.3f} s: {crowd}")


def check_requests(tap, rows, slack):
    """By the receiver's clock, which is this process's. S4-024"""
    spans = collections.defaultdict(list)
    for key, _, began, ended, status in rows:
        spans[key].append((began, ended if ended is not None else began + TIMEOUT_S, status))
    early = []
    for key, list_ in spans.items():
        list_.sort()
        for (began, ended, _), (again, _, _) in zip(list_, list_[1:]):
            if again < ended - slack and again < began + TIMEOUT_S - slack:
                early.append((key, began, ended, again))
    tap.check(not early, "no job is sent while it is being sent", early[:5])
    for destination in DESTINATIONS:
        check_concurrency(tap, destination, [row for row in rows if row[1] == destination and row[3]], slack)
    return sum(sum(status == 200 for _, _, status in list_) > 1 for list_ in spans.values())


def check_rate(tap, rows, slack):
    """In no stretch of time more than the burst and what the rate brings in it: the greatest excess over all of them."""
    least, worst = None, 0.0
    for count, began in enumerate(sorted(row[2] for row in rows if row[1] == "d2")):
        place = count - RATE * began
        least = place if least is None else min(least, place)
        worst = max(worst, place + 1 - least)
    tap.check(worst <= BURST + RATE * slack, f"d2 gets no more than its rate brings: {worst:.1f} at once of {BURST}",
              f"slack {slack:.2f} s")


def left_over(server):
    """Where the jobs are that have not ended: in which tables, and since when."""
    return server.ask(
        "SELECT convert_from(j.id, 'UTF8'), convert_from(l.destination, 'UTF8'), l.id, s.state, s.run_at, 'timer', t.shard, t.at,"
        " 'queue', q.rank, 'lease', e.session, e.until, 'shard', h.id, h.session, 'count', n.slot, n.pending, n.running,"
        " n.waiting, n.ready FROM job j JOIN lane l ON l.id = j.lane JOIN shard h ON h.id = l.shard LEFT JOIN state s ON"
        " s.seq = j.seq LEFT JOIN timer t ON t.seq = j.seq LEFT JOIN queue q ON q.seq = j.seq LEFT JOIN lease e ON"
        " e.seq = j.seq LEFT JOIN lane_count n ON n.lane = l.id WHERE coalesce(s.state, 1) IN (1, 2, 3) OR e.seq IS NOT NULL"
        " LIMIT 20")


def judge(tap, cluster, submitters, rows_before, watch):
    acknowledged = [name for submitter in submitters for name in submitter.acknowledged]
    strange = [answer for submitter in submitters for answer in submitter.strange]
    tap.check(not strange, "no request got a strange answer", strange[:5])

    def open_jobs():
        rows = cluster.server.ask("SELECT coalesce(sum(pending + running + waiting), -1) FROM lane_count")
        return int(rows[0][0]) if rows else -1
    tap.check(process.wait_until(lambda: open_jobs() == 0, DRAINED_S, 0.2), "they work off what is left",
              f"{open_jobs()} jobs are left\n{left_over(cluster.server)}\n" + cluster.said())
    states = {(tenant, job): int(state) for tenant, job, state in cluster.server.ask(
        "SELECT convert_from(l.tenant, 'UTF8'), convert_from(j.id, 'UTF8'), coalesce(s.state, 1) FROM job j"
        " JOIN lane l ON l.id = j.lane LEFT JOIN state s ON s.seq = j.seq")}
    lost = [name for name in acknowledged if name not in states]
    tap.check(not lost, f"all {len(acknowledged)} acknowledged jobs are there", lost[:10])
    undone = [name for name, state in states.items() if state not in (process.STATE_COMPLETED, process.STATE_DEAD)]
    tap.check(not undone, "each ended", undone[:10])
    twice = cluster.server.ask("SELECT convert_from(job, 'UTF8'), lane, count(*) FROM event WHERE state IN (4, 5) AND job <> ''"
                               " GROUP BY 1, 2 HAVING count(*) > 1 LIMIT 5")
    tap.check(twice == [], "each ended once", twice)
    rows, slack = cluster.receiver.seen(rows_before), SLACK_S + 2 * watch.worst
    again = check_requests(tap, rows, slack)
    check_rate(tap, rows, slack)
    for command, word in (("doctor", "quick check finds no fault"), ("doctor", "chains are what was written"),
                          ("audit verify", "chains are what was written")):
        done = subprocess.run([process.INSIST, *command.split(), "-c", cluster.nodes["a"].config], capture_output=True, text=True)
        tap.check(word in done.stdout and (command == "doctor" or done.returncode == 0), f"insist {command}: {word}", done.stdout + done.stderr)
    return f"{len(acknowledged)} jobs, {len(rows)} requests, {again} delivered twice"


def look(tap, cluster):
    """From outside, when all are there: whoever is asked, the owner answers."""
    ready = process.wait_until(lambda: all(cluster.nodes[name].call("GET", "/readyz")[0] == 200 for name in NODES))
    tap.check(ready, "all nodes are ready again", cluster.said())
    tap.check(process.wait_until(lambda: len(cluster.nodes["a"].call("GET", "/v1/nodes")[1]["nodes"]) == 3), "all know of all")

    def all_say_the_same():
        owners = cluster.owners()
        return all(cluster.nodes[name].call("GET", f"/v1/destinations/{destination}")[1].get("owner") == owners[destination]
                   for name in NODES for destination in DESTINATIONS)
    tap.check(process.wait_until(all_say_the_same), "whoever is asked, the owner answers", cluster.owners())
    paused = cluster.nodes["a"].call("POST", "/v1/destinations/d1/pause", {"reason": "x"})
    tap.check(paused[0] == 200 and paused[1]["mode"] == "paused", "an order reaches the owner", paused)
    tap.check(cluster.nodes["b"].call("GET", "/v1/destinations/d1")[1]["mode"] == "paused", "and holds for all who ask")
    for name in NODES:
        tap.check("Sanitizer" not in cluster.nodes[name].said(), "no sanitizer has complained", cluster.nodes[name].said()[-3000:])


def run_schedule(tap, cluster, seed, seconds, watch):
    """Nobody but the nodes themselves says who works on what. S4-038"""
    stop = threading.Event()
    rows_before = len(cluster.receiver.seen())
    submitters = cluster.submitters(f"s{seed}-", 3, stop)
    schedule = Schedule(cluster, seed, seconds)
    watch.begin()
    began = time.monotonic()
    try:
        for submitter in submitters:
            submitter.start()
        schedule.play()
        ended, late = time.monotonic(), watch.sum
        process.note(f"seed {seed}: " + "; ".join(schedule.history))
        tap.check(schedule.settle(), "all nodes come up", cluster.said())
        owned = cluster.owned(OWNED_S * 3)
        took = time.monotonic() - ended
        time.sleep(AFTER_S)
        tap.check(owned and took < OWNED_S + watch.sum - late, f"every destination has an owner {took:.1f} s after the faults", cluster.said())
    finally:
        stop.set()
        for submitter in submitters:
            submitter.join()
    tap.check(not schedule.ended, "no node ended by itself", schedule.ended[:3])
    text = judge(tap, cluster, submitters, rows_before, watch)
    process.note(f"seed {seed}: {text}; {time.monotonic() - began:.0f} s, {watch.worst * 1000:.0f} ms late")


def run(tap, seeds, seconds, programs, keep):
    process.note(f"--seed {seeds[0]} --schedules {len(seeds)} --seconds {seconds}")
    folder = process.scratch_folder()
    receiver, watch = parts.Receiver(), parts.Watch()
    server = postgres.Server(programs)
    tap.check(server.start(), "PostgreSQL starts")
    cluster = parts.Cluster(folder, server, receiver)
    try:
        for name in NODES:
            cluster.nodes[name].start(wait=False)
        for name in NODES:
            tap.check(cluster.nodes[name].ready(), f"node {name} starts", cluster.said())
        tap.check(cluster.owned(OWNED_S * 2), "every destination has an owner", cluster.said())
        measure(tap, cluster, watch)
        for seed in seeds:
            run_schedule(tap, cluster, seed, seconds, watch)
            if tap.failed:
                process.note(f"again: {os.path.relpath(__file__)} --seed {seed} --schedules 1 --seconds {seconds}")
                break
        look(tap, cluster)
    finally:
        cluster.end()
        server.end()
        receiver.close()
        process.clear(tap, folder, keep)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=max(1, int(os.environ.get("CRASH_ROUNDS", 200)) // 25))
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--keep", action="store_true", help="leave the files behind")
    options = parser.parse_args()
    tap = process.Tap()
    programs = process.postgres_programs(tap, "nodes on PostgreSQL")
    if not programs:
        return tap.end()
    run(tap, range(options.seed, options.seed + options.schedules), options.seconds, programs, options.keep)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
