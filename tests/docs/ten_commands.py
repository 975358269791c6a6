"""The ten commands of docs/cluster.md, typed by somebody who has one node, as the page has them. tests/browser looks at what comes of it.

In their place are hosts, ports and folders of this machine. `systemctl`, `ssh`, `scp` and `chown` are those of tools(): a machine is a
folder with an /etc of its own, which `ssh` goes to.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/crash"))
import postgres  # noqa: E402
import process  # noqa: E402

PAGE = "docs/cluster.md"
HEAD = "## From one node to three, in ten commands"
HOSTS = {"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"}
MORE = "".join(f"  {name}: {{ transport: pull }}\n" for name in ("claims", "letters", "mail", "orders"))  # beside the package's own, `work`

TOOLS = {
    "systemctl": r"""
machine=$(readlink machine)
case $1 in
start)
    listen=$(sed -n 's/^listen: *\([^ ]*\).*/\1/p' etc/insist/insist.yaml)
    setsid insist serve -c "$PWD/etc/insist/insist.yaml" >>"$machine/log" 2>&1 &
    echo $! >"$machine/pid"
    until curl -sf "http://$listen/livez" >/dev/null; do kill -0 $! || exit 1; sleep 0.05; done ;;
stop)
    kill "$(cat "$machine/pid")"
    while grep -q '^State:.[^Z]' "/proc/$(cat "$machine/pid")/status" 2>/dev/null; do sleep 0.02; done ;;
esac""",
    "ssh": 'ln -sfn "machines/$1" machine && sh -c "$2"; code=$?; ln -sfn machines/a machine; exit $code',
    "scp": 'mkdir -p "machines/${3%%:*}/etc" && cp "$1" "$2" "machines/${3%%:*}/etc/"',
    "chown": "exit 0",
}


def commands():
    """One to ten, each as it stands there: the shell takes the number for a comment."""
    block = (ROOT / PAGE).read_text(encoding="utf-8").split(HEAD)[1].split("```sh\n")[1].split("```")[0]
    lines = block.replace("\\\n", "").splitlines()
    numbers = [int(found[1]) for line in lines if (found := re.search(r" # (\d+)( |$)", re.sub(r" +", " ", line)))]
    return lines if numbers == list(range(1, 11)) and len(lines) == 10 else []


class Machines(threading.Thread):
    """Three, and that of the database. `results` has what a test says of each command, when it has ended."""

    def __init__(self, programs):
        super().__init__(daemon=True)
        self.folder = tempfile.mkdtemp(prefix="insist-ten-")
        self.port = process.free_port()
        self.server = postgres.Server(programs, superuser="postgres", port=process.free_port())
        self.results = []
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("INSIST") and "proxy" not in name.lower()}
        self.environment.update(PATH=os.pathsep.join((os.path.join(self.folder, "bin"), os.path.dirname(process.INSIST), os.environ["PATH"])),
                                PGHOST=self.server.folder, PGPORT=str(self.server.port), PGUSER="postgres")

    def here(self, text):
        """With what this machine has instead."""
        database = f"localhost:{self.server.port}"
        for there, here in (("/etc/", f"{self.folder}/etc/"), ("/var/lib/", f"{self.folder}/var/lib/"), ("10.0.0.", "127.0.0."),
                            (r"10\.0\.0\.", r"127\.0\.0\."), (":7878", f":{self.port}"), ("db:5432", database), ("@db/", f"@{database}/")):
            text = text.replace(there, here)
        return text

    def prepare(self):
        """A node as the package leaves it, running, with a job."""
        os.makedirs(os.path.join(self.folder, "machines/a/etc/insist"))
        os.makedirs(os.path.join(self.folder, "var/lib/insist"))
        os.makedirs(os.path.join(self.folder, "bin"))
        os.symlink("machines/a", os.path.join(self.folder, "machine"))
        os.symlink("machine/etc", os.path.join(self.folder, "etc"))
        for name, text in TOOLS.items():
            path = pathlib.Path(self.folder, "bin", name)
            path.write_text(f"#!/bin/sh\ncd '{self.folder}' || exit 1\n{text}\n", encoding="utf-8")
            path.chmod(0o755)
        config = (ROOT / "packaging/insist.yaml").read_text(encoding="utf-8")
        pathlib.Path(self.folder, "etc/insist/insist.yaml").write_text(self.here(config) + MORE, encoding="utf-8")
        self.type(f"systemctl start insist && echo '{{}}' | insist --server http://127.0.0.1:{self.port} add work --id before -")

    def type(self, command, enough=lambda said: True):
        """Whether it went well, and said what is wanted; a command that only asks may be given again."""
        def run():
            self.done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, input="PASSWORD\nPASSWORD\n",
                                       capture_output=True, text=True, start_new_session=True)
            return self.done.returncode == 0 and enough(self.done.stdout)
        good = process.wait_until(run, every=0.2) if command.startswith("insist --server") else run()
        self.results.append((good, command.replace(self.folder, ""), self.done.stdout + self.done.stderr + self.logs()))
        return good

    def logs(self):
        return "".join(path.read_text(errors="replace")[-1500:] for path in pathlib.Path(self.folder).glob("machines/*/log"))

    def play(self):
        lines = [self.here(line) for line in commands()]
        self.results.append((bool(lines), f"{PAGE} has ten commands", ""))
        if not lines:
            return
        to_c = [re.sub(r"\bb:", "c:", line).replace("ssh b ", "ssh c ").replace("127.0.0.2", "127.0.0.3").replace("name: b,", "name: c,")
                for line in lines[7:9]]
        good = True
        for line in (*lines[:9], *to_c):
            good = good and self.type(line)  # each builds on those before
        if good:
            self.type(lines[9], lambda said: all(re.search(rf"^{name} .*{host}", said, re.M) for name, host in HOSTS.items()))
        status, job = self.ask("c", "/v1/jobs/before")
        self.results.append((status == 200 and job["state"] == "pending", "the third node has the job that the only one had", (status, job)))

    def run(self):
        try:
            self.results.append((self.server.start(), "PostgreSQL starts", ""))
            self.prepare()
            self.play()
        except Exception as problem:  # which must not be lost with its thread
            self.results.append((False, "the ten commands are typed", repr(problem)))

    def ask(self, name, path):
        connection = http.client.HTTPConnection(HOSTS[name], self.port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as problem:
            return 0, repr(problem)
        finally:
            connection.close()

    def end(self):
        self.join()
        for path in pathlib.Path(self.folder).glob("machines/*/pid"):
            try:
                os.kill(int(path.read_text()), signal.SIGKILL)
            except (ProcessLookupError, ValueError):
                pass
        self.server.end()
        shutil.rmtree(self.folder, ignore_errors=True)
