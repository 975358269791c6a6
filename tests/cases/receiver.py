"""A receiver for the cases. usage: receiver.py FOLDER [ANSWERS]

Writes its port to FOLDER/port and keeps what comes: FOLDER/requests has one line a request (method, path, headers and
the body in hexadecimal, as JSON). A body that starts with "bad" gets 503. With ANSWERS, a JSON object from "METHOD path"
to [status, headers, body], it answers as that says.
"""
import http.server
import json
import os
import sys

folder = sys.argv[1]
answers = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body.hex()}
        with open(os.path.join(folder, "requests"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        known = answers.get(f"{self.command} {self.path}")
        status, headers, text = known or [503 if body.startswith(b"bad") else 200, {}, ""]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PATCH = answer

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(os.path.join(folder, "port.part"), "w", encoding="utf-8") as port:
    port.write(str(server.server_port))
os.rename(os.path.join(folder, "port.part"), os.path.join(folder, "port"))
server.serve_forever()
