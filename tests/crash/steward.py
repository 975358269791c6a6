#!/usr/bin/env python3
"""The steward is killed, held and stopped while it makes events to jobs, and somebody else goes on.

    tests/crash/steward.py [--keep]

Three nodes on one PostgreSQL. Jobs go in at all of them all the time; the end of each is told as an event, of some as a callback
too. In each round the node that is the steward goes in another way while its thread is behind the trail: by SIGKILL, by SIGSTOP for longer
than others wait, by SIGTERM. Another takes the office over and goes on from the saved place. In the end each end was told by
exactly one job, and each of these has arrived.
"""
import argparse
import http.server
import json
import os
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
import postgres  # noqa: E402
import process  # noqa: E402

NAMES = "abc"
BATCH = 40        # jobs at once
PAUSE_S = 0.2
CALLED_BACK = 5   # one of so many
ROUNDS = (("killed", signal.SIGKILL), ("held", signal.SIGSTOP), ("stopped in order", signal.SIGTERM))

NODE = """\
node: {{ name: {name} }}
events:
  - {{ name: ends, to: news, on: [completed] }}
"""
DESTINATIONS = """\
  work: {{ url: "http://127.0.0.1:{port}/work", allow_private: true, in_doubt: resend, timeout: 2s }}
  news: {{ url: "http://127.0.0.1:{port}/news", allow_private: true, in_doubt: resend, timeout: 2s }}
  calls: {{ url: "http://127.0.0.1:{port}/calls", allow_private: true, in_doubt: resend, timeout: 2s }}
"""


class Receiver:
    """Takes everything, and remembers of which job each event and each callback tells."""

    def __init__(self):
        receiver = self
        self.lock = threading.Lock()
        self.told = {"/news": set(), "/calls": set()}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path in receiver.told:
                    said = json.loads(body)
                    with receiver.lock:
                        receiver.told[self.path].add(said.get("subject") or said["data"]["id"])
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = process.ReceiverServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Load(threading.Thread):
    """Batches at one node after the other; one that was not acknowledged is given again, elsewhere."""

    def __init__(self, nodes):
        super().__init__(daemon=True)
        self.nodes, self.stop, self.ids = nodes, threading.Event(), []

    def run(self):
        turn = 0
        while not self.stop.is_set():
            first = len(self.ids)
            jobs = [{"destination": "work", "id": f"j{number}", "payload": "x",
                     **({"callback": {"destination": "calls"}} if number % CALLED_BACK == 0 else {})}
                    for number in range(first, first + BATCH)]
            turn += 1
            status, body = self.nodes[NAMES[turn % 3]].call("POST", "/v1/jobs/batch", jobs, timeout=3)
            if status == 200 and not body["rejected"]:
                self.ids += [job["id"] for job in jobs]
            time.sleep(PAUSE_S)


def count(server, destination, more=""):
    rows = server.ask("SELECT count(*) FROM job j JOIN lane l ON l.id = j.lane"
                      f" WHERE convert_from(l.destination, 'UTF8') = '{destination}'{more}")
    return int(rows[0][0]) if rows else -1


def steward(server):
    rows = server.ask("SELECT convert_from(n.name, 'UTF8') FROM shard h JOIN node n ON n.session = h.session AND n.session > 0"
                      " WHERE h.destination = ''")
    return rows[0][0] if rows else None


def one_round(tap, cluster, how, number):
    """It goes in the middle: it has told of some, and not of all that has ended."""
    nodes, server = cluster
    before = count(server, "news")
    process.wait_until(lambda: count(server, "news") > before)
    victim = steward(server)
    nodes[victim].signal(number)
    at = count(server, "news")
    taken = process.wait_until(lambda: steward(server) not in (None, victim))
    tap.check(taken, f"a steward that is {how} has a successor", f"{steward(server)}\n{nodes[victim].said()[-800:]}")
    tap.check(process.wait_until(lambda: count(server, "news") > at + BATCH), "who goes on with the events", f"{count(server, 'news')}, {at}")
    if number == signal.SIGSTOP:
        nodes[victim].signal(signal.SIGCONT)
        tap.check(process.wait_until(lambda: '"begins_anew"' in nodes[victim].said()),
                  "it wakes, and sees that it was taken for dead", nodes[victim].said()[-800:])
    else:
        nodes[victim].process.wait(process.WAIT_S)
        tap.check(nodes[victim].start(), "and is started again", nodes[victim].said()[-800:])
    tap.check(process.wait_until(lambda: nodes[victim].call("GET", "/readyz")[0] == 200), "it is ready again")


def judge(tap, server, receiver, ids):
    """Callbacks are jobs of their own, whose ends are told too."""
    called = {job for number, job in enumerate(ids) if number % CALLED_BACK == 0}
    wanted = len(ids) + len(called)

    def ended():
        rows = server.ask("SELECT coalesce(sum(pending + running + waiting), -1) FROM lane_count")
        return rows and int(rows[0][0]) == 0 and count(server, "news") >= wanted and count(server, "calls") >= len(called)
    tap.check(process.wait_until(ended, 2 * process.WAIT_S, 0.2), "everything ends", f"{wanted} ends, {count(server, 'news')} told")
    tap.check(count(server, "news") == wanted, f"each of {wanted} ends is one event", count(server, "news"))
    tap.check(count(server, "calls") == len(called), f"and each of {len(called)} that want it one callback", count(server, "calls"))
    told = {job for job in receiver.told["/news"] if not job.startswith("callback-")}
    tap.check(told == set(ids) and len(receiver.told["/news"]) == wanted, "all have arrived", sorted(set(ids) ^ told)[:5])
    tap.check(receiver.told["/calls"] == called, "callbacks too", list(called ^ receiver.told["/calls"])[:5])


def run(tap, programs, keep):
    folder, receiver, server = process.scratch_folder(), Receiver(), postgres.Server(programs)
    tap.check(server.start(), "PostgreSQL starts")
    nodes = {}
    for name in NAMES:
        os.makedirs(os.path.join(folder, name))
        nodes[name] = process.Daemon(os.path.join(folder, name), DESTINATIONS.format(port=receiver.port), NODE.format(name=name),
                                     store=f"'{server.address()}'")
    load = Load(nodes)
    try:
        for name in NAMES:
            tap.check(nodes[name].start(), f"node {name} starts", nodes[name].said()[-800:])
        tap.check(process.wait_until(lambda: steward(server)), "one of them is the steward")
        load.start()
        for how, number in ROUNDS:
            one_round(tap, (nodes, server), how, number)
        load.stop.set()
        load.join()
        judge(tap, server, receiver, load.ids)
    finally:
        load.stop.set()
        for node in nodes.values():
            if node.process and node.process.poll() is None:
                node.signal(signal.SIGCONT)
            node.end()
        server.end()
        receiver.close()
        process.clear(tap, folder, keep)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="leave the files behind")
    options = parser.parse_args()
    tap = process.Tap()
    programs = process.postgres_programs(tap, "a steward that goes")
    if not programs:
        return tap.end()
    run(tap, programs, options.keep)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
