"""What an API server's refusals mean to a caller that may try again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trialfleet_controller.kube.pods import json_object

MESSAGE_LIMIT = 1000  # characters of a server's message that travel on


_QUOTA = ("exceeded quota", "status unknown for quota")
_FINAL = ("violates PodSecurity", "RuntimeClass", "PriorityClass", "failed quota", "usage per ", "ratio per ")


class ApiError(Exception):
    """No success. `status`: the HTTP status, 0 without an answer; `reason`: Kubernetes' own word."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        self.message, self.status, self.reason = message[:MESSAGE_LIMIT], status, reason
        super().__init__(" ".join(part for part in (str(status or ""), reason, self.message) if part))


class Conflict(ApiError):
    """409: the name is taken, or the precondition does not hold."""


class NotFound(ApiError):
    """404: the object, or its namespace, is not there."""


class Expired(ApiError):
    """410: the resource version, or the continue token, is too old. It is never used again."""


class Invalid(ApiError):
    """400 or 422: the object itself is wrong, or an admission hook says so. Trying again changes nothing."""


class Throttled(ApiError):
    """429, or any error with Retry-After: the server works, and asks for `retry_after_s` of patience."""

    def __init__(self, message: str, *, retry_after_s: float, status: int = 429, reason: str = "") -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, status=status, reason=reason)


class Forbidden(ApiError):
    """401 or 403. `quota`: a ResourceQuota is used up, which passes when other pods end. `final`: an admission
    plugin refuses the object as it is; other refusals may pass when the server, or the namespace, is ready."""

    def __init__(self, message: str, *, status: int = 403, reason: str = "Forbidden") -> None:
        self.quota = any(text in message for text in _QUOTA)
        self.final = any(text in message for text in _FINAL)
        super().__init__(message, status=status, reason=reason)


class Unreachable(ApiError):
    """No answer in time, a broken connection, or a 5xx: the request may have been carried out or not."""


_ALWAYS = {400: Invalid, 404: NotFound, 409: Conflict, 410: Expired, 422: Invalid}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The typed error of an HTTP answer; `headers` are looked up as HTTP does, in any case."""
    told = _status_object(body)
    reason, message = str(told.get("reason") or ""), str(told.get("message") or _text(body))
    retry_after_s = retry_after(headers.get("Retry-After"))
    if status == 429 or (retry_after_s is not None and status >= 500):
        return Throttled(message, retry_after_s=retry_after_s or 1.0, status=status, reason=reason)
    if status in (401, 403):
        return Forbidden(message, status=status, reason=reason)
    if status >= 500:
        return Unreachable(message, status=status, reason=reason)
    return _ALWAYS.get(status, ApiError)(message, status=status, reason=reason)


def error_of_event(told: Mapping[str, Any]) -> ApiError:
    """The typed error of an ERROR event inside a watch, whose object is a `Status`."""
    code = told.get("code")
    return error_of(code if isinstance(code, int) else 500, {}, json.dumps(dict(told)).encode())


def retry_after(value: str | None) -> float | None:
    """Seconds; API servers never send the date form, and what cannot be read counts as nothing said.

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
    return body[:MESSAGE_LIMIT].decode(errors="replace").strip()
