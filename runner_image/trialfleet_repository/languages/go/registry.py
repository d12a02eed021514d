"""The module proxy that the user has configured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trialfleet_ledger.child_program import ChildFailure, run_program
from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.registry import without_login

_NAMES = ("GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GOINSECURE")


def find_go_proxy() -> Mapping[str, str]:
    """As the user's variables and go's own file say; empty where there is no go."""
    answer = run_program(("go", "env", "-json", *_NAMES))
    return {} if isinstance(answer, ChildFailure) else read_go_variables(answer.stdout)


def read_go_variables(answer: bytes) -> dict[str, str]:
    """Of what `go env -json` prints; logins are left out, and a proxy that is a folder of this machine.

    >>> read_go_variables(b'{"GOPROXY": "https://ann:key@proxy.example,direct", "GOPRIVATE": ""}')
    {'GOPROXY': 'https://proxy.example,direct'}
    """
    values: dict[str, Any] = mapping(json.loads(answer))
    texts = {name: str(value) for name, value in values.items() if name in _NAMES and value}
    proxies = texts.pop("GOPROXY", "")
    if proxies and "file:" not in proxies:
        texts["GOPROXY"] = ",".join("|".join(map(without_login, part.split("|"))) for part in proxies.split(","))
    return texts
