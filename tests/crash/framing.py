#!/usr/bin/env python3
"""Requests that a proxy and the daemon might cut at different places: a table of them, sent directly and through a real
nginx that keeps its connections. Each hides the beginning of another request, which waits for the next caller's token
to act with it. None may act, and the next caller is answered what it asked."""
import hashlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile

from process import Daemon, Tap, free_port, scratch_folder, wait_until

TOKEN = "the-token-of-the-next-caller"
HIDDEN = b"POST /v1/destinations/yard/pause HTTP/1.1\r\nHost: localhost\r\nX-Eat: "
NEXT = (f"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Connection: close\r\n\r\n").encode()


def post(headers, body=None, line=b"POST /v1/decide HTTP/1.1", host=b"Host: localhost\r\n"):
    """Without a body the hidden request stands where one would be."""
    return line + b"\r\n" + host + headers + b"\r\n" + (HIDDEN if body is None else body)


def length(value):
    return b"Content-Length: " + value + b"\r\n"


def coding(value):
    return b"Transfer-Encoding: " + value + b"\r\n"


def chunks(text):
    """A body in chunks that begins like this, and ends, and has the hidden request behind it."""
    return post(coding(b"chunked"), text + b"0\r\n\r\n" + HIDDEN)


def table():
    whole = str(len(HIDDEN)).encode()
    rows = []

    def add(name, data):
        rows.append((name, data))

    for method in (b"HEAD", b"GET", b"DELETE", b"OPTIONS"):
        add(method.decode() + " with a length", post(length(whole), line=method + b" /livez HTTP/1.1"))
        add(method.decode() + " with chunks", post(coding(b"chunked"), b"%x\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN),
                                                   line=method + b" /livez HTTP/1.1"))
    for value in (b"identity", b"xchunked", b"chunkedx", b'"chunked"', b"\x0bchunked", b"chunked\x0b", b"chunked\x00", b"\x00chunked",
                  b"chunked, identity", b"identity, chunked", b"chunked, chunked", b"gzip, chunked", b"chunked;q=1", b"chunked;",
                  b"chunk", b"", b"chunked chunked", b",chunked", b"chunked,", b"\xffchunked", b"c hunked", b"x",
                  b"chunked\r\n ", b"\r\n chunked"):
        add(f"Transfer-Encoding: {value!r}", post(coding(value)))
        add(f"Transfer-Encoding: {value!r} with an end", post(coding(value), b"0\r\n\r\n" + HIDDEN))
    for value in (b"+" + whole, b"-1", b"0x2", whole + b"," + whole, b"2, 3", b"2 3", b"1e1", b"", b"\x002", b"2\x00", b"2\x0b", b"\x0c2",
                  b"18446744073709551616", b"99999999999999999999", b"4294967296999999999", b"2.0", b"2;x", b"'2'", b"\xb2", b"two",
                  b"2\r\n 3", b"0_2", b"- 2"):
        add(f"Content-Length: {value!r}", post(length(value)))
    for name, headers in (("the same length twice", length(b"2") * 2), ("two lengths", length(b"2") + length(whole)),
                          ("two lengths, none first", length(b"0") + length(whole)),
                          ("length, then chunks", length(whole) + coding(b"chunked")),
                          ("chunks, then length", coding(b"chunked") + length(b"4")), ("chunks twice", coding(b"chunked") * 2),
                          ("chunks and identity", coding(b"chunked") + coding(b"identity")),
                          ("identity and length", coding(b"identity") + length(b"2")),
                          ("a blank before the colon", b"Content-Length : 2\r\n"), ("a tab before it", b"Content-Length\t: 2\r\n"),
                          ("a blank before a name", b" Content-Length: 2\r\n"), ("a header with no name", b": 2\r\n"),
                          ("a line without a colon", b"Content-Length 2\r\n"), ("NUL in a name", b"Content-Length\x00: 2\r\n"),
                          ("a folded length", b"X: a\r\n Content-Length: 2\r\n"), ("a folded name", b"Content-\r\n Length: 2\r\n"),
                          ("a name in quotes", b'"Content-Length": 2\r\n'), ("a name with a bracket", b"(Content-Length): 2\r\n"),
                          ("NUL in a value", b"X: a\x00b\r\n" + length(b"2")), ("bare CR in a value", b"X: a\rContent-Length: 2\r\n"),
                          ("bare LF behind a header", b"X: a\n" + length(b"2")), ("bare LF before", b"Content-Length: 2\n"),
                          ("bare LF in a value", b"X: a\nTransfer-Encoding: chunked\r\n" + length(b"2")),
                          ("two CR", b"X: a\r\r\n"), ("a bare empty line", b"X: a\r\n\n"), ("LF CR LF", b"X: a\n\r\n"),
                          ("DEL in a value", b"X: \x7f\r\n"), ("an escape in a value", b"X: \x1b[2J\r\n"),
                          ("two tokens", b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n")):
        add(name, post(headers))
    for line in (b"POST /v1/decide HTTP/1.-1", b"POST /v1/decide HTTP/1.2", b"POST /v1/decide HTTP/2.0", b"POST /v1/decide HTTP/0.9",
                 b"POST /v1/decide", b"POST /v1/decide HTTP/1.1 ", b"POST /v1/decide HTTP/1.1x", b"POST /v1/decide http/1.1",
                 b"POST  /v1/decide HTTP/1.1", b"POST /v1/decide  HTTP/1.1", b"POST\t/v1/decide HTTP/1.1", b" POST /v1/decide HTTP/1.1",
                 b"POST /v1/decide HTTP/01.1", b"POST /v1/decide HTTP/1.10", b"POST /v1/de\x00cide HTTP/1.1", b"POST /v1/de cide HTTP/1.1",
                 b"POST v1/decide HTTP/1.1", b"POST * HTTP/1.1", b"POST http://evil.example/ HTTP/1.1", b"POST /v1/decide#x HTTP/1.1",
                 b"post /v1/decide HTTP/1.1", b"PO\x00ST /v1/decide HTTP/1.1", b"CONNECT localhost:1 HTTP/1.1", b"TRACE / HTTP/1.1",
                 b"POST /v1/decide\rHTTP/1.1", b"POST /v1/decide\x0bHTTP/1.1", b"\x00POST /v1/decide HTTP/1.1", b"POST /\xff HTTP/1.1"):
        add(f"{line!r}", post(length(b"2"), line=line))
    for name, host in (("no Host", b""), ("two", b"Host: localhost\r\nHost: localhost\r\n"), ("another one", b"Host: a\r\nHost: localhost\r\n"),
                       ("an empty one", b"Host:\r\n"), ("a list", b"Host: localhost, b\r\n"), ("a path", b"Host: localhost/x\r\n"),
                       ("a user", b"Host: a@localhost\r\n"), ("a bad port", b"Host: localhost:1x\r\n"), ("a blank", b"Host: local host\r\n"),
                       ("a name in brackets", b"Host: [evil.example]\r\n"), ("no end", b"Host: [::1\r\n"), ("NUL", b"Host: localhost\x00\r\n"),
                       ("evil", b"Host: evil\r\n"), ("evil.example", b"Host: evil.example\r\n"), ("localhost.evil", b"Host: localhost.evil\r\n")):
        add("Host: " + name, post(length(b"2"), host=host))
    for text in (b"0x2\r\n{}\r\n", b"+2\r\n{}\r\n", b"-2\r\n{}\r\n", b" 2\r\n{}\r\n", b"2 \r\n{}\r\n", b"2;a=b\r\n{}\r\n", b"2;\r\n{}\r\n",
                 b'2;a="\n"\r\n{}\r\n', b"2\n{}\r\n", b"2\r\n{}\n", b"2\r{}\r\n", b"2\r\n{}x\r\n", b"2\r\n{}", b"\r\n2\r\n{}\r\n", b"g\r\n{}\r\n",
                 b"\x002\r\n{}\r\n", b"00000000000000002\r\n{}\r\n", b"10000000000000002\r\n{}\r\n", b"ffffffffffffffff\r\n{}\r\n",
                 b"fffffffffffffffe2\r\n{}\r\n", b"2\t\r\n{}\r\n", b"2\r\n{}\r\n0\n\n", b"2\r\n{}\r\n0\r\nX: y\r\n\r\n",
                 b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n", b"2\r\n{}\r\n0;a\r\n\r\n", b"2\r\n{}\r\n0 \r\n\r\n", b"2\r\n{}\r\n0\r\n\n",
                 b"2\r\n{}\r\n-0\r\n\r\n", b"2\r\n{}\r\n0x0\r\n\r\n", b"2\r\n{}\r\n0\r\nx\r\n"):
        add(f"chunks {text!r}", chunks(text))
    return rows


def exchange(port, data):
    """Everything that comes back, until the other side closes."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as to:
        try:
            to.sendall(data)
            to.shutdown(socket.SHUT_WR)
            while piece := to.recv(65536):
                got += piece
        except ConnectionError:
            pass
    return got


def ask(port):
    """What the next caller is answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/v1/stats", headers={"Authorization": f"Bearer {TOKEN}", "Host": "localhost"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def is_stats(answer):
    return answer[0] == 200 and b'"totals"' in answer[1]


def paused(daemon):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    connection.request("GET", "/v1/destinations/yard", headers={"Authorization": f"Bearer {TOKEN}"})
    text = connection.getresponse().read()
    connection.close()
    return b'"mode":"normal"' not in text


def act_back(daemon):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    connection.request("POST", "/v1/destinations/yard/resume", headers={"Authorization": f"Bearer {TOKEN}"})
    connection.getresponse().read()
    connection.close()


def sent_directly(daemon, rows):
    """The next caller's request follows on the same connection, as a proxy would send it."""
    bad = []
    for name, data in rows:
        answers = exchange(daemon.port, data + NEXT)
        first = answers.split(b" ", 2)[1:2]
        if paused(daemon):
            bad.append(f"{name}: acted")
            act_back(daemon)
        elif first not in ([b"400"], [b"421"], [b"501"]) or answers.count(b"HTTP/1.1 ") != 1:
            bad.append(f"{name}: {answers[:300]!r}")
    return bad


def sent_through_nginx(daemon, port, rows):
    bad = []
    for name, data in rows:
        exchange(port, data)
        answers = [ask(port) for _ in range(2)]
        if paused(daemon):
            bad.append(f"{name}: acted")
            act_back(daemon)
        elif not all(is_stats(answer) for answer in answers):
            bad.append(f"{name}: the next was answered {answers[0][0]} {answers[0][1][:200]!r}")
    return bad


def start_nginx(folder, upstream):
    port = free_port()
    config = os.path.join(folder, "nginx.conf")
    with open(config, "w") as out:
        out.write(f"""daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d;
  scgi_temp_path {folder}/e;
  upstream insist {{ server 127.0.0.1:{upstream}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port}; underscores_in_headers on; ignore_invalid_headers off;
    location / {{
      proxy_pass http://insist; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_request_buffering off; proxy_next_upstream off;
    }}
  }}
}}
""")
    path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
    process = subprocess.Popen([shutil.which("nginx", path=path) or "nginx", "-p", folder, "-e", f"{folder}/nginx.log", "-c", config])

    def listens():
        with socket.socket() as probe:
            return process.poll() is not None or probe.connect_ex(("127.0.0.1", port)) == 0
    wait_until(listens)
    return process, port


def main():
    tap = Tap()
    folder = scratch_folder()
    with open(os.path.join(folder, "tokens.yaml"), "w") as out:
        out.write(f"tokens:\n  - {{ name: next, sha256: {hashlib.sha256(TOKEN.encode()).hexdigest()}, scopes: [admin] }}\n")
    daemon = Daemon(folder, "  yard: { transport: pull }\n", more="auth: { tokens_file: tokens.yaml }\n", store="memory")
    nginx = None
    rows = table()
    try:
        daemon.start()
        tap.check(len(rows) >= 100, f"there are {len(rows)} attacks")
        good = exchange(daemon.port, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" + NEXT)
        tap.check(good.count(b"HTTP/1.1 200 ") == 2, "two good requests on one connection are both answered", good)
        bad = sent_directly(daemon, rows)
        tap.check(not bad, "sent directly, each is refused and none acts", "\n".join(bad))
        with tempfile.TemporaryDirectory(prefix="insist-nginx-") as place:
            nginx, port = start_nginx(place, daemon.port)
            tap.check(is_stats(ask(port)), "nginx passes requests on")
            bad = sent_through_nginx(daemon, port, rows)
            tap.check(not bad, "through nginx with kept connections none acts", "\n".join(bad))
            nginx.terminate()
            nginx.wait()
    finally:
        if nginx and nginx.poll() is None:
            nginx.kill()
        daemon.end()
        shutil.rmtree(folder, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
