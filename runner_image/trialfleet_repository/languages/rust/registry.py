"""The registries that the user has configured for cargo."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from trialfleet_ledger.untrusted import mapping
from trialfleet_ledger.user_folders import home_folder
from trialfleet_repository.languages.registry import without_login

_CHAIN = 8  # sources that replace one another, at most


def find_cargo_registries() -> Mapping[str, bytes]:
    """A configuration for the environment's CARGO_HOME, with what the user's says of registries. A repository's
    goes before it: it may bring its crates along. Empty where the user has none."""
    home = Path(os.environ.get("CARGO_HOME") or home_folder() / ".cargo")
    for file in (home / "config", home / "config.toml"):  # cargo reads the first one alone where both are there
        try:
            written = write_cargo_registries(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # ValueError: neither UTF-8 nor TOML
            continue
        return {"{environment}/cargo/config.toml": written.encode()} if written else {}
    return {}


def write_cargo_registries(config: str) -> str:
    """As TOML: the registries on the network that replace others, and those with a name. The sandbox has neither
    logins nor folders of this machine: they are left out. Raises `ValueError` for what is no TOML.

    >>> print(write_cargo_registries('''[source.crates-io]
    ... replace-with = "ours"
    ... [source.ours]
    ... registry = "sparse+https://ann:key@crates.example/"
    ... [registries.team]
    ... index = "https://team.example/index"
    ... token = "secret"
    ... '''))
    [source."crates-io"]
    replace-with = "ours"
    [source."ours"]
    registry = "sparse+https://crates.example/"
    [registries."team"]
    index = "https://team.example/index"
    """
    import tomllib

    tables = tomllib.loads(config)
    sources = {name: mapping(value) for name, value in mapping(tables.get("source")).items()}
    lines: list[str] = []
    for name, source in sources.items():
        values = {"replace-with": _text(source.get("replace-with")), "registry": _address(source.get("registry"))}
        if _ends_in_registry(name, sources):
            lines += _table(f"source.{json.dumps(name)}", values)
    for name, registry in mapping(tables.get("registries")).items():
        lines += _table(f"registries.{json.dumps(name)}", {"index": _address(mapping(registry).get("index"))})
    return "\n".join(lines)


def _ends_in_registry(name: str, sources: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether this source, or the last one that replaces it, is a registry on the network."""
    for _ in range(_CHAIN):
        source = sources.get(name, {})
        following = _text(source.get("replace-with"))
        if not following:
            return bool(_address(source.get("registry")))
        name = following
    return False


def _table(name: str, values: Mapping[str, str]) -> list[str]:
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if value]
    return [f"[{name}]", *lines] if lines else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _address(value: object) -> str:
    text = _text(value)
    url = text.removeprefix("sparse+")
    known = url.startswith(("https://", "http://"))
    return text.removesuffix(url) + without_login(url) if known else ""
