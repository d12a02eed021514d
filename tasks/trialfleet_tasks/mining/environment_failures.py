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
