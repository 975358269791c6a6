"""Writes the first request that comes, as JSON with its headers and its body in base64: capture.py PORT_FILE REQUEST_FILE"""
import base64
import http.server
import json
import os
import sys


class Taking(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[2] + ".part", "w", encoding="utf-8") as file:
            json.dump({"headers": dict(self.headers.items()), "body": base64.b64encode(body).decode()}, file)
        os.rename(sys.argv[2] + ".part", sys.argv[2])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking)
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(str(server.server_address[1]))
server.serve_forever()
