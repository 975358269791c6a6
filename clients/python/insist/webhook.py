"""Verifies what insist sends to a destination with `sign:` (Standard Webhooks)."""
from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from typing import Iterable, Mapping, Optional, Union

from .client import InsistError

TOLERANCE_S = 300


class InvalidSignature(InsistError):
    """Nobody who has the secret sent this, or long ago, or it was changed on the way."""


def verify_webhook(secrets: Union[str, Iterable[str]], headers: Mapping[str, str], body: Union[bytes, str], *,
                   tolerance_s: float = TOLERANCE_S, now: Optional[float] = None) -> str:
    """Returns the message's id, by which one that comes twice is known; raises InvalidSignature.

    `body` is what came, byte for byte, before anything has read it as JSON. Several secrets are for the time in which one follows
    another.
    """
    given = {str(name).lower(): value for name, value in headers.items()}
    id, at, signatures = (given.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not (id and at and signatures):
        raise InvalidSignature("webhook-id, webhook-timestamp or webhook-signature is missing")
    if not (at.isascii() and at.isdigit()) or abs((time.time() if now is None else now) - int(at)) > tolerance_s:
        raise InvalidSignature(f"webhook-timestamp {at!r} is not within {tolerance_s:g} s of now")
    message = f"{id}.{at}.".encode() + (body.encode() if isinstance(body, str) else bytes(body))
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = hmac.new(_key_of(secret), message, hashlib.sha256).digest()
        if any(hmac.compare_digest(expected, signature) for signature in _signatures_of(signatures)):
            return id
    raise InvalidSignature("no signature is by a secret that was given")


def _key_of(secret: str) -> bytes:
    try:
        return base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret, validate=True)
    except binascii.Error:
        raise ValueError("a secret is whsec_ and base64") from None


def _signatures_of(header: str) -> Iterable[bytes]:
    for one in header.split(" "):
        version, _, text = one.partition(",")
        try:
            if version == "v1":
                yield base64.b64decode(text, validate=True)
        except binascii.Error:
            continue
