"""Errors of model providers: what each says, whether it passes, and when to ask again.

An answer is classified by its status, by the *type* of its error and by its shape, never by its message: a
message may quote what the agent wrote. What these cannot tell (an account's limit that is said with 400) is told
by a request of our own (`provider_probe`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trialfleet_ledger.untrusted import mapping, objects


class Fault(StrEnum):
    """TRANSIENT: a retry may succeed. FATAL: no trial of the campaign can succeed, if a request of our own gets
    the same. REQUEST: the agent's own, unless a request of our own gets the same."""

    TRANSIENT = "transient"
    FATAL = "fatal"
    REQUEST = "request"


@dataclass(frozen=True)
class ProviderFailure:
    """One failed answer. `status`: None if there was none, 2xx if its error came inside a stream or with it.
    `kinds`: the words by which the error names its type. `words`: its message."""

    fault: Fault
    status: int | None
    kinds: tuple[str, ...]
    words: str

    @property
    def message(self) -> str:
        """`status type: words`, as far as there are any."""
        status = "" if self.status is None or 200 <= self.status < 300 else f"{self.status} "
        return f"{status}{self.kinds[0]}: {self.words}" if self.kinds else f"{status}{self.words}"

    @property
    def may_be_permanent(self) -> bool:
        return self.fault is not Fault.TRANSIENT

    @property
    def of_key(self) -> bool:
        """Whether it is about the key or the account, not about a model or a path."""
        named = bool(self._types) and "model_not_found" not in self._types
        return self.status in _UNUSABLE_KEY or (self.fault is Fault.FATAL and named)

    @property
    def _types(self) -> frozenset[str]:
        return frozenset(kind.lower() for kind in self.kinds)

    def repeats(self, other: ProviderFailure) -> bool:
        """Whether two requests met the same: both a key, account or model that cannot be used, or the same error
        word for word. Status and type may differ: the same error may come inside a stream, with 200, or with a
        status of its own, and the id of each request may be in its words. The two requests have different texts,
        so a message that is about a text differs."""
        if self.fault is not other.fault or not self.may_be_permanent:
            return False
        if self.fault is Fault.FATAL:
            return True
        same = _IDS.sub("", self.words) == _IDS.sub("", other.words)
        return (
            same
            if self.words != _NO_WORDS
            else same and (self.status, self._types) == (other.status, other._types)
        )


_NO_WORDS = "no message"
# Of a request: gateways quote the body of a provider's error, which has it.
_IDS = re.compile(r"\breq(?:uest)?[_-][A-Za-z0-9]{8,}|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")


def _error_of(body: dict[str, Any]) -> dict[str, Any]:
    """The error's object: nested, or the body itself (an `error` event of the Responses API)."""
    return mapping(body.get("error")) or body


def error_text(body: dict[str, Any]) -> str:
    """`type: message` of a provider's error object, in any dialect."""
    error = _error_of(body)
    kind = next(iter(_kinds(error)), "") or error.get("code")
    return f"{kind or 'error'}: {_words(body)}"[:500]


def _kinds(error: dict[str, Any]) -> list[str]:
    """The words by which an API names the type of an error; "error" is the type of an event."""
    named = (error.get(key) for key in ("type", "status", "code"))
    return [one for one in named if isinstance(one, str) and one and one != "error" and not one.isdigit()]


