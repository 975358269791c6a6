#!/usr/bin/env python3
"""The daemon's connections to others: with few descriptors, after a pause of the process, and a payload changed on disk."""
import os
import resource
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import process  # noqa: E402

# Descriptors, destinations and jobs: with the default concurrency more connections than there are descriptors.
LIMIT, DESTINATIONS, JOBS = map(int, os.environ.get("INSIST_FEW_DESCRIPTORS", "256 40 2000").split())


def batch(daemon, jobs):
    status, body = daemon.call("POST", "/v1/jobs/batch", jobs)
    return status == 200 and body["accepted"] == len(jobs)


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def few_descriptors(tap, folder):
    """Idle connections to many places must not leave the API without a descriptor, nor outlive the other side's."""
    others = subprocess.Popen([sys.executable, __file__, "--receivers"], stdout=subprocess.PIPE, text=True)
    ports = others.stdout.readline().split()
    names = [f"d{i}" for i in range(DESTINATIONS)]
    daemon = process.Daemon(folder, "".join(
        f"  {name}: {{ url: 'http://127.0.0.1:{port}/', allow_private: true }}\n"
        for name, port in zip(names, ports)), more="limits: { disk_free: 1MB }\n")
    daemon.start(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)))
    answered = 0
    try:
        jobs = [{"destination": names[i % DESTINATIONS], "id": f"j{i}", "payload": i} for i in range(JOBS)]
        tap.check(all(batch(daemon, jobs[i:i + 1000]) for i in range(0, JOBS, 1000)), "the jobs are taken")
        for _ in range(20):
            answered += daemon.call("GET", "/livez")[0] == 200
        drained = daemon.drained(names)
        tap.check(drained, "with few descriptors every job is delivered", daemon.said()[-2000:])
        completed = sum(daemon.counts(name)["completed"] for name in names)
        tap.check(completed == JOBS, "none is lost", completed)
        tap.check(answered == 20, "and the API answers meanwhile", answered)
        tap.check(daemon.call("GET", "/livez")[0] == 200 and descriptors(daemon) < LIMIT, "and afterwards", descriptors(daemon))
        others.kill()
        few = process.wait_until(lambda: descriptors(daemon) < 64)
        tap.check(few, "of what the others have closed nothing is left", descriptors(daemon))
    finally:
        others.kill()
        others.wait()
        daemon.end()


def receivers():
    """In a process of their own: when it ends, so do all their connections."""
    kept = [process.Receiver(lambda key, attempt: (200, 0.02)) for _ in range(DESTINATIONS)]
    print(" ".join(str(receiver.port) for receiver in kept), flush=True)
    signal.pause()


def paused_process(tap, folder):
    """What came while the process stood still for longer than `timeout` is an answer."""
    receiver = process.Receiver(lambda key, attempt: (200, 1))
    daemon = process.Daemon(folder, f"  d: {{ url: 'http://127.0.0.1:{receiver.port}/', allow_private: true, in_doubt: park,"
                                    f" timeout: 3s, concurrency: 5 }}\n",
                            more="limits: { disk_free: 1MB }\n")
    daemon.start()
    try:
        tap.check(batch(daemon, [{"destination": "d", "id": f"p{i}", "payload": i} for i in range(5)]), "the jobs are taken")
        process.wait_until(lambda: len(receiver.seen()) == 5)
        daemon.signal(signal.SIGSTOP)
        time.sleep(5)
        daemon.signal(signal.SIGCONT)
        tap.check(process.wait_until(lambda: (daemon.counts("d") or {}).get("completed") == 5),
                  "answers that lay in the sockets are read", daemon.counts("d"))
        tap.check(len(receiver.seen()) == 5, "and nothing is sent twice", len(receiver.seen()))
    finally:
        daemon.end()
        receiver.close()


def main():
    tap = process.Tap()
    for trial in (few_descriptors, paused_process):
        folder = process.scratch_folder()
        trial(tap, folder)
        process.clear(tap, folder)
    return tap.end()


sys.exit(receivers() if "--receivers" in sys.argv else main())
