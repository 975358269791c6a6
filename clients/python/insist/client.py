"""The HTTP API: one object that any number of threads may share."""
from __future__ import annotations

import base64
import dataclasses
import datetime
import http.client
import json
import os
import random
import threading
import time
import urllib.parse
import uuid
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

Payload = Union[str, bytes, bytearray, Mapping[str, Any], list, int, float, bool, None]
When = Union[str, datetime.datetime]

AGAIN = frozenset({429, 502, 503, 504})  # the daemon, or a proxy before it, says: not now
BATCH_JOBS_MAX = 1000
BATCH_BYTES_MAX = 8 * 1024 * 1024
BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.2, 10.0


class InsistError(Exception):
    """Everything that this package raises."""


class Unreachable(InsistError):
    """No answer in time. An order may have been carried out: give it again with the same id."""


class Problem(InsistError):
    """The daemon refused. `type` is a stable word for programs, `detail` says what to do."""

    def __init__(self, status: int, type: str, detail: str, retry_after: Optional[float] = None):
        super().__init__(f"{type}: {detail}")
        self.status, self.type, self.detail, self.retry_after = status, type, detail, retry_after


@dataclasses.dataclass(frozen=True)
class Job:
    """A job that was taken. `created` is false when it had been there before, with the same body."""
    id: str
    tenant: str
    destination: str
    created: bool
    warning: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Rejected:
    """A job of a batch that was refused; `index` is its place in what was given."""
    index: int
    type: str
    detail: str


@dataclasses.dataclass
class BatchResult:
    accepted: int = 0
    duplicates: int = 0
    rejected: list[Rejected] = dataclasses.field(default_factory=list)


class Client:
    """Speaks to one daemon.

    What fails for now (no connection, 429, 502, 503, 504) is tried again for `patience` seconds, with growing waits and jitter,
    never before `Retry-After`. Each job gets an id before it is first sent, so that no repetition makes a second job.
    """

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None, *, timeout: float = 30.0, patience: float = 60.0):
        address = urllib.parse.urlsplit(server or os.environ.get("INSIST_SERVER") or "http://127.0.0.1:7878")
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"server must be http://HOST:PORT or https://HOST, not {server!r}")
        self._address, self._prefix = address, address.path.rstrip("/")
        self._token = token if token is not None else os.environ.get("INSIST_TOKEN")
        self._timeout, self._patience = timeout, patience
        self._local = threading.local()

    def enqueue(self, destination: str, payload: Payload, *, id: Optional[str] = None, tenant: Optional[str] = None,
                priority: Optional[str] = None, content_type: Optional[str] = None, headers: Optional[Mapping[str, str]] = None,
                run_at: Optional[When] = None, deadline: Optional[When] = None, correlation_id: Optional[str] = None,
                metadata: Optional[Mapping[str, Any]] = None, key: Optional[str] = None,
                callback: Optional[Mapping[str, str]] = None) -> Job:
        """Gives a job. When it returns, the job is on disk; the same id again changes nothing.

        Jobs of one `key` go one at a time, in order. `callback`, {"destination": NAME} or {"url": URL}, is told of its end.
        """
        answer = self.call("POST", "/v1/jobs", _job_of(dict(
            destination=destination, payload=payload, id=id, tenant=tenant, priority=priority, content_type=content_type,
            headers=headers, run_at=run_at, deadline=deadline, correlation_id=correlation_id, metadata=metadata,
            key=key, callback=callback)))
        return Job(answer["id"], answer["tenant"], answer["destination"], answer["created"], answer.get("warning"))

    def enqueue_batch(self, jobs: Iterable[Mapping[str, Any]]) -> BatchResult:
        """Gives many, with the members that `enqueue` has. A bad one rejects only itself; what is lazy is never held whole in memory."""
        result = BatchResult()
        for first, lines in _chunks(jobs):
            answer = self.call("POST", "/v1/jobs/batch", b"\n".join(lines), content_type="application/x-ndjson")
            result.accepted += answer["accepted"]
            result.duplicates += answer["duplicates"]
            result.rejected += [Rejected(first + one["index"], one["type"], one["detail"]) for one in answer["rejected"]]
        return result

    def job(self, id: str, tenant: Optional[str] = None) -> dict:
        return self.call("GET", _job_path(id, tenant))

    def why(self, id: str, tenant: Optional[str] = None) -> dict:
        return self.call("GET", _job_path(id, tenant, "/why"))

    def retry(self, id: str, tenant: Optional[str] = None) -> dict:
        return self.call("POST", _job_path(id, tenant, "/retry"), {})

    def cancel(self, id: str, tenant: Optional[str] = None) -> dict:
        return self.call("POST", _job_path(id, tenant, "/cancel"), {})

    def decide(self, policy: str, id: str, error: str, **more: Any) -> dict:
        """What a policy decides, for who sends by himself."""
        return self.call("POST", "/v1/decide", {"policy": policy, "id": id, "submissionError": error, **more})

    def call(self, method: str, path: str, body: Union[None, bytes, Mapping[str, Any]] = None, *, timeout: Optional[float] = None,
             patience: Optional[float] = None, content_type: str = "application/json") -> Any:
        """Any call of the API, for what has no method here."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        until = time.monotonic() + (self._patience if patience is None else patience)
        wait_s = BACKOFF_FIRST_S
        while True:
            try:
                return self._once(method, path, data, content_type, timeout or self._timeout)
            except Problem as problem:
                if problem.status not in AGAIN:
                    raise
                pause, failure = max(random.uniform(0, wait_s), problem.retry_after or 0), problem
            except (OSError, http.client.HTTPException) as error:
                pause, failure = random.uniform(0, wait_s), Unreachable(f"{self._address.geturl()}: {error or type(error).__name__}")
                failure.__cause__ = error
            if time.monotonic() + pause >= until:
                raise failure
            time.sleep(pause)
            wait_s = min(wait_s * 2, BACKOFF_MAX_S)

    def close(self) -> None:
        """Closes the calling thread's connection."""
        connection = self._local.__dict__.pop("connection", None)
        if connection:
            connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _once(self, method: str, path: str, data: Optional[bytes], content_type: str, timeout: float) -> Any:
        """One request. A connection that the daemon closed while it was idle is opened anew once, at once."""
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        used = getattr(self._local, "connection", None) is not None
        try:
            response, text = self._exchange(method, path, data, headers, timeout)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not used:
                raise
            response, text = self._exchange(method, path, data, headers, timeout)
        if response.status < 300:
            return json.loads(text) if text else None
        raise _problem_of(response, text)

    def _exchange(self, method: str, path: str, data: Optional[bytes], headers: dict, timeout: float):
        connection = getattr(self._local, "connection", None) or self._connect(timeout)
        try:
            if connection.sock:
                connection.sock.settimeout(timeout)
            connection.request(method, self._prefix + path, data, headers)
            response = connection.getresponse()
            text = response.read()
        except BaseException:
            self.close()
            raise
        if response.will_close:
            self.close()
        return response, text

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        assert self._address.hostname
        self._local.connection = kind(self._address.hostname, self._address.port, timeout=timeout)
        return self._local.connection


