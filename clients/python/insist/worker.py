"""A pull worker: leases jobs, runs a function for each, keeps their leases alive, stops without losing any."""
from __future__ import annotations

import base64
import json
import logging
import signal
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Optional

from .client import Client, InsistError, Problem

log = logging.getLogger("insist")

POLL_S = 5  # how long one question for work waits, and so how long a stop may take when there is none
ERROR_CHARS_MAX = 4000


class Transient(Exception):
    """Raised by a handler: try again later, whatever the policy thinks of the text."""
    class_ = "transient"

    def __init__(self, message: str, *, code: Optional[str] = None, retry_after: Optional[float] = None):
        super().__init__(message)
        self.code, self.retry_after = code, retry_after


class Permanent(Exception):
    """Raised by a handler: this will never work; make it a dead letter."""
    class_ = "permanent"

    def __init__(self, message: str, *, code: Optional[str] = None):
        super().__init__(message)
        self.code, self.retry_after = code, None


class LeasedJob:
    """What a handler is given."""

    def __init__(self, leased: dict):
        self.id: str = leased["id"]
        self.tenant: str = leased.get("tenant", "")
        self.destination: str = leased["destination"]
        self.attempt: int = leased["attempt"]
        self.content_type: Optional[str] = leased.get("content_type")
        self.headers: dict = leased.get("headers") or {}
        self.metadata: Any = leased.get("metadata")
        self.correlation_id: Optional[str] = leased.get("correlation_id")
        self.key: Optional[str] = leased.get("key")
        self.gap: bool = bool(leased.get("gap"))  # the one of its key before it is a dead letter
        self.lease: str = leased["lease"]
        self.lost = threading.Event()  # set when somebody else may have the job now: a long handler looks at it
        if "payload_base64" in leased:
            self.payload = base64.b64decode(leased["payload_base64"])
        else:
            self.payload = leased.get("payload", "").encode()

    def json(self) -> Any:
        return json.loads(self.payload)


class Worker:
    """Runs `handler(job)` for jobs of a `transport: pull` destination, `concurrency` at once.

    The handler returns: done. It raises: the destination's policy decides by the text, unless it raised Transient or Permanent.
    """

    def __init__(self, client: Client, destination: str, handler: Callable[[LeasedJob], Any], *, concurrency: int = 4,
                 lease_s: int = 60, name: Optional[str] = None):
        if concurrency < 1 or lease_s < 3:
            raise ValueError("concurrency is at least 1, lease_s at least 3")
        self._client, self._destination, self._handler = client, destination, handler
        self._concurrency, self._lease_s, self._name = concurrency, lease_s, name
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._free = threading.Semaphore(concurrency)
        self._held: dict[str, LeasedJob] = {}
        self._lock = threading.Lock()

    def stop(self, *_: Any) -> None:
        """Takes no more; run() returns when those that are under way have ended. May be called from a signal or any thread."""
        self._stopping.set()

    def run(self, *, signals: bool = True) -> None:
        """Works until stop(); with `signals`, also until SIGTERM or SIGINT where this is the main thread."""
        if signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self.stop)
        heart = threading.Thread(target=self._beat, name="insist-leases", daemon=True)
        heart.start()
        try:
            with ThreadPoolExecutor(self._concurrency, thread_name_prefix="insist") as pool:
                while not self._stopping.is_set():
                    self._take(pool)
        finally:
            self._ended.set()
            heart.join()

    def _take(self, pool: ThreadPoolExecutor) -> None:
        """Waits for a free place, then asks for as many jobs as there are free places."""
        if not self._free.acquire(timeout=0.5):
            return
        places = 1
        while places < self._concurrency and self._free.acquire(blocking=False):
            places += 1
        jobs: list[LeasedJob] = []
        try:
            jobs = self._lease(places)
            with self._lock:
                self._held.update((job.lease, job) for job in jobs)
            for job in jobs:
                pool.submit(self._work, job)
        finally:
            for _ in range(places - len(jobs)):
                self._free.release()

    def _lease(self, places: int) -> list[LeasedJob]:
        wish = {"destination": self._destination, "max": places, "wait_s": POLL_S, "lease_s": self._lease_s}
        if self._name:
            wish["worker"] = self._name
        try:
            return [LeasedJob(one) for one in self._client.call("POST", "/v1/leases", wish, timeout=POLL_S + 30, patience=0)["leases"]]
        except Problem as problem:
            if problem.status < 500 and problem.status != 429:
                raise  # no such destination, no such right: waiting does not help
            failure: InsistError = problem
        except InsistError as error:
            failure = error
        log.warning("insist: no work for now: %s", failure)
        self._stopping.wait(max(1.0, getattr(failure, "retry_after", None) or 0))
        return []

    def _work(self, job: LeasedJob) -> None:
        try:
            try:
                self._handler(job)
                self._end(job, "/v1/leases/ack", {"leases": [job.lease]})
            except Exception as error:  # whatever a handler raises is the job's failure, not the worker's
                self._end(job, "/v1/leases/nack", _nack_of(job, error))
        finally:
            with self._lock:
                self._held.pop(job.lease, None)
            self._free.release()

    def _end(self, job: LeasedJob, path: str, body: dict) -> None:
        try:
            self._client.call("POST", path, body)
        except InsistError as error:
            job.lost.set()
            log.error("insist: job %s: what came of it could not be told, it may be done again: %s", job.id, error)

    def _beat(self) -> None:
        """Prolongs every lease in time for two more tries before it ends."""
        while not self._ended.wait(self._lease_s / 3):
            with self._lock:
                leases = [job.lease for job in self._held.values() if not job.lost.is_set()]
            for first in range(0, len(leases), 1000):
                self._extend(leases[first:first + 1000])

    def _extend(self, leases: list[str]) -> None:
        try:
            answer = self._client.call("POST", "/v1/leases/extend", {"leases": leases, "lease_s": self._lease_s}, timeout=10,
                                       patience=self._lease_s / 3)
            lost = [one["lease"] for one in answer["results"] if one["status"] != "extended"]
        except Problem as problem:
            lost = leases if problem.type == "lease_lost" else []
            if not lost:
                log.warning("insist: leases could not be prolonged: %s", problem)
        except InsistError as error:
            log.warning("insist: leases could not be prolonged: %s", error)
            return
        with self._lock:
            for lease in lost:
                if lease in self._held:
                    self._held[lease].lost.set()


def _nack_of(job: LeasedJob, error: Exception) -> dict:
    text = str(error) if isinstance(error, (Transient, Permanent)) else "".join(traceback.format_exception_only(type(error), error))
    body: dict = {"lease": job.lease, "error": text.strip()[:ERROR_CHARS_MAX] or type(error).__name__}
    if isinstance(error, (Transient, Permanent)):
        body["class"] = error.class_
        if error.code:
            body["code"] = error.code
        if error.retry_after is not None:
            body["retry_after"] = error.retry_after
    return body
