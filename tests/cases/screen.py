"""Runs a command in a terminal of 80 columns and 24 lines, sends keys when texts appear, and prints what was shown.

usage: screen.py KEYS COMMAND...: KEYS is text=key pairs joined by commas, each key sent once its text has been seen.
"""
import fcntl, os, pty, select, struct, sys, termios, time

steps = [pair.split("=") for pair in sys.argv[1].split(",")]
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
seen, since, ends = "", "", time.monotonic() + 60
while time.monotonic() < ends:
    if select.select([terminal], [], [], 0.2)[0]:
        try:
            piece = os.read(terminal, 65536).decode("utf-8", "replace")
        except OSError:
            break
        if not piece:
            break
        seen += piece
        since += piece
    if steps and steps[0][0] in since:
        os.write(terminal, steps.pop(0)[1].encode())
        since = ""
else:
    os.kill(child, 15)
_, status = os.waitpid(child, 0)
sys.stdout.write(seen)
sys.exit(os.waitstatus_to_exitcode(status) if not steps else 9)