_UNUSABLE_KEY = (401, 402, 403)
_PASSING = (408, 409, 425, 429)
_MAY_LIMIT = (400, 403)  # how some gateways say a rate limit; 413 says that the request never passes
_LIMIT_KINDS = frozenset(("rate_limit_error", "rate_limit_exceeded", "overloaded_error", "resource_exhausted"))
_FATAL_KINDS = frozenset(
    (
        # Anthropic
        "authentication_error",
        "billing_error",
        "permission_error",
        # OpenAI
        "account_deactivated",
        "billing_hard_limit_reached",
        "billing_not_active",
        "deactivated_workspace",
        "insufficient_quota",
        "invalid_api_key",
        "model_not_found",
        # LiteLLM
        "auth_error",
        "budget_exceeded",
        "expired_key",
        "key_model_access_denied",
        "org_model_access_denied",
        "team_model_access_denied",
        "token_not_found_in_db",
        "user_model_access_denied",
        # Google
        "permission_denied",
        "unauthenticated",
    )
)
_REQUEST_KINDS = frozenset(
    (
        *("invalid_request_error", "not_found_error", "request_too_large", "context_length_exceeded"),
        *("invalid_prompt", "content_policy_violation", "string_above_max_length", "unsupported_parameter"),
        *("invalid_argument", "failed_precondition", "not_found", "out_of_range", "unimplemented"),
    )
)
_KEY_REASONS = ("API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "ACCESS_TOKEN_EXPIRED")


def fault(status: int | None, body: object) -> Fault:
    """Classify an answer that is none. `status`: None if its error came inside a stream or with 200.

    >>> fault(529, {}), fault(401, {}), fault(400, {"error": {"message": "your credit balance is too low"}})
    (<Fault.TRANSIENT: 'transient'>, <Fault.FATAL: 'fatal'>, <Fault.REQUEST: 'request'>)
    >>> fault(None, {"error": {"type": "billing_error"}}), fault(None, {"error": {"type": "overloaded_error"}})
    (<Fault.FATAL: 'fatal'>, <Fault.TRANSIENT: 'transient'>)
    """
    error = _error_of(mapping(body))
    kinds = {kind.lower() for kind in _kinds(error)}
    status = _stated_status(error) if status is None else status
    if status is not None and (status >= 500 or 300 <= status < 400):
        return Fault.TRANSIENT
    if kinds & _FATAL_KINDS or _lasts(error):
        return Fault.FATAL
    if status in _MAY_LIMIT and kinds & _LIMIT_KINDS:
        return Fault.TRANSIENT
    if status in _UNUSABLE_KEY:
        return Fault.FATAL
    if status is None:
        return Fault.REQUEST if kinds & _REQUEST_KINDS else Fault.TRANSIENT
    return Fault.TRANSIENT if status in _PASSING else Fault.REQUEST


def _stated_status(error: dict[str, Any]) -> int | None:
    """The HTTP status that an error inside a stream names: Google and LiteLLM write it as its `code`."""
    code = str(error.get("code"))
    return int(code) if re.fullmatch(r"[345]\d\d", code) else None


def failure_of(status: int | None, body: dict[str, Any]) -> ProviderFailure:
    """What an answer that is none says."""
    return ProviderFailure(fault(status, body), status, tuple(_kinds(_error_of(body))), _words(body)[:500])


def _words(body: dict[str, Any]) -> str:
    words = _error_of(body).get("message") or body.get("message") or body.get("error")
    return words if isinstance(words, str) else _NO_WORDS


def _lasts(error: dict[str, Any]) -> bool:
    """Whether Google's details name the key, or a quota of a day. Google words every exceeded quota alike, "check
    your plan and billing details"; the quota's id tells a minute's from a day's."""
    reasons = {str(detail.get("reason")) for detail in objects(error.get("details"))}
    daily = any("PerDay" in str(one.get("quotaId")) for one in _violations(error))
    return daily or not reasons.isdisjoint(_KEY_REASONS)


def _violations(error: dict[str, Any]) -> list[dict[str, Any]]:
    """The quotas that Google says are exceeded."""
    return [one for detail in objects(error.get("details")) for one in objects(detail.get("violations"))]


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


def stated_wait_s(header: str | None, body: object) -> int | None:
    """Seconds that the provider asks to wait: by its header, else by the body; None: it does not say, or says a
    date.

    >>> stated_wait_s("5", {}), stated_wait_s("Wed, 21 Oct 2026 07:28:00 GMT", {})
    (5, None)
    """
    if header is not None and re.fullmatch(r"[0-9]{1,6}", header.strip()):
        return int(header)
    return retry_after_s(body)


_TOKEN_LIMITS = (
    "anthropic-ratelimit-input-tokens-limit",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-limit-input-tokens",
)


def stated_token_limit(headers: list[tuple[str, str]], body: object) -> int | None:
    """The account's limit on sent tokens a minute, as the headers of an answer or Google's details of an exceeded
    quota state it; None: they do not.

    >>> stated_token_limit([("X-RateLimit-Limit-Tokens", "30000"), ("retry-after", "2")], {})
    30000
    >>> quota = {"quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier", "quotaValue": "250000"}
    >>> stated_token_limit([], {"error": {"details": [{"violations": [quota]}]}})
    250000
    """
    given = [value for name, value in headers if name.lower() in _TOKEN_LIMITS]
    quotas = (one for one in _violations(_error_of(mapping(body))) if "Tokens" in str(one.get("quotaId")))
    given += [str(one.get("quotaValue")) for one in quotas]
    return min((int(value) for value in given if re.fullmatch(r"[0-9]{1,12}", value)), default=None)
