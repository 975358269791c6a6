#!/usr/bin/env python3
"""Two nodes on one PostgreSQL, as people and programs meet them.

    tests/crash/together.py [--keep]

A name that runs is refused; a pinned destination is its node's; a call goes on to the owner as who made it, with the nodes'
token, whatever its address or its length; a pull worker may say at any node that it is done, many that wait hold up nobody, and
one that went gets nothing; events and callbacks are told once, in order, whoever forwards;
metrics and `insist nodes` tell who has what; what one commits for another's destination is sent at once, however many small
commits there are; a node that stands still in the middle of a transaction holds nobody up for long; a drained node gives everything
away; at a stop in order ends are named.
"""
import argparse
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import cluster  # noqa: E402
import postgres  # noqa: E402
import process  # noqa: E402

JOBS = 40
IDLE_S = 60  # the longest that a worker may wait
WORKERS = 80  # that wait at a node which does not own the destination
AT_ONCE_S = 0.5  # a node looks at what others have done each second, bell or not
RING_EVERY_S = 0.02

CONFIG = """\
node: {{ name: {name}, token: "nodes-with-each-other" }}
auth: {{ tokens_file: {tokens} }}
durability: everysec
events:
  - {{ name: all, to: news, on: [accepted, completed] }}
"""
DESTINATIONS = """\
  left: {{ url: "http://127.0.0.1:{port}/left", allow_private: true, node: a }}
  right: {{ url: "http://127.0.0.1:{port}/right", allow_private: true, node: b }}
  news: {{ url: "http://127.0.0.1:{port}/news", allow_private: true }}
  idle: {{ transport: pull, node: a }}
  yard: {{ transport: pull, node: a, concurrency: {{ max: 1, adaptive: false }} }}
"""


