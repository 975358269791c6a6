#!/usr/bin/env python3
"""A machine that dies says nothing: the server must notice by itself, and let go of what its daemon had locked.

    tests/crash/silence.py [--keep]

Over TCP, to a private server. Nobody cuts a network here: the kernel tells when it will ask the other side whether it is there.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True
import crash  # noqa: E402
import postgres  # noqa: E402
import process  # noqa: E402

ESTABLISHED, KEEPALIVE = "01", "02"
ASKED_WITHIN_S = 6


def asked_within(port):
    """Of the server's sockets on that port: in how many seconds the other side is asked; None where something else is due before."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    ticks = os.sysconf("SC_CLK_TCK")
    for row in rows:
        if row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED:
            timer, when = row[5].split(":")
            yield int(when, 16) / ticks if timer == KEEPALIVE else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="leave the files behind")
    options = parser.parse_args()
    tap = process.Tap()
    programs = process.postgres_programs(tap, "a server that hears nothing of a daemon")
    if not programs:
        return tap.end()
    folder, receiver = process.scratch_folder(), process.Receiver(crash.fate)
    server = postgres.Server(programs, port=process.free_port())
    daemon = process.Daemon(folder, crash.DESTINATION.format(port=receiver.port, concurrency=1),
                            store=f"postgres://insist:word@127.0.0.1:{server.port}/postgres")
    try:
        tap.check(server.start() and server.ask("ALTER ROLE insist PASSWORD 'word'") is not None, "PostgreSQL starts")
        tap.check(daemon.start(), "the daemon starts", daemon.said()[-2000:])
        seen = []

        def all_are_asked():
            seen[:] = asked_within(server.port)
            return len(seen) >= 2 and all(seconds is not None and seconds <= ASKED_WITHIN_S for seconds in seen)
        tap.check(process.wait_until(all_are_asked), "the server asks soon whether the daemon's machine is there", seen)
    finally:
        daemon.end()
        server.end()
        receiver.close()
        process.clear(tap, folder, options.keep)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
