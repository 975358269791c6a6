#!/usr/bin/env python3
"""tools/runtests counts right, above all where a failure could be missed."""
import os
import subprocess
import sys
import tempfile

RUNTESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "runtests")

# name, shell script, passed, failed
CASES = [
    ("a silent success is one test", "true", 1, 0),
    ("a silent failure is one test", "exit 3", 0, 1),
    ("each ok line is a test", "echo ok 1 - a; echo ok 2 - b", 2, 0),
    ("not ok is a failure", "echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1", 1, 1),
    ("a failure is counted even with exit 0", "echo ok 1; echo not ok 2", 1, 1),
    ("a bad exit behind good lines is a failure", "echo 1..1; echo ok 1; exit 99", 1, 1),
    ("a crash is a failure", "echo 1..1; echo ok 1; kill -SEGV $$", 1, 1),
    ("a test that did not come is a failure", "echo 1..3; echo ok 1; echo ok 2", 2, 1),
    ("plans of several groups add up", "echo 1..1; echo ok 1; echo 1..2; echo ok 1; echo ok 2", 3, 0),
    ("a plan without tests is a failure", "echo 1..0", 0, 1),
    ("a plan that skips all is none", "echo '1..0 # skip not here'", 0, 0),
    ("a plan that skips all does not hide a failure", "echo '1..0 # skip not here'; exit 3", 0, 1),
    ("a skipped test is neither", "echo 1..2; echo ok 1; echo 'ok 2 # SKIP no network'", 1, 0),
    ("words that begin with ok are not tests", "echo okay; echo 'not okay'", 1, 0),
    ("a time limit is a failure", "sleep 60", 0, 1),
    ("what ran before the limit counts", "echo ok 1; sleep 60", 1, 1),
    ("one that computes without end is ended", "while :; do :; done # no sleep", 0, 1),
]


def run(*arguments):
    return subprocess.run([RUNTESTS, *arguments], capture_output=True, text=True, check=False)


def passes_under_load(folder, apart):
    """A third of a second of computing within one, while so many others compute that it takes longer by the wall; `apart`: it is done by
    another that is waited for, in a session of its own, as a database does."""
    program, worker = os.path.join(folder, "computes"), os.path.join(folder, "works")
    with open(worker, "w", encoding="utf-8") as file:
        file.write("import time\nwhile time.process_time() < 0.3:\n    pass\n")
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"#!{sys.executable}\nimport subprocess\n"
                   f"subprocess.run([{sys.executable!r}, {worker!r}], start_new_session={apart}, check=True)\n")
    os.chmod(program, 0o755)
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4 * (os.cpu_count() or 2))]
    try:
        return run("--limit", "1", program).returncode == 0
    finally:
        for process in busy:
            process.kill()
            process.wait()


def verdicts(folder):
    """Yields a name and whether it holds."""
    everything = os.path.join(folder, "all")
    for number, (name, script, passed, failed) in enumerate(CASES):
        program, results = os.path.join(folder, f"case{number}"), os.path.join(folder, f"results{number}")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script + "\n")
        os.chmod(program, 0o755)
        limit = "2" if "sleep" in script else "60"
        recorded = run("--results", results, "--limit", limit, program)
        total = run("--sum", results)
        last = total.stdout.splitlines()[-1]
        yield name, (last == f"{passed} passed, {failed} failed" and recorded.returncode == 0
                     and total.returncode == (1 if failed else 0))
        with open(results, encoding="utf-8") as found, open(everything, "a", encoding="utf-8") as file:
            file.write(found.read())
    yield "a processor that others keep busy ends no test", passes_under_load(folder, False)
    yield "nor one that waits for a server", passes_under_load(folder, True)
    last = run("--sum", everything).stdout.splitlines()[-1]
    yield "stages add up", last == f"{sum(c[2] for c in CASES)} passed, {sum(c[3] for c in CASES)} failed"
    yield "no result at all is a failure", run("--sum", os.path.join(folder, "none")).returncode == 1
    yield "a program that is not there is a failure", run(os.path.join(folder, "absent")).returncode == 1
    run("--results", os.path.join(folder, "broken"), "--broken", "build")
    yield "a stage that could not be built is a failure", run("--sum", os.path.join(folder, "broken")).stdout.endswith("0 passed, 1 failed\n")
    shown = run("--one", "named", "--", "sh", "-c", "echo ok 1 - quiet; echo reason; exit 1").stdout
    yield "output is shown of what failed", "named" in shown and "| reason" in shown
    shown = run("--one", "named", "--", "sh", "-c", "echo chatter").stdout
    yield "output is not shown of what passed", "named: 1 passed" in shown and "chatter" not in shown


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, holds) in enumerate(verdicts(folder), 1):
            print(f"{'ok' if holds else 'not ok'} {number} - {name}")
            failures += not holds
    print(f"1..{number}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
