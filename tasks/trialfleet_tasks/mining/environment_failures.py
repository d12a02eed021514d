"""Why an environment could not be built, or its tests not compiled, where the tool itself says it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trialfleet_repository.languages import LANGUAGES
from trialfleet_tasks.mining.findings import RejectionReason

_PRIVATE = re.compile(
    r"\b(?:E40[13]|ENEEDAUTH|ERR_PNPM_FETCH_40[13])\b|\b40[13] (?:Unauthorized|Forbidden)"
    r"|status(?: code)?:? 40[13]\b|could not read Username|terminal prompts disabled|Authentication failed"
    r"|Permission denied \(publickey|failed to authenticate when downloading|no token found for"
    r"|Missing credentials",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(
    r"\b(?:EAI_AGAIN|ENOTFOUND|ECONNRE(?:FUSED|SET)|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|EROFS|ENOSPC)\b|dns error"
    r"|error sending request|(?:Temporary failure in|Could not resolve|Couldn't resolve|failed to lookup) "
    r"|no such host|dial tcp|i/o timeout|TLS handshake|spurious network error"
    r"|connection (?:refused|reset|timed out)"
    r"|network is unreachable|operation timed out|Read timed out|Read-only file system|No space left on device"
    r"|Unknown host|UnknownHostException|Could not (?:transfer|GET|HEAD)|incomplete message"
    r"|\b(?:HTTP(?: status)?|status(?: code)?)[ :=]*(?:server error )?\(?(?:429|5\d\d)\b"
    r"|\b(?:429 Too Many|500 Internal|502 Bad|503 Service|504 Gateway)|could not be resolved within \d+ s"
    r"|more than --room",
    re.IGNORECASE,
)
_WAITED = re.compile(r"ended after (\d+) s, with (\d+) s of core time")
_INCOMPLETE = re.compile(r"cannot be read: |is incomplete in ")  # of a clone, which may be completed
_ABSENT = re.compile(r"there is no program \S+ on this machine")
_MAY_BE = frozenset({RejectionReason.ENVIRONMENT_FAILED, RejectionReason.CANNOT_RUN_AT_FIX})
HINTS: Mapping[RejectionReason, str] = {
    RejectionReason.TOOLCHAIN_TOO_OLD: "install the version that it asks for and put it first on PATH, "
    "or choose other commits with --since, --until or --paths",
    RejectionReason.TOOLCHAIN_TOO_NEW: "install the older version that it needs and put it first on PATH, "
    "or choose newer commits with --since",
    RejectionReason.PRIVATE_PACKAGES: "no credentials enter the sandbox: let it fetch from an index or proxy that "
    "needs none, or choose other commits with --since, --until or --paths",
}


def told_apart(reason: RejectionReason, said: str) -> RejectionReason:
    """The reason that `said`, the output of the tool that failed, gives for a failure to build or to run.

    >>> told_apart(RejectionReason.ENVIRONMENT_FAILED, "npm error code E401").value
    'private_packages'
    """
    if reason not in _MAY_BE:
        return reason
    if reason is RejectionReason.ENVIRONMENT_FAILED and _ABSENT.search(said):
        return RejectionReason.NO_TOOLCHAIN
    if any(each.too_old.search(said) for each in LANGUAGES.values()):
        return RejectionReason.TOOLCHAIN_TOO_OLD
    if any(each.too_new.search(said) for each in LANGUAGES.values()):
        return RejectionReason.TOOLCHAIN_TOO_NEW
    fetched = reason is RejectionReason.ENVIRONMENT_FAILED  # tests may print such words for reasons of their own
    return RejectionReason.PRIVATE_PACKAGES if fetched and _PRIVATE.search(said) else reason


def is_temporary(reason: RejectionReason, said: str) -> bool:
    """Whether what failed lies outside of the commit and may be gone next time: a network, a registry, a disk, a
    busy machine, a program that is not there.

    >>> is_temporary(RejectionReason.ENVIRONMENT_FAILED, "npm error code EAI_AGAIN")
    True
    >>> is_temporary(RejectionReason.TOO_SLOW, "the tests took too long (ended after 60 s, with 9 s of core time)")
    True
    >>> is_temporary(RejectionReason.CANNOT_RUN_AT_FIX, "connection refused")  # tests have no network
    False
    """
    if reason is RejectionReason.TOO_SLOW:
        waited = _WAITED.search(said)
        return waited is not None and 2 * int(waited[2]) < int(waited[1])
    if reason is RejectionReason.NO_TOOLCHAIN:
        return True
    if reason is RejectionReason.UNREADABLE:
        return _INCOMPLETE.search(said) is not None
    return reason is RejectionReason.ENVIRONMENT_FAILED and _TEMPORARY.search(said) is not None
