"""Errors of API requests, by what they mean to a caller that may try again, and how long such a caller waits."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from trialfleet_controller.backends.kube.admission import read_denial
from trialfleet_controller.backends.kube.pods import json_object

ANSWER_CHARS = 1000  # of a server's message are kept

_WEBHOOK = "admission webhook "


class ApiError(Exception):
    """A request that failed. `status`: the HTTP status, 0 without an answer; `reason`: Kubernetes' own word.
    `retry_after_s`: how long the server asks the caller to wait."""

    retry_after_s = 0.0

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        self.message, self.status, self.reason = message[:ANSWER_CHARS], status, reason
        super().__init__(" ".join(part for part in (str(status or ""), reason, self.message) if part))


class Conflict(ApiError):
    """409: the name exists already, or the precondition does not hold."""


class NotFound(ApiError):
    """404: the object or its namespace does not exist."""


class Expired(ApiError):
    """410: the resource version or the continue token is too old."""


class Invalid(ApiError):
    """400 or 422: the object is invalid, or an admission hook refuses it. Trying again changes nothing."""


class Throttled(ApiError):
    """429, or a 5xx with Retry-After: the server works and asks the caller to wait."""

    def __init__(self, message: str, *, retry_after_s: float, status: int = 429, reason: str = "") -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, status=status, reason=reason)


class Forbidden(ApiError):
    """401 or 403, or an admission webhook's 404: its cache lacks the namespace. `denial`: who refuses, and whether
    trying again helps."""

    def __init__(self, message: str, *, status: int = 403, reason: str = "Forbidden") -> None:
        self.denial = read_denial(message)
        super().__init__(message, status=status, reason=reason)


class Unreachable(ApiError):
    """No answer in time, a broken connection, or a 5xx: the server may have carried the request out or not."""


_ALWAYS = {400: Invalid, 404: NotFound, 409: Conflict, 410: Expired, 422: Invalid}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error of an HTTP answer. Names in `headers` must be case-insensitive."""
    status_object = _status_object(body)
    reason = str(status_object.get("reason") or "")
    message = str(status_object.get("message") or _text(body))
    retry_after_s = retry_after(headers.get("Retry-After"))
    if status == 429 or (retry_after_s is not None and status >= 500):
        return Throttled(message, retry_after_s=retry_after_s or 1.0, status=status, reason=reason)
    if status in (401, 403) or (status == 404 and message.startswith(_WEBHOOK)):
        return Forbidden(message, status=status, reason=reason)
    if status >= 500:
        return Unreachable(message, status=status, reason=reason)
    return _ALWAYS.get(status, ApiError)(message, status=status, reason=reason)


def error_of_event(status_object: Mapping[str, Any]) -> ApiError:
    """The error of an ERROR event in a watch, whose object is a `Status`."""
    code = status_object.get("code")
    return error_of(code if isinstance(code, int) else 500, {}, json.dumps(dict(status_object)).encode())


def retry_after(value: str | None) -> float | None:
    """Seconds. None: no header, or the date form, which API servers never send.

    >>> retry_after("3"), retry_after("Wed, 21 Oct 2026 07:28:00 GMT"), retry_after(None)
    (3.0, None, None)
    """
    return float(value) if value is not None and value.strip().isdecimal() else None


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        return json_object(json.loads(body))
    except ValueError:
        return {}


def _text(body: bytes) -> str:
    return body[:ANSWER_CHARS].decode(errors="replace").strip()


BASE_S, CAP_S = 0.5, 30.0


class Backoff:
    """Doubles from 0.5 s to 30 s. Source: Brooker, Exponential Backoff and Jitter, 2015 (full jitter)."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()  # noqa: S311 - no secret depends on it
        self._failures = 0

    def again(self, *, at_least_s: float = 0.0) -> float:
        """Seconds to wait after one more failure; `at_least_s`: as the server asked."""
        ceiling = min(CAP_S, BASE_S * 2 ** min(self._failures, 10))
        self._failures += 1
        return max(at_least_s, self._rng.uniform(BASE_S / 10, ceiling))

    def worked(self) -> None:
        self._failures = 0
