"""Errors of model providers: what each says, whether it passes, and when to ask again."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from typing import Any

from trialfleet_ledger.untrusted import mapping, objects


class Fault(StrEnum):
    """TRANSIENT: a retry may succeed. FATAL: no trial of the campaign can succeed. REQUEST: the agent's own."""

    TRANSIENT = "transient"
    FATAL = "fatal"
    REQUEST = "request"


def error_text(body: dict[str, Any]) -> str:
    """`type: message` of a provider's error object, in any dialect."""
    error = mapping(body.get("error"))
    kind = error.get("type") or error.get("status") or error.get("code")
    message = error.get("message") or body.get("message")
    return f"{kind or 'error'}: {message or 'no message'}"[:500]


# Providers put an empty account in a 400 or a 429; only their words tell it from other errors.
_BILLING = ("credit balance", "billing", "insufficient_quota", "exceeded your current quota", "payment required")
_NO_MODEL = (
    "model:",
    "model_not_found",
    "does not exist",
    "invalid model",
    "is not found for api",
    "publisher model",
)
_KEY_REASONS = ("API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "ACCESS_TOKEN_EXPIRED")


def fault(status: int, body: object) -> Fault:
    """Classify an answer whose status is not 2xx.

    >>> fault(529, {}), fault(401, {}), fault(400, {"error": {"message": "Your credit balance is too low"}})
    (<Fault.TRANSIENT: 'transient'>, <Fault.FATAL: 'fatal'>, <Fault.FATAL: 'fatal'>)
    """
    error = mapping(mapping(body).get("error"))
    if status == 429 and error.get("status") == "RESOURCE_EXHAUSTED":
        return Fault.FATAL if _daily_quota(error) else Fault.TRANSIENT
    if status in (401, 402, 403) or _unusable(status, error, error_text(mapping(body)).lower()):
        return Fault.FATAL
    if status in (408, 409, 429) or status >= 500 or 300 <= status < 400:
        return Fault.TRANSIENT
    return Fault.REQUEST


def _unusable(status: int, error: dict[str, Any], words: str) -> bool:
    """Whether key, account or model cannot be used, where the status alone does not say so."""
    reasons = {detail.get("reason") for detail in objects(error.get("details"))}
    return (
        any(word in words for word in _BILLING)
        or not reasons.isdisjoint(_KEY_REASONS)
        or (status == 404 and any(word in words for word in _NO_MODEL))
        or (status in (400, 404) and error.get("code") == "model_not_found")
        or (status == 400 and "not servable in region" in words)
    )


def _daily_quota(error: dict[str, Any]) -> bool:
    """Google words every exceeded quota alike, "check your plan and billing details"; the quota's id tells a
    minute's from a day's."""
    violations = [one for detail in objects(error.get("details")) for one in objects(detail.get("violations"))]
    return any("PerDay" in str(one.get("quotaId")) for one in violations)


_DELAY = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


def retry_after_s(body: object) -> int | None:
    """Whole seconds of a `google.rpc.RetryInfo` in the error's details; None when it has none.

    >>> kind = "type.googleapis.com/google.rpc.RetryInfo"
    >>> retry_after_s({"error": {"details": [{"@type": kind, "retryDelay": "6.2s"}]}})
    7
    """
    for detail in objects(mapping(mapping(body).get("error")).get("details")):
        delay = _DELAY.fullmatch(str(detail.get("retryDelay")))
        if delay and str(detail.get("@type")).endswith("google.rpc.RetryInfo"):
            return math.ceil(float(delay[1]))
    return None
