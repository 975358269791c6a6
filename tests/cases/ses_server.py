"""A stand-in for Amazon SES, API v2. usage: ses_server.py FOLDER ACCESS_KEY SECRET REGION

Writes its port to FOLDER/ses-port and keeps what comes: FOLDER/ses has one line a call, as JSON, with the raw message decoded.
Every call's signature is computed again, from the description of SigV4 and with nothing of the sender's: one that differs is
answered as AWS does. A recipient NAME@error.test gets the error NAME, told in the header, in the body or in both. One of
broken.test gets success in a body that is none of SES, or very long.
"""
import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import sys
import urllib.parse

folder, access_key, secret, region = sys.argv[1:5]

# name: status, where the name stands, message
ERRORS = {
    "TooManyRequestsException": (429, "header", "Too many requests"),
    "ThrottlingException": (400, "header", "Maximum sending rate exceeded."),
    "MessageRejected": (400, "body", "Email content is blocked"),
    "AccountSuspendedException": (400, "both", "The account is permanently restricted"),
    "SendingPausedException": (400, "body", "Sending is paused for this account"),
    "InternalServiceErrorException": (500, "body", "Try again"),
    "BadRequestException": (400, "header", "Missing final '@domain'"),
}
failed_once = set()


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def verified(request, body):
    """The name of what is wrong, or None."""
    found = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)",
                     request.headers.get("Authorization", ""))
    if not found:
        return "IncompleteSignature"
    key, day, place, service, names, signature = found.groups()
    stamp = request.headers.get("X-Amz-Date", "")
    names = names.split(";")
    if key != access_key:
        return "UnrecognizedClientException"
    if place != region or service != "ses" or stamp[:8] != day or "host" not in names or names != sorted(names):
        return "SignatureDoesNotMatch"
    path, _, query = request.path.partition("?")
    lines = [f"{name}:{' '.join(request.headers[name].split())}" if name in request.headers else "missing" for name in names]
    canonical = "\n".join([request.command, urllib.parse.quote(path), query, *lines, "", ";".join(names),
                           hashlib.sha256(body).hexdigest()])
    scope = f"{day}/{region}/ses/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signing = sign(sign(sign(sign(("AWS4" + secret).encode(), day), region), "ses"), "aws4_request")
    return None if hmac.compare_digest(hmac.new(signing, text.encode(), hashlib.sha256).hexdigest(), signature) else "SignatureDoesNotMatch"


LONG = [{"Status": "MESSAGE_REJECTED", "Error": "no"}] + [{"Status": "SUCCESS", "MessageId": f"bulk-{i}"} for i in range(100)]
BROKEN = {"page": "<html>welcome</html>", "cut": '{"MessageId": "0100-', "empty": "{}", "long": json.dumps({"BulkEmailEntryResults": LONG})}


def broken(call):
    """The body for a recipient of broken.test, or None."""
    entries = call.get("BulkEmailEntries") or [call]
    name, _, domain = entries[0]["Destination"]["ToAddresses"][0].partition("@")
    return BROKEN[name] if domain == "broken.test" else None


def bulk(call):
    entries = []
    for entry in call["BulkEmailEntries"]:
        name, _, domain = entry["Destination"]["ToAddresses"][0].partition("@")
        entries.append({"Status": name, "Error": "no"} if domain == "error.test" else {"Status": "SUCCESS", "MessageId": f"bulk-{name}"})
    return 200, {}, {"BulkEmailEntryResults": entries}


def judge(path, call):
    if path == "/v2/email/outbound-bulk-emails":
        return bulk(call)
    for address in call["Destination"]["ToAddresses"]:
        name, _, domain = address.partition("@")
        if domain == "error.test" and not (name.startswith(("Too", "Throttling", "Internal")) and name in failed_once):
            failed_once.add(name)
            status, where, message = ERRORS[name]
            header = {"x-amzn-ErrorType": name + ":http://internal.amazon.com/coral/"} if where != "body" else {}
            named = {"__type": "com.amazonaws.sesv2#" + name} if where != "header" else {}
            return status, header, {**named, "message": message}
    return 200, {}, {"MessageId": "0100-" + hashlib.sha256(json.dumps(call).encode()).hexdigest()[:16]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        wrong = verified(self, body)
        call = json.loads(body)
        if wrong:
            status, headers, answer = 403, {"x-amzn-ErrorType": wrong}, {"message": "The request signature does not match"}
        else:
            status, headers, answer = judge(self.path, call)
        raw = call.get("Content", {}).get("Raw", {}).get("Data", "")
        line = {"path": self.path, "wrong": wrong, "call": call, "raw": base64.b64decode(raw).decode("utf-8", "replace"),
                "token": self.headers.get("X-Amz-Security-Token"), "status": status}
        with open(os.path.join(folder, "ses"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        text = (broken(call) or json.dumps(answer)).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(os.path.join(folder, "ses-port.part"), "w", encoding="utf-8") as port:
    port.write(str(server.server_address[1]))
os.rename(os.path.join(folder, "ses-port.part"), os.path.join(folder, "ses-port"))
server.serve_forever()
