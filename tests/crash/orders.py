#!/usr/bin/env python3
"""Kills the daemon the moment an operator's order is answered: what was answered must hold after the next start.

    tests/crash/orders.py [--rounds N]

Each round gives every kind of order once, with a kill after each.
"""
import argparse
import json
import os
import signal
import socket
import sys

sys.dont_write_bytecode = True
import process  # noqa: E402

DESTINATIONS = """\
  d: { transport: pull }
  e: { transport: pull }
  yard: { transport: pull, retry: { max_retries: 1, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0 } }
"""


def order_and_kill(daemon, method, path, body):
    """The status that was answered. The kill comes before the answer is even read to its end."""
    text = json.dumps(body) if body is not None else ""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=process.WAIT_S) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        head = connection.recv(12)
        daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()
    return int(head[9:12]) if len(head) == 12 else 0


def mode_is(name, mode, reason=None):
    def holds(daemon):
        found = daemon.counts(name)
        return found and found["mode"] == mode and found.get("pause_reason") == reason, found
    return holds


def tenant_is_held(held):
    def holds(daemon):
        found = daemon.counts("d")
        return found and [one["tenant"] for one in found.get("paused", [])] == (["t"] if held else []), found
    return holds


def no_errors(daemon):
    found = daemon.call("GET", "/v1/errors")[1]
    return found is not None and found["errors"] == [], found


def learn_error(daemon, number):
    """The path of one that no rule knows, which the store has."""
    daemon.add("yard", f"lesson-{number}", payload="x")
    leased = daemon.call("POST", "/v1/leases", {"destination": "yard", "wait_s": 30})[1]
    daemon.call("POST", "/v1/leases/nack", {"lease": leased["leases"][0]["lease"], "error": "bucket is warming"})
    stopped = daemon.stop()  # writes it
    daemon.start()
    errors = daemon.call("GET", "/v1/errors")[1]["errors"]
    return f"/v1/errors/{errors[0]['fingerprint']}" if stopped == 0 and errors else None


ORDERS = (
    ("pause", "/v1/destinations/d/pause", {"reason": "door"}, mode_is("d", "paused", "door")),
    ("resume", "/v1/destinations/d/resume", {}, mode_is("d", "normal")),
    ("pause of a tenant", "/v1/destinations/d/pause", {"tenant": "t"}, tenant_is_held(True)),
    ("resume of a tenant", "/v1/destinations/d/resume", {"tenant": "t"}, tenant_is_held(False)),
    ("contingency", "/v1/destinations/e/contingency", {"enter": True, "reason": "rain"},
     mode_is("e", "contingency", "rain")),
    ("the way back", "/v1/destinations/e/contingency", {"enter": False}, mode_is("e", "recovering")),
)


def run_round(daemon, number, lost):
    for name, path, body, holds in ORDERS:
        status = order_and_kill(daemon, "POST", path, body)
        daemon.start()
        held, found = holds(daemon)
        if status != 200 or not held:
            lost.append(f"round {number}, {name}: answered {status}, and then {found}")
    error = learn_error(daemon, number)
    if not error:
        lost.append(f"round {number}: no error was learned")
        return
    status = order_and_kill(daemon, "DELETE", error, None)
    daemon.start()
    gone, found = no_errors(daemon)
    if status != 200 or not gone:
        lost.append(f"round {number}, forgetting: answered {status}, and then {found}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=max(2, int(os.environ.get("CRASH_ROUNDS", 100)) // 20))
    rounds = parser.parse_args().rounds
    tap = process.Tap()
    folder = process.scratch_folder()
    daemon = process.Daemon(folder, DESTINATIONS, "limits: { disk_free: 1MB }\n")
    lost = []
    try:
        daemon.start()
        daemon.add("d", "first")  # so that the tenant is known
        for number in range(rounds):
            run_round(daemon, number, lost)
        tap.check(not lost, f"{rounds} rounds of orders, each killed when it was answered, are kept", "\n".join(lost))
        tap.check(daemon.stop() == 0, "the daemon ends in order", daemon.said()[-1500:])
        process.check_database(tap, daemon.database).close()
    finally:
        daemon.end()
        process.clear(tap, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
