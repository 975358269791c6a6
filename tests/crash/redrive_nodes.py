#!/usr/bin/env python3
"""A redrive with three nodes on one PostgreSQL: who runs it is killed in the middle, and another goes on.

    tests/crash/redrive_nodes.py [--letters N] [--keep]

It is begun at a node that does not run it, and looked at, undone at any. The steward is killed in the middle of the redrive and
the next one in the middle of its undo. Each letter goes back once and is given back as it was; the counts are exact.
"""
import argparse
import os
import sys
import time

sys.dont_write_bytecode = True
import postgres  # noqa: E402
import process  # noqa: E402

NAMES = "abc"


class Cluster:
    def __init__(self, folder, server):
        self.server = server
        self.nodes = {}
        for name in NAMES:
            home = os.path.join(folder, name)
            os.makedirs(home)
            self.nodes[name] = process.Daemon(home, "  d: { transport: pull }\n", f"node: {{ name: {name} }}\n",
                                              store=f"'{server.address()}'")

    def call(self, method, path, body=None):
        """At the first node that answers, as a client with several addresses does."""
        for node in self.nodes.values():
            status, answer = node.call(method, path, body)
            if status not in (0, 503):
                return status, answer
        return 0, None

    def steward(self):
        for node in (self.call("GET", "/v1/nodes")[1] or {}).get("nodes", []):
            running = self.nodes[node["name"]].process
            if node.get("steward") and running and running.poll() is None:
                return node["name"]
        return None

    def look(self, redrive):
        status, found = self.call("GET", f"/v1/dead/redrives/{redrive}")
        return found if status == 200 else {}

    def said(self):
        return "\n".join(f"--- {name}\n{node.said()[-1000:]}" for name, node in self.nodes.items()
                         if node.process)

    def kill_steward(self, tap, redrive, count, more_than):
        """In the middle; who goes on, and is somebody else."""
        process.wait_until(lambda: self.look(redrive).get(count, 0) > more_than, every=0.005)
        victim = self.steward()
        before = self.look(redrive).get(count, 0)
        self.nodes[victim].kill()
        tap.check(process.wait_until(lambda: self.steward() not in (None, victim), every=0.1), f"another is the steward after {victim}",
                  self.call("GET", "/v1/nodes"))
        return victim, before


def make_letters(cluster, count):
    for first in range(0, count, 500):
        deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
        jobs = [{"destination": "d", "id": f"j{i}", "tenant": f"t{i % 7}", "deadline": deadline, "payload": {"n": i}}
                for i in range(first, min(first + 500, count))]
        cluster.call("POST", "/v1/jobs/batch", jobs)

    def dead():
        status, found = cluster.call("GET", "/v1/destinations/d")
        return found["dead"] if status == 200 else 0
    return process.wait_until(lambda: dead() == count, every=0.1)


def run(tap, programs, letters, keep):
    folder = process.scratch_folder()
    server = postgres.Server(programs)
    cluster = Cluster(folder, server)
    tap.check(server.start(), "PostgreSQL starts")
    try:
        for name in NAMES:
            tap.check(cluster.nodes[name].start(), f"node {name} starts", cluster.said())
        tap.check(process.wait_until(cluster.steward, every=0.1), "one of them is the steward")
        tap.check(make_letters(cluster, letters), f"{letters} letters are dead", cluster.call("GET", "/v1/destinations/d"))
        before = server.ask("SELECT to_jsonb(s) - 'event' FROM state s ORDER BY seq")
        other = next(name for name in NAMES if name != cluster.steward())
        status, begun = cluster.nodes[other].call("POST", "/v1/dead/redrives", {"all": True, "rate": f"{letters // 2}/s"})
        tap.check(status == 202 and begun["matched"] == letters, "a redrive begins at a node that does not run it", (status, begun))
        victim, there = cluster.kill_steward(tap, begun["id"], "redriven", letters // 10)
        tap.check(0 < there < letters, f"{there} of {letters} were sent back when {victim} was killed")
        done = process.wait_until(lambda: cluster.look(begun["id"]).get("state") == "done", every=0.1)
        found = cluster.look(begun["id"])
        tap.check(done and found["redriven"] == letters and found["left"] == 0 and found["skipped"] == 0 and
                  found["under_way"] == letters, "all are sent back, and counted", found)
        tap.check(cluster.nodes[victim].start(), "it starts again", cluster.said())
        status, _ = cluster.nodes[victim].call("POST", f"/v1/dead/redrives/{begun['id']}/undo", {})
        tap.check(status == 200, "which orders the undo", status)
        victim, there = cluster.kill_steward(tap, begun["id"], "undone", 0)
        undone = process.wait_until(lambda: cluster.look(begun["id"]).get("state") == "undone", every=0.1)
        found = cluster.look(begun["id"])
        tap.check(undone and found["undone"] == letters and found["under_way"] == 0, f"{there} were undone when {victim} was killed,"
                  " and all are after it", found)
        after = server.ask("SELECT to_jsonb(s) - 'event' FROM state s ORDER BY seq")
        tap.check(before is not None and before == after, "each is what it was", (before or [])[:3] + (after or [])[:3])
        sent = server.ask("SELECT count(*), count(DISTINCT job) FROM event WHERE convert_from(data, 'UTF8') LIKE '%\"redrive\":%'"
                          " AND length(job) > 0")
        tap.check(sent == [[str(2 * letters), str(letters)]], "the trail has each of them once there and once back", sent)
    finally:
        for node in cluster.nodes.values():
            node.end()
        server.end()
        process.clear(tap, folder, keep)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--letters", type=int, default=2000)
    parser.add_argument("--keep", action="store_true", help="leave the files behind")
    options = parser.parse_args()
    tap = process.Tap()
    programs = process.postgres_programs(tap, "a redrive with three nodes")
    if programs:
        run(tap, programs, options.letters, options.keep)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
