"""What a provider's error means for the trial and for the campaign."""

from __future__ import annotations

from enum import StrEnum

from trialfleet_runner.gateway.answers import error_text
from trialfleet_runner.gateway.usage import mapping


class Fault(StrEnum):
    """TRANSIENT: a retry may succeed. FATAL: no trial of the campaign can succeed. REQUEST: the agent's own."""

    TRANSIENT = "transient"
    FATAL = "fatal"
    REQUEST = "request"


# Providers put an empty account in a 400 or a 429; only their words tell it from other errors.
_BILLING = ("credit balance", "billing", "insufficient_quota", "exceeded your current quota", "payment required")
_NO_MODEL = ("model:", "model_not_found", "does not exist", "invalid model")


def fault(status: int, body: object) -> Fault:
    """Classify an answer whose status is not 2xx.

    >>> fault(529, {}), fault(401, {}), fault(400, {"error": {"message": "Your credit balance is too low"}})
    (<Fault.TRANSIENT: 'transient'>, <Fault.FATAL: 'fatal'>, <Fault.FATAL: 'fatal'>)
    """
    words = error_text(mapping(body)).lower()
    if status in (401, 402, 403) or any(word in words for word in _BILLING):
        return Fault.FATAL
    if status == 404 and any(word in words for word in _NO_MODEL):
        return Fault.FATAL
    if status in (408, 409, 429) or status >= 500 or 300 <= status < 400:
        return Fault.TRANSIENT
    return Fault.REQUEST