class Receiver:
    """Takes everything, and remembers it."""

    def __init__(self):
        receiver = self
        self.requests = []  # (path, body)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self):
                receiver.requests.append((self.path, self.rfile.read(int(self.headers.get("Content-Length", 0)))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def said(self, path):
        return [json.loads(body) for at, body in list(self.requests) if at == path]

    def count(self, path):
        return sum(at == path for at, _ in list(self.requests))

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def token(name, *more):
    """What the client says, and the line of the tokens file."""
    made = json.loads(subprocess.run([process.INSIST, "token", name, "-o", "json", *more], capture_output=True, text=True,
                                     check=True).stdout)
    return made["token"], made["line"]


class Node(process.Daemon):
    token = ""

    def call(self, method, path, body=None, timeout=30, who=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json", "Authorization": f"Bearer {who or self.token}"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()

    def insist(self, *arguments):
        return subprocess.run([process.INSIST, *arguments, "--server", f"http://127.0.0.1:{self.port}", "--token", self.token],
                              capture_output=True, text=True)

    def metric(self, name):
        """The value, or None."""
        for line in str(self.call("GET", "/metrics")[1]).splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return None


def owner(nodes, destination):
    status, body = nodes["a"].call("GET", f"/v1/destinations/{destination}")
    return body.get("owner") if status == 200 else None


def settled(nodes):
    """Both run, and what is pinned is where it should be."""
    return all(owner(nodes, name) == where for name, where in (("left", "a"), ("right", "b"), ("yard", "a")))


def check_names(tap, nodes, folder):
    twin = Node(os.path.join(folder, "twin"), open(nodes["b"].config).read().split("destinations:\n")[1],
                open(nodes["b"].config).read().split("destinations:\n")[0].split("\n", 2)[2], store=nodes["b"].store)
    twin.start(wait=False)
    try:
        code = twin.process.wait(process.WAIT_S)
    except subprocess.TimeoutExpired:
        twin.end()
        code = None
    tap.check(code not in (0, None) and 'a node of the name "b" is running' in twin.said(), "a second node of a name is refused",
              twin.said()[-1000:])
    tap.check(nodes["b"].call("GET", "/readyz")[0] == 200, "and the first goes on")


def check_calls(tap, nodes, tenant):
    """By the node that does not own it."""
    tap.check(nodes["b"].call("GET", "/v1/destinations/left")[1].get("pinned") == "a", "the owner says where it is pinned to")
    paused = nodes["b"].call("POST", "/v1/destinations/left/pause", {"reason": "x"})
    tap.check(paused[0] == 200 and paused[1]["mode"] == "paused", "an order goes on to the owner", paused)
    refused = nodes["b"].call("POST", "/v1/destinations/left/resume", {}, who=tenant)
    tap.check(refused[0] == 403, "with the rights of who gave it", refused)
    tap.check(nodes["a"].call("GET", "/v1/destinations/left")[1]["mode"] == "paused", "which change nothing")
    tap.check(nodes["b"].call("POST", "/v1/destinations/left/resume", {})[0] == 200, "and its owner's are enough")
    hidden = nodes["b"].call("GET", "/v1/nodes", who=tenant)
    drained = nodes["b"].call("POST", "/v1/nodes/a/drain", {}, who=tenant)
    tap.check(hidden[0] == 403 and drained[0] == 403, "nodes are no one tenant's business", (hidden, drained))
    forged = nodes["a"].call("GET", "/v1/destinations", who="nodes-with-each-other")
    tap.check(forged[0] in (400, 401), "the nodes' token alone opens nothing", forged)


def check_addresses(tap, nodes):
    """A call arrives as it was made, where a client of HTTP would tidy it up."""
    for job in ("..", "."):
        nodes["b"].call("POST", "/v1/jobs", {"destination": "left", "id": job, "payload": "x"})
        why = nodes["b"].call("GET", f"/v1/jobs/{job}/why")
        tap.check(why[0] == 200 and why[1]["id"] == job, f"the owner is asked of the job {job}", why)


class Worker(threading.Thread):
    """Waits for work, at a node that does not own it."""

    def __init__(self, node, destination):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=process.WAIT_S)
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {node.token}"}
        self.body = json.dumps({"destination": destination, "wait_s": IDLE_S, "lease_s": 3600})
        self.connection.request("POST", "/v1/leases", self.body, self.headers)
        self.answer = None

    def run(self):
        try:
            self.answer = json.loads(self.connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            self.answer = {}

    def leave(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR)


def check_waiting(tap, nodes):
    """Who waits for work holds up no order, and no work for others; who has gone gets none."""
    idle = [Worker(nodes["b"], "idle") for _ in range(WORKERS)]
    for worker in idle:
        worker.start()
    reached = process.wait_until(lambda: (nodes["a"].metric("insist_http_connections") or 0) >= WORKERS)
    tap.check(reached, "many workers wait at a node for what another owns", nodes["a"].metric("insist_http_connections"))
    order = nodes["b"].call("POST", "/v1/destinations/left/pause", {"reason": "x"})
    nodes["b"].call("POST", "/v1/destinations/left/resume", {})
    tap.check(order[0] == 200 and not [worker for worker in idle if worker.answer], "an order overtakes them all", order)
    nodes["b"].add("yard", "beside")
    lease = nodes["b"].call("POST", "/v1/leases", {"destination": "yard", "lease_s": 600, "wait_s": 60})
    tap.check(lease[0] == 200 and len(lease[1]["leases"]) == 1 and not [worker for worker in idle if worker.answer],
              "so does a worker for whom there is work", lease)
    long = nodes["b"].call("POST", "/v1/leases/nack", {"lease": lease[1]["leases"][0]["lease"], "error": "é" * 30000, "class": "permanent"})
    tap.check(long[0] == 200, "what it says of it may be long", long)
    for worker in idle:
        worker.leave()
    left = process.wait_until(lambda: (nodes["a"].metric("insist_http_connections") or WORKERS) < WORKERS, seconds=IDLE_S / 2)
    tap.check(left, "the owner hears that they have gone, long before they would", nodes["a"].metric("insist_http_connections"))
    nodes["b"].add("idle", "kept")
    kept = nodes["a"].call("POST", "/v1/leases", {"destination": "idle", "wait_s": 30})
    tap.check(kept[0] == 200 and [job["id"] for job in kept[1]["leases"]] == ["kept"], "and gives no work to them", kept)
    nodes["a"].call("POST", "/v1/leases/ack", {"lease": kept[1]["leases"][0]["lease"]} if kept[1].get("leases") else {})


def check_pull(tap, nodes):
    for job in ("first", "second"):
        nodes["b"].add("yard", job)
    first = nodes["b"].call("POST", "/v1/leases", {"destination": "yard", "lease_s": 600, "wait_s": 20})
    tap.check(first[0] == 200 and len(first[1]["leases"]) == 1, "a worker leases at a node that does not own it", first)
    lease = first[1]["leases"][0]["lease"]
    beat = nodes["b"].call("POST", "/v1/leases/extend", {"lease": lease, "lease_s": 600})
    tap.check(beat[0] == 200, "a heartbeat counts where it arrives", beat)
    done = nodes["b"].call("POST", "/v1/leases/ack", {"lease": lease})
    tap.check(done[0] == 200, "and so does an ack", done)
    second = nodes["b"].call("POST", "/v1/leases", {"destination": "yard", "lease_s": 600, "wait_s": 60})
    tap.check(second[0] == 200 and len(second[1]["leases"]) == 1, "its slot is free at the owner at once", second)
    failed = nodes["b"].call("POST", "/v1/leases/nack", {"lease": second[1]["leases"][0]["lease"], "error": "no", "class": "permanent"})
    tap.check(failed[0] == 200, "a nack is decided by the owner", failed)


def check_events(tap, nodes, receiver):
    """Jobs taken by both, sent by both; one node forwards."""
    wanted = {}
    for number in range(JOBS):
        destination = ("left", "right")[number % 2]
        body = {"destination": destination, "id": f"job-{number}", "tenant": "t", "payload": "x", "callback": {"destination": "news"}}
        added = nodes["ab"[number // 2 % 2]].call("POST", "/v1/jobs", body)
        wanted[f"job-{number}"] = added[0]
    tap.check(set(wanted.values()) == {201}, "jobs with a callback are taken by every node", wanted)

    def told():
        all_ = receiver.said("/news")
        return [sum(job in (said.get("subject"), said["data"].get("id")) for said in all_) for job in wanted]
    enough = process.wait_until(lambda: min(told()) >= 3)
    jobs = nodes["a"].call("GET", "/v1/jobs?destination=news&limit=100")[1].get("jobs", [])
    tap.check(enough, "every event and every callback is told",
              f"{told()} of {list(wanted)}; {[(job['id'], job['state']) for job in jobs if job['state'] != 'completed']}\n" +
              "\n".join(json.dumps(said) for said in receiver.said("/news")))
    events = [said for said in receiver.said("/news") if "specversion" in said]
    ids = [said["id"] for said in events]
    tap.check(len(ids) == len(set(ids)), "each once", ids)
    kinds = {job: [said["type"] for said in events if said.get("subject") == job] for job in wanted}
    tap.check(all(len(types) == 2 and "accepted" in types[0] for types in kinds.values()), "those of a job in order", kinds)


def check_bell(tap, nodes, wire, receiver):
    """Jobs for a's destination, given to b, whose notifications are counted on their way to the server."""
    waited = []
    for number in range(4):
        began, before = time.monotonic(), receiver.count("/left")
        nodes["b"].add("left", f"rung-{number}")
        process.wait_until(lambda: receiver.count("/left") > before, every=0.002)
        waited.append(time.monotonic() - began)
    tap.check(sorted(waited)[1] < AT_ONCE_S, "what one node takes for another's destination is sent at once", waited)

    def give(who):
        for number in range(40):
            nodes["b"].add("left", f"small-{who}-{number}")
    began, before, commits = time.monotonic(), len(wire.noted["node_ring"]), len(wire.noted["commit"])
    clients = [threading.Thread(target=give, args=(who,)) for who in range(3)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    sent = nodes["a"].drained(["left"])
    rings, commits = wire.noted["node_ring"][before:], len(wire.noted["commit"]) - commits
    seconds = rings[-1] - began if rings else 0
    tap.check(sent and 2 + seconds < len(rings) <= 2 + seconds / RING_EVERY_S, "one notification in 20 ms tells of all commits meanwhile",
              f"{len(rings)} in {seconds:.2f} s, of {commits} commits")
    process.note(f"{len(rings)} notifications of {commits} commits in {seconds:.2f} s; {min(waited) * 1000:.0f} ms to a send")


def check_standstill(tap, nodes, wire, server):
    """b has asked for a job to cancel it, so that nobody else may change it meanwhile, and stands still. What it holds is let go by
    the server, long before b would be taken for dead."""
    nodes["a"].add("idle", "held")
    wire.hold_at = "lock_key"
    order = threading.Thread(target=nodes["b"].call, args=("POST", "/v1/jobs/held/cancel?tenant=t"))
    order.start()
    free = "SELECT count(*) FROM (SELECT 1 FROM job WHERE id = 'held' FOR UPDATE SKIP LOCKED) free"
    tap.check(wire.held.wait(process.WAIT_S) and process.wait_until(lambda: server.ask(free) == [["0"]]), "a node is in the middle of a transaction")
    nodes["b"].signal(signal.SIGSTOP)
    wire.hold_at = None
    began = time.monotonic()
    other = nodes["a"].call("POST", "/v1/jobs/held/cancel?tenant=t")
    took = time.monotonic() - began
    nodes["b"].signal(signal.SIGCONT)
    tap.check(other[0] == 200 and other[1]["state"] == "cancelled", f"another has its way after {took:.1f} s", other)
    with open(server.folder + ".log") as log:
        text = log.read()
    tap.check("due to idle-in-transaction timeout" in text, "since the server has ended what stood still", text[-1500:])
    order.join()
    tap.check(process.wait_until(lambda: nodes["b"].call("GET", "/readyz")[0] == 200 and nodes["b"].add("right", "recovered")[0] in (200, 201)),
              "it wakes, and goes on", nodes["b"].said()[-1500:])
    tap.check(nodes["b"].call("GET", "/v1/jobs/held?tenant=t")[1].get("state") == "cancelled" and nodes["b"].drained(["right"]),
              "and sees what was done meanwhile", nodes["b"].said()[-1500:])


def check_views(tap, nodes):
    nodes_list = nodes["b"].call("GET", "/v1/nodes")[1]["nodes"]
    has = {node["name"]: node for node in nodes_list}
    tap.check(sorted(has) == ["a", "b"] and has["a"]["pinned"] == ["left", "idle", "yard"] and has["b"]["pinned"] == ["right"],
              "all see who is there, and what is pinned", nodes_list)
    shown = nodes["a"].insist("nodes")
    tap.check(shown.returncode == 0 and "PINNED" in shown.stdout and "left, idle, yard" in shown.stdout, "insist nodes shows it",
              shown.stdout + shown.stderr)
    process.wait_until(lambda: nodes["a"].metric("insist_destinations_unowned") == 0)  # one may be on its way
    values = {name: nodes["a"].metric(name) for name in ("insist_nodes", "insist_destinations_unowned", "insist_node_trusted",
                                                         "insist_nodes_taken_for_dead_total")}
    tap.check(values == {"insist_nodes": 2, "insist_destinations_unowned": 0, "insist_node_trusted": 1,
                         "insist_nodes_taken_for_dead_total": 0}, "metrics count the nodes", values)
    owned = nodes["a"].metric('insist_node_destinations{node="b"}')
    silent = nodes["a"].metric('insist_node_silent_seconds{node="b"}')
    tap.check(owned is not None and owned >= 1 and silent is not None, "and what each has, and how it lives", (owned, silent))
    tap.check((nodes["a"].metric('insist_destinations_moved_total{how="taken"}') or 0) >= 2, "and what moved")


def check_end(tap, nodes, server):
    drained = nodes["a"].insist("nodes", "drain", "b")
    tap.check(drained.returncode == 0, "a node is drained", drained.stdout + drained.stderr)
    tap.check(process.wait_until(lambda: owner(nodes, "right") == "a", every=0.1), "what it had goes to the other, pinned or not",
              nodes["a"].call("GET", "/v1/nodes")[1])
    tap.check(nodes["a"].add("right", "after")[0] == 201 and nodes["a"].drained(["right"]), "which sends")
    def gone():
        return [alert["id"] for alert in nodes["a"].call("GET", "/v1/alerts")[1]["alerts"] if alert["alert"] == "node_gone"]
    before = gone()  # of who stood still for too long, on a busy machine
    tap.check(nodes["b"].stop() == 0, "it stops in order", nodes["b"].said()[-1000:])
    last = server.ask("SELECT convert_from(v.data, 'UTF8') FROM event v JOIN chain c ON v.chain = c.id AND v.number = c.number"
                      " JOIN node n ON n.slot = c.id WHERE n.name = 'b'")
    tap.check(last and '"note":"heads"' in last[0][0], "and names where the others' chains end", last)
    tap.check(set(gone()) <= set(before), "nobody is told of a stop in order", gone())
    verified = subprocess.run([process.INSIST, "audit", "verify", "-c", nodes["a"].config], capture_output=True, text=True)
    tap.check(verified.returncode == 0, "every chain verifies", verified.stdout + verified.stderr)
    doctor = subprocess.run([process.INSIST, "doctor", "-c", nodes["a"].config], capture_output=True, text=True)
    tap.check("synchronous_standby_names" in doctor.stdout, "doctor tells of a server without a standby", doctor.stdout)
    for port, finding in ((nodes["a"].port, "ok"), (1, "fail")):
        with open(nodes["a"].config) as given, open(nodes["a"].config + ".url", "w") as out:
            out.write(given.read().replace("name: a,", f'name: a, url: "http://127.0.0.1:{port}",'))
        doctor = subprocess.run([process.INSIST, "doctor", "-c", nodes["a"].config + ".url"], capture_output=True, text=True)
        tap.check(re.search(f"^{finding} +node +http://127.0.0.1:{port} ", doctor.stdout, re.M),
                  f"it asks where others do: {finding}", doctor.stdout + doctor.stderr)
    copy = subprocess.run([process.INSIST, "backup", "copy.db", "-c", nodes["a"].config], capture_output=True, text=True)
    tap.check(copy.returncode == 1 and "pg_basebackup" in copy.stderr, "a backup is PostgreSQL's, and insist says so", copy.stderr)


def run(tap, programs, keep):
    folder = process.scratch_folder()
    receiver = Receiver()
    server = postgres.Server(programs)
    nodes = {}
    tap.check(server.start(), "PostgreSQL starts")
    wire = cluster.Proxy(os.path.join(server.folder, ".s.PGSQL.5432"), noted=("node_ring", "commit"))  # b's
    stores = {"a": server.address(), "b": f"postgres://insist@127.0.0.1:{wire.port}/postgres?sslmode=disable"}
    try:
        Node.token, line = token("ops", "--scope", "admin")
        tenant, other = token("one", "--scope", "operate,enqueue", "--tenant", "t")
        tokens = os.path.join(folder, "tokens")
        with open(tokens, "w") as out:
            out.write("tokens:\n" + line + "\n" + other + "\n")
        os.chmod(tokens, 0o600)
        for name in ("a", "b", "twin"):
            os.makedirs(os.path.join(folder, name))
        for name in "ab":
            nodes[name] = Node(os.path.join(folder, name), DESTINATIONS.format(port=receiver.port),
                               CONFIG.format(name=name, tokens=tokens), store=f"'{stores[name]}'")
            tap.check(nodes[name].start(), f"node {name} starts", nodes[name].said()[-2000:])
        tap.check(process.wait_until(lambda: settled(nodes), every=0.1), "pinned destinations are where they should be",
                  nodes["a"].call("GET", "/v1/nodes")[1])
        check_names(tap, nodes, folder)
        check_calls(tap, nodes, tenant)
        check_addresses(tap, nodes)
        check_pull(tap, nodes)
        check_waiting(tap, nodes)
        check_events(tap, nodes, receiver)
        check_bell(tap, nodes, wire, receiver)
        check_views(tap, nodes)
        check_standstill(tap, nodes, wire, server)
        check_end(tap, nodes, server)
        for node in nodes.values():
            tap.check("Sanitizer" not in node.said(), "no sanitizer has complained", node.said()[-3000:])
    finally:
        for node in nodes.values():
            node.end()
        wire.close()
        server.end()
        receiver.close()
        process.clear(tap, folder, keep)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="leave the files behind")
    options = parser.parse_args()
    tap = process.Tap()
    programs = process.postgres_programs(tap, "nodes on PostgreSQL")
    if programs:
        run(tap, programs, options.keep)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
