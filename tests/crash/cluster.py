"""What nodes.py plays with: three nodes on one PostgreSQL, a proxy before each, clients, a receiver that remembers when."""
import http.client
import http.server
import json
import os
import random
import select
import signal
import socket
import threading
import time

import process

NODES = "abc"
DESTINATIONS = ("d0", "d1", "d2")
CONCURRENCY = 3
TIMEOUT_S = 2
RATE, BURST = 30, 25  # of d2 alone, a second: what the clients bring it is as much
PAUSE_S = 0.02
ASK_S = 1  # then a client asks another node

DESTINATION = """\
  {name}:
    url: http://127.0.0.1:{port}/{name}
    allow_private: true
    in_doubt: resend
    timeout: {timeout}s
    concurrency: {{ max: {concurrency}, adaptive: false }}
    retry: {{ max_retries: 60, base: 50ms, factor: 1, floor: 0s, cap: 500ms, jitter: 0.5 }}
    errors: {{ permanent: ["422"], transient: ["503"] }}
{more}"""


class Watch(threading.Thread):
    """How late this process is: what it notes a time of may have happened so much earlier."""

    EVERY_S = 0.01

    def __init__(self):
        super().__init__(daemon=True)
        self.worst = self.sum = 0.0
        self.start()

    def run(self):
        while True:
            before = time.monotonic()
            time.sleep(self.EVERY_S)
            late = time.monotonic() - before - self.EVERY_S
            if late > self.EVERY_S:
                self.worst = max(self.worst, late)
                self.sum += late

    def begin(self):
        self.worst = self.sum = 0.0


class Receiver:
    """Remembers when each request began and when it ended: by its answer, or because whoever asked was gone."""

    def __init__(self):
        receiver = self
        self.lock = threading.Lock()
        self.requests = []  # [key, destination, began, ended, status]

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self):
                row = [self.headers.get("Idempotency-Key", ""), self.path.strip("/"), time.monotonic(), None, 0]
                with receiver.lock:
                    receiver.requests.append(row)
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                dice = random.Random(f"{row[0]} {self.headers.get('Insist-Attempt')}")
                seconds = dice.uniform(0.5, TIMEOUT_S + 0.5) if dice.random() < 0.01 else dice.choice((0, 0, 0.01, 0.05))
                status = 503 if dice.random() < 0.1 else 200
                gone = seconds > 0 and bool(select.select([self.connection], [], [], seconds)[0])
                row[3], row[4] = time.monotonic(), 0 if gone else status
                if gone:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = process.ReceiverServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def seen(self, first=0):
        with self.lock:
            return [list(row) for row in self.requests[first:]]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Proxy:
    """Between a node and the server's socket: it can delay, swallow what goes one way or both, or cut; or let a connection that has
    just run a statement wait for its answer. It remembers when each of some statements was run."""

    def __init__(self, target, noted=()):
        self.target = target
        self.mode = "pass"
        self.hold_at = None  # the statement's name
        self.held = threading.Event()
        self.noted = {name: [] for name in noted}
        self.door = socket.socket()
        self.door.bind(("127.0.0.1", 0))
        self.door.listen(64)
        self.port = self.door.getsockname()[1]
        self.pairs = []
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.open:
            try:
                client, _ = self.door.accept()
            except OSError:
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                if self.mode == "cut":
                    raise ConnectionError
                server.connect(self.target)
            except OSError:
                client.close()
                server.close()
                continue
            self.pairs.append((client, server))
            threading.Thread(target=self.pump, args=(client, server), daemon=True).start()

    def is_swallowed(self, from_client):
        return self.mode == "swallow" or self.mode == ("mute" if from_client else "deafen")

    def ran(self, data):
        """Whether it waits from here on: a Bind names its statement between two NULs."""
        for name, times in self.noted.items():
            times.extend([time.monotonic()] * data.count(f"\0{name}\0".encode()))
        waits = bool(self.hold_at) and f"\0{self.hold_at}\0".encode() in data
        if waits:
            self.held.set()
        return waits

    def pump(self, client, server):
        waits = False
        try:
            while self.open:
                waits = waits and bool(self.hold_at)
                ready, _, _ = select.select([client, server], [], [], 0.2)
                if waits or all(self.is_swallowed(end is client) for end in ready):
                    time.sleep(0.05)
                    continue
                for end in ready:
                    if self.is_swallowed(end is client):
                        continue
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if self.mode == "delay":
                        time.sleep(0.05)
                    (server if end is client else client).sendall(data)
                    waits = end is client and self.ran(data)
                    if waits:
                        break
        except (OSError, ValueError):
            pass
        finally:
            client.close()
            server.close()

    def set(self, mode):
        self.mode = mode
        if mode != "cut":
            return
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs = []

    def close(self):
        self.open = False
        self.set("cut")
        self.door.close()