def _problem_of(response: http.client.HTTPResponse, text: bytes) -> Problem:
    try:
        said = json.loads(text)
        type, detail = said.get("type") or said.get("error"), said.get("detail")
    except (ValueError, AttributeError):
        type, detail = None, text[:200].decode(errors="replace")
    after = response.getheader("Retry-After") or ""
    return Problem(response.status, type or f"http_{response.status}", detail or response.reason, float(after) if after.isdigit() else None)


def _job_of(given: Mapping[str, Any]) -> dict:
    """The members as the API has them: bytes as base64, times as text, an id where there is none."""
    job = {name: value for name, value in given.items() if value is not None}
    payload = given.get("payload")
    if isinstance(payload, (bytes, bytearray)):
        del job["payload"]
        job["payload_base64"] = base64.b64encode(payload).decode()
    elif payload is None and "payload_base64" not in job:
        job["payload"] = "null"  # null would count as absent
        job.setdefault("content_type", "application/json")
    for name in ("run_at", "deadline"):
        if isinstance(job.get(name), datetime.datetime):
            job[name] = _time_text(name, job[name])
    job.setdefault("id", str(uuid.uuid4()))
    return job


def _time_text(name: str, at: datetime.datetime) -> str:
    if at.tzinfo is None:
        raise ValueError(f"{name} needs a zone: datetime.now(timezone.utc), not datetime.now()")
    return at.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _chunks(jobs: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, list[bytes]]]:
    first, size, lines = 0, 0, []
    for index, job in enumerate(jobs):
        line = json.dumps(_job_of(job), ensure_ascii=False).encode()
        if lines and (len(lines) == BATCH_JOBS_MAX or size + len(line) > BATCH_BYTES_MAX):
            yield first, lines
            first, size, lines = index, 0, []
        lines.append(line)
        size += len(line)
    if lines:
        yield first, lines


def _job_path(id: str, tenant: Optional[str], tail: str = "") -> str:
    query = "?" + urllib.parse.urlencode({"tenant": tenant}) if tenant else ""
    return f"/v1/jobs/{urllib.parse.quote(id, safe='')}{tail}{query}"
