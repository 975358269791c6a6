"""A daemon, a receiver and a page in a browser, and what a person does with them."""
import contextlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
import process  # noqa: E402
from browser import Browser, Page  # noqa: E402


def includes(selector, text):
    return f"(document.querySelector({json.dumps(selector)})?.innerText || '').includes({json.dumps(text)})"


class Scene:
    """`destinations` has a %d where the receiver's port goes; `status` tells what the receiver answers to a job."""

    def __init__(self, tap, destinations, status, pictures=None):
        self.tap = tap
        self.folder = process.scratch_folder()
        self.receiver = process.Receiver(lambda key, attempt: (status(key), 0))
        self.daemon = process.Daemon(self.folder, destinations % self.receiver.port)
        self.pictures = pictures
        if pictures:
            os.makedirs(pictures, exist_ok=True)
        self.browser = None
        self.page = None

    def open(self, width=1280):
        self.browser = Browser()
        self.page = Page(self.browser, width)
        self.page.open(self.address())

    def address(self, hash_=""):
        return f"http://127.0.0.1:{self.daemon.port}/{hash_}"

    def insist(self, *arguments):
        return subprocess.run([process.INSIST, "--server", self.address(), *arguments], capture_output=True, text=True, timeout=60)

    def picture(self, name):
        if self.pictures:
            self.browser.listen(0.3)
            self.page.picture(os.path.join(self.pictures, name + ".png"))

    def go(self, hash_, shown):
        """By the address alone, as a link does; until the expression is true of what is shown then, not of what was shown before."""
        self.page.run("new Promise(done => { const before = location.href; addEventListener('hashchange', () => done(), {once: true});"
                      f" location.hash = {json.dumps(hash_)}; if (location.href === before) done(); }})")
        return self.tap.check(self.page.until(shown), f"{hash_} is shown", self.page.text("body"))

    def say(self, title):
        """The button or link of that name in what is shown, pressed as a person would."""
        found = ("[...document.querySelectorAll('#view button, #view a')].find(b => b.checkVisibility() &&"
                 f" [b.innerText.trim(), b.getAttribute('aria-label')].includes({json.dumps(title)}))")
        if not self.tap.check(self.page.until(f"!!{found}"), f"there is a button {title}", self.page.text("#view")):
            return
        self.page.press(found)

    def confirm(self, says, values=None):
        self.tap.check(self.page.until("document.querySelector('#confirm').open"), "it asks first", self.page.text("#view"))
        text = self.page.text("#confirm")
        self.tap.check(says in text, f"and says: {says}", text)
        for name, value in (values or {}).items():
            self.page.run(f"document.querySelector('#confirm [name={name}]').value = {json.dumps(value)}")
        self.page.click("#confirm-yes")

    @contextlib.contextmanager
    def meant(self, *texts):
        """What the browser itself complains of meanwhile is no fault when it has one of these texts."""
        self.browser.listen(0)
        before = len(self.page.complaints)
        yield
        self.browser.listen(0.1)
        self.page.complaints[before:] = [one for one in self.page.complaints[before:] if not any(text in one for text in texts)]

    def nothing_odd(self):
        """No complaint of the console, no request that failed without being meant, nothing asked of another origin."""
        self.browser.listen(0.1)
        self.tap.check(not self.page.complaints, "the console has no complaint", "\n".join(self.page.complaints))
        foreign = [address for address in self.page.addresses if not address.startswith((self.address(), "data:", "about:", "blob:"))]
        self.tap.check(not foreign, "nothing is asked of another origin", foreign)

    def end(self):
        if self.browser:
            self.browser.close()
        self.daemon.end()
        self.receiver.close()
        process.remove(self.folder)
