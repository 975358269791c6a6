"""A receiver for the cases. usage: receiver.py FOLDER [ANSWERS [CERTIFICATE KEY]]

Writes its port to FOLDER/port and keeps what comes: FOLDER/requests has one line a request (method, path, headers and
the body in hexadecimal, as JSON). A body that starts with "bad" gets 503, with "never" 499, with "odd" 418 the first time;
the texts of the last two are never the same. One that starts with "refused" gets 403 until there is a FOLDER/open. With ANSWERS, a JSON object from "METHOD path"
to [status, headers, body] or a list of these, one after the other, it answers as that says, and as a daemon does: with Insist-Api, unless that is
among the headers as null.
"""
import http.server
import json
import os
import ssl
import sys
import uuid

folder = sys.argv[1]
answers = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
seen = set()


def judge(body):
    """Status, headers and text for a body."""
    if body.startswith(b"never"):
        return [499, {}, f"Lieferant '{uuid.uuid4().hex}' kennt den Artikel nicht"]
    if body.startswith(b"odd") and body not in seen:
        seen.add(body)
        return [418, {}, f"Bucket {uuid.uuid4()} is warming up"]
    if body.startswith(b"refused") and not os.path.exists(os.path.join(folder, "open")):
        return [403, {}, "not you"]
    return [503 if body.startswith(b"bad") else 200, {}, ""]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body.hex()}
        with open(os.path.join(folder, "requests"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        known = answers.get(f"{self.command} {self.path}")
        if known and isinstance(known[0], list):
            known = known.pop(0) if len(known) > 1 else known[0]
        status, headers, text = known or judge(body)
        headers = {"Insist-Api": "1", **headers} if known else headers
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PATCH = answer

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(os.path.join(folder, "port.part"), "w", encoding="utf-8") as port:
    port.write(str(server.server_port))
os.rename(os.path.join(folder, "port.part"), os.path.join(folder, "port"))
server.serve_forever()
