"""`options.settings`: keys of an agent's own configuration file that a campaign may choose, and those that it may
not, since they are the isolation, the budget or another field of the campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from trialfleet_agents.agent_kind import AgentKind, SettingsRules
from trialfleet_ledger.errors import OperatorError


def refuse_reserved(kind: AgentKind, chosen: Mapping[str, Any]) -> None:
    """Raises `OperatorError` naming the first key of `chosen` that no campaign may choose, with the way out."""
    for path in paths_of(chosen):
        way_out = reserved_way_out(kind.rules, path)
        if way_out is not None:
            name = ".".join(path)
            raise OperatorError(
                f"settings.{name} of {kind.kind} is not for a campaign to choose",
                where=f"agent: options.settings.{name}",
                hint=way_out,
            )


def reserved_way_out(rules: SettingsRules, path: tuple[str, ...]) -> str | None:
    """What to use in place of a key that no campaign may choose; None: this one it may."""
    if ".".join(path) in rules.allowed.split():
        return None
    for way_out, patterns in rules.reserved.items():
        if any(_overlap(pattern.split("."), path) for pattern in patterns.split()):
            return way_out
    return None


def paths_of(settings: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the values are, those in lists by their number. A mapping without values says nothing.

    >>> [*paths_of({"a": {"b": 1, "c.d": [2, {"f": 3}]}, "e": {}, "g": []})]
    [('a', 'b'), ('a', 'c.d', '0'), ('a', 'c.d', '1', 'f'), ('g',)]
    """
    for name, value in settings.items():
        path = (*above, str(name))
        if isinstance(value, list) and value:
            value = dict(enumerate(cast("Sequence[Any]", value)))
        if isinstance(value, Mapping):
            yield from paths_of(cast("Mapping[str, Any]", value), path)
        else:
            yield path


def _overlap(pattern: list[str], path: tuple[str, ...]) -> bool:
    """Whether a value there is below the pattern, or in the place of what the pattern is below."""
    return all(fnmatchcase(name, part) for name, part in zip(path, pattern, strict=False))
