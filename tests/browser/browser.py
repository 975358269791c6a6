"""A browser for tests: Chromium without a window, spoken to by its debugging protocol over a pair of pipes.

No port is opened and nothing but Python's own library is needed. Everything waits for a bounded time.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

WAIT_S = 60  # for anything: a machine may be busy

# Where to press an element. Until `aim.end()` tells whether it was hit, whatever hits another one is heard by nobody.
AIM = """((e) => {
  if (!e?.getClientRects().length) return null;
  e.scrollIntoView({ block: 'center' });
  const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
  let hit = false;
  const hear = (event) => {
    const on = e.contains(event.target);
    if (!on) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (event.type === 'click') hit = true;
  };
  for (const kind of kinds) addEventListener(kind, hear, true);
  window.aim = { end() {
    for (const kind of kinds) removeEventListener(kind, hear, true);
    return hit;
  } };
  const r = e.getClientRects()[0];
  return [r.x + r.width / 2, r.y + r.height / 2];
})(%s)"""


class Browser:
    def __init__(self):
        self.program = shutil.which("chromium") or shutil.which("chromium-browser")
        if not self.program:
            raise FileNotFoundError("chromium is missing; tools/deps test installs it")
        self.folder = tempfile.mkdtemp(prefix="insist-browser-")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        self.process = subprocess.Popen(
            [self.program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-default-apps", "--mute-audio", "--hide-scrollbars",
             "--no-proxy-server", "--user-data-dir=" + self.folder, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            # The browser reads orders from 3 and answers on 4.
            preexec_fn=lambda: (os.dup2(to_read, 103), os.dup2(to_write, 104), os.dup2(103, 3), os.dup2(104, 4)),
            pass_fds=(3, 4))
        os.close(to_read)
        os.close(to_write)
        self.number = 0
        self.pending = b""
        self.listeners = []

    def close(self):
        """Ends the browser and everything that it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        for _ in range(20):  # its children may still be writing
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.1)

    def _message(self, end):
        while b"\0" not in self.pending:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                return None
            piece = os.read(self.read_end, 1 << 16)
            if not piece:
                raise EOFError("the browser is gone")
            self.pending += piece
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def _hear(self, message):
        for listener in self.listeners:
            listener(message)

    def order(self, method, parameters=None, session=None):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters or {}}
        if session:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        end = time.monotonic() + WAIT_S
        while True:
            message = self._message(end)
            if message is None:
                raise TimeoutError(f"no answer to {method}")
            if message.get("id") == request["id"]:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._hear(message)

    def listen(self, seconds):
        end = time.monotonic() + seconds
        while (message := self._message(end)) is not None:
            self._hear(message)


class Page:
    """One tab. Remembers what the console complained about and which addresses were asked for."""

    def __init__(self, browser, width=1280, height=900):
        self.browser = browser
        self.complaints = []
        self.addresses = []
        self.target = browser.order("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = browser.order("Target.attachToTarget", {"targetId": self.target, "flatten": True})["sessionId"]
        browser.listeners.append(self._hear)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.order(domain + ".enable")
        self.size(width, height)

    def order(self, method, parameters=None):
        return self.browser.order(method, parameters, self.session)

    def _hear(self, message):
        if message.get("sessionId") != self.session:
            return
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.addresses.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append("console: " + json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            entry = parameters["entry"]
            self.complaints.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")

    def size(self, width, height, phone=False):
        self.order("Emulation.setDeviceMetricsOverride",
                   {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})

    def scheme(self, name):
        self.order("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def open(self, address):
        self.order("Page.navigate", {"url": address})

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        answer = self.order("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    def until(self, script, seconds=WAIT_S):
        """Waits until the expression is true; whether it became so."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.run(script):
                    return True
            except RuntimeError:
                pass  # the page is being loaded
            self.browser.listen(0.05)
        return False

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def click(self, selector):
        """As a user does: in the middle of what is seen, so that what is covered is not hit."""
        self.press(f"document.querySelector({json.dumps(selector)})")

    def press(self, found):
        """What the expression finds. A page that is being filled may move it away between a look and the press: then it is tried again."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            place = self.run(AIM % found)
            if place:
                for kind in ("mousePressed", "mouseReleased"):
                    self.order("Input.dispatchMouseEvent",
                               {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1})
                if self.run("aim.end()"):
                    return
            self.browser.listen(0.05)
        raise TimeoutError(f"it is not there, covered or never still: {found}")

    def type(self, text):
        self.order("Input.insertText", {"text": text})

    def key(self, name, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.order("Input.dispatchKeyEvent", {"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code,
                                                  "text": text if kind == "keyDown" else ""})

    def names(self):
        """What a screen reader is told: (role, name) of all that is not left out."""
        nodes = self.order("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")]

    def picture(self, path, whole=True):
        data = self.order("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
