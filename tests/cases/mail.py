"""A mail server for the cases: takes everything but what goes to nobody@.

Usage: mail.py FOLDER. Writes its port to FOLDER/mail-port, and a line of JSON for each message to FOLDER/mail: the
envelope, and what Python's own reader of messages found in it.
"""
import email
import email.policy
import json
import os
import socketserver
import sys

FOLDER = sys.argv[1]


def part_of(part):
    content = part.get_content()
    return {"type": part.get_content_type(), "name": part.get_filename(),
            "content": content.hex() if isinstance(content, bytes) else content.replace("\r\n", "\n")}


def keep(sender, recipients, data):
    message = email.message_from_bytes(data, policy=email.policy.default)
    parts = [part_of(part) for part in message.walk() if not part.is_multipart()]
    line = {"from": sender, "to": recipients, "headers": {name: str(value) for name, value in message.items()},
            "defects": [str(defect) for part in message.walk() for defect in part.defects], "parts": parts}
    with open(os.path.join(FOLDER, "mail"), "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


class Session(socketserver.StreamRequestHandler):
    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def content(self):
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            if not line.endswith(b"\r\n"):
                return None
            lines.append(line[1:] if line.startswith(b".") else line)
        return b"".join(lines)

    def handle(self):
        sender, recipients = "", []
        self.say("220 mail.test")
        while line := self.rfile.readline():
            command = line.decode("utf-8", "replace").strip()
            word = command[:4].upper()
            if word == "MAIL":
                sender, recipients = command[11:].split(">")[0], []
            if word == "EHLO":
                self.say("250-mail.test\r\n250 SIZE 1000000")
            elif word == "RCPT" and "<nobody@" in command:
                self.say("550 5.1.1 no such user")
            elif word == "DATA":
                self.say("354 go on")
                data = self.content()
                if data is None:
                    self.say("500 bare line feed")
                    continue
                keep(sender, recipients, data)
                self.say("250 2.0.0 queued as A1")
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                if word == "RCPT":
                    recipients.append(command[9:].split(">")[0])
                self.say("250 ok")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


with Server(("127.0.0.1", 0), Session) as server:
    with open(os.path.join(FOLDER, "mail-port.part"), "w", encoding="utf-8") as out:
        out.write(str(server.server_address[1]))
    os.rename(os.path.join(FOLDER, "mail-port.part"), os.path.join(FOLDER, "mail-port"))
    server.serve_forever()
