"""A proxy that fails on the way to the daemon: flaky.py PORT_FILE DAEMON_PORT

Each client has a path of its own before the API's, /NAME. Its first request is cut off before it is passed on, the second is told
503 with Retry-After, of the third the answer is thrown away, and all others go through.
"""
import http.client
import http.server
import sys
import threading

seen, lock = {}, threading.Lock()


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name, path = self.path[1:].split("/", 1)
        with lock:
            turn = seen[name] = seen.get(name, 0) + 1
        if turn == 1:
            return self.cut()
        if turn == 2:
            return self.answer(503, b'{"type": "busy", "detail": "not now"}', {"Retry-After": "1"})
        daemon = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=60)
        daemon.request("POST", "/" + path, body, {"Content-Type": self.headers["Content-Type"]})
        said = daemon.getresponse()
        text = said.read()
        daemon.close()
        if turn == 3:
            return self.cut()
        return self.answer(said.status, text, {})

    def cut(self):
        self.close_connection = True
        self.connection.shutdown(2)

    def answer(self, status, text, headers):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Passing)
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(str(server.server_address[1]))
server.serve_forever()
