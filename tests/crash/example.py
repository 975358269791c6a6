#!/usr/bin/env python3
"""examples/cluster/run, as somebody types it who has just built the program: it shows a takeover, and leaves nothing behind."""
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import process  # noqa: E402

LIMIT_S = 200


def main():
    tap = process.Tap()
    if not glob.glob("/usr/lib/postgresql/*/bin") and "CI" not in os.environ:
        tap.skip("three nodes on one machine", "PostgreSQL's programs are not installed (tools/deps test installs them)")
        return tap.end()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # PostgreSQL's user goes through it
        ports = " ".join(str(process.free_port()) for _ in range(4))
        done = subprocess.run([os.path.join(process.TOP, "examples", "cluster", "run"), os.path.dirname(process.INSIST)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
                              env={**os.environ, "TMPDIR": folder, "CLUSTER_PORTS": ports})
        said = done.stdout + done.stderr
        tap.check(done.returncode == 0, "it runs to its end", said)
        dead = re.search(r"== (node\d) owns orders: it is killed", said)
        taken = re.search(r"(node\d) has it after (\d+) s", said)
        tap.check(dead and taken and dead[1] != taken[1], "another takes over what the dead one had", said)
        got = said.split("== what the receiver got")[-1]
        tap.check("/before" in got and "/after" in got, "the receiver has the job of before and that of after", said)
        tap.check(os.listdir(folder) == [], "nothing is left", os.listdir(folder))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