class Submitter(threading.Thread):
    """Adds jobs at one node after the other. One that was not acknowledged is tried again, with its id, elsewhere; every fourth has
    no id of its own, and is given up then."""

    def __init__(self, ports, name, stop):
        super().__init__(daemon=True)
        self.ports, self.name_, self.stop = ports, name, stop
        self.acknowledged, self.strange = [], []

    def ask(self, port, count):
        job, tenant = f"{self.name_}-{count}", f"t{count % 5}"
        body = {"destination": DESTINATIONS[count % len(DESTINATIONS)], "tenant": tenant, "payload": job}
        if count % 4:
            body["id"] = job
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_S)
        try:
            connection.request("POST", "/v1/jobs", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status in (200, 201):
                self.acknowledged.append((tenant, json.loads(text)["id"]))
            elif answer.status not in (429, 503):
                self.strange.append((answer.status, text[:200]))
            else:
                return False
            return True
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def run(self):
        count = turn = 0
        while not self.stop.is_set():
            done = self.ask(self.ports[turn % len(self.ports)], count)
            count += done or count % 4 == 0
            turn += 1
            time.sleep(PAUSE_S)


class Cluster:
    def __init__(self, folder, server, receiver):
        self.server, self.receiver = server, receiver
        path = os.path.join(server.folder, ".s.PGSQL.5432")
        self.proxies = {name: Proxy(path) for name in NODES}
        self.nodes = {}
        for name in NODES:
            address = f"postgres://insist@127.0.0.1:{self.proxies[name].port}/postgres?sslmode=disable"
            home = os.path.join(folder, name)
            os.makedirs(home)
            self.nodes[name] = process.Daemon(home, "".join(
                DESTINATION.format(name=destination, port=receiver.port, timeout=TIMEOUT_S, concurrency=CONCURRENCY,
                                   more=f"    rate: {{ total: {RATE}/s, burst: {BURST} }}\n" if destination == "d2" else "")
                for destination in DESTINATIONS), more=f"node: {{ name: {name} }}\n", store=f"'{address}'")

    def owners(self):
        rows = self.server.ask("SELECT convert_from(h.destination, 'UTF8'), coalesce(convert_from(n.name, 'UTF8'), '') FROM shard h"
                               " LEFT JOIN node n ON n.session = h.session AND n.session > 0")
        return {destination: node for destination, node in rows or []}

    def owned(self, seconds):
        def all_are():
            owners = self.owners()
            return all(owners.get(destination) for destination in DESTINATIONS)
        return process.wait_until(all_are, seconds, 0.1)

    def submitters(self, name, count, stop):
        ports = [self.nodes[node].port for node in NODES]
        return [Submitter(ports[who % len(ports):] + ports[:who % len(ports)], f"{name}{who}", stop) for who in range(count)]

    def said(self):
        return "\n".join(f"--- {name}\n{self.nodes[name].said()[-1500:]}" for name in NODES if self.nodes[name].process)

    def end(self):
        for name in NODES:
            node = self.nodes[name]
            if node.process and node.process.poll() is None:
                node.signal(signal.SIGCONT)
            node.end()
            self.proxies[name].close()
