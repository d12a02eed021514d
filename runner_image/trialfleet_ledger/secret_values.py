"""Recognises values that look like a secret: in an agent's options, which become part of the plan, in the store
and in the pods' specs, and in files. Pure; no message holds the value."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

Place = tuple[str | int, ...]

# Endings of names. A flag with such a name ("1", "false") is not a secret.
_NAME = re.compile(
    r"(^|_)(API)?(KEY|TOKEN|SECRET|PASS(WORD|WD|PHRASE)?|PAT|CREDENTIALS?|AUTHORIZATION)$|PASSWORD$", re.IGNORECASE
)
_NO_SECRET = re.compile(
    r"public|^key$|(cache|idempotency|primary|foreign|partition|sort|etag|trace|deploy|host|web_?socket)_key$"
    r"|(page|next|csrf|cancellation|continuation|sync)_token$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_FLAGS = {"", "0", "1", "true", "false", "yes", "no", "on", "off"}
# Formats that issuers of keys document, each too long to be a word.
_ISSUED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}|(?:sk|rk)_(?:live|test)_\w{16,}|gsk_\w{20,}|xai-\w{20,}|hf_\w{20,}|r8_\w{20,}|AIza[\w-]{30,}"
    r"|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|npm_\w{20,}|pypi-[\w-]{20,}|dckr_pat_[\w-]{16,}"
    r"|hooks\.slack\.com/services/\w+/\w+/\w{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abeprs]-[\w-]{10,}|hvs\.[\w-]{20,}|SG\.[\w-]{16,}"
    r"|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----)"
    r"|://[^/\s:@]+:[^/\s:@]+@"  # an address with a password
)
_RUN = re.compile(r"[A-Za-z0-9]{20,}")
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
_DIGESTS = {40, 64}  # lengths of a commit's and a file's digest
_LEAST_BITS, _LEAST_CHANGES = 3.5, 0.4


def suspects(options: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Places below an agent's options with the reason why each looks like a secret, in order.

    >>> list(suspects({"argv": ["run"], "env": {"MODE": "fast", "MY_API_KEY": "abc"}}))
    [(('env', 'MY_API_KEY'), 'its name is that of a secret')]
    """
    for place, value in _texts(options, ()):
        reason = (
            judge_variable(str(place[1]), value) if place[0] == "env" and len(place) == 2 else judge_text(value)
        )
        if reason is not None:
            yield place, reason


def _texts(value: object, place: Place) -> Iterator[tuple[Place, str]]:
    inner: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        inner = cast("dict[str, object]", value).items()
    elif isinstance(value, list | tuple):
        inner = enumerate(cast("Sequence[object]", value))
    for part, below in inner:
        yield from _texts(below, (*place, part))


def judge_variable(name: str, value: str) -> str | None:
    """Why a variable of an environment looks like a secret, if it does."""
    if _NAME.search(name) and value.lower() not in _FLAGS:
        return "its name is that of a secret"
    return judge_text(value) or ("it looks random" if looks_random(value) else None)


def is_secret_name(name: str) -> bool:
    """Whether a key or a variable is called as secrets are.

    >>> [is_secret_name(name) for name in ("apiKey", "x-api-key", "Authorization", "publicKey", "page_token")]
    [True, True, True, False, False]
    """
    words = _CAMEL.sub("_", name).replace("-", "_")
    return _NAME.search(words) is not None and _NO_SECRET.search(words) is None


def judge_text(value: str) -> str | None:
    """Why any text does."""
    return next((reason for _, reason in find_issued(value)), None)


def find_issued(text: str) -> Iterator[tuple[range, str]]:
    """Places of texts that have the form of an issued key, in order, each with why it looks like a secret."""
    return ((range(*found.span()), "it has the form of an issued key") for found in _ISSUED.finditer(text))


def looks_random(value: str) -> bool:
    """Whether 20 or more consecutive characters look random: their entropy is high, and they change between upper
    case, lower case and digits more often than names do. Hexadecimal digits count if they are not as long as the
    digest of a commit or file.

    >>> looks_random("q7Zr2LxT9vKe4WmB8nYc1HdS"), looks_random("0123456789abcdef" * 2)
    (True, True)
    >>> looks_random("Qwen2.5-Coder-32B-Instruct"), looks_random("MyAgentConfigurationVersion2Final")
    (False, False)
    """
    hexadecimal = [run for run in _HEX.findall(value) if len(run) not in _DIGESTS and not run.isalpha()]
    return bool(hexadecimal) or any(map(_drawn, _RUN.findall(value)))


def _drawn(run: str) -> bool:
    kinds = ["digit" if c.isdigit() else "upper" if c.isupper() else "lower" for c in run]
    changes = sum(a != b for a, b in pairwise(kinds)) / (len(run) - 1)
    bits = -sum(n / len(run) * math.log2(n / len(run)) for n in Counter(run).values())
    return set(kinds) == {"digit", "upper", "lower"} and bits >= _LEAST_BITS and changes >= _LEAST_CHANGES
