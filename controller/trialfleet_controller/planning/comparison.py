"""The campaign that compares the context files of two revisions: what `trialfleet compare` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.trees import Tree

BEFORE, AFTER = "before", "after"
OF_A_TREND = frozenset({"trend", "doses"})


@dataclass(frozen=True)
class RevisionRange:
    """`after` None: the working tree."""

    before: str
    after: str | None


def parse_range(text: str) -> RevisionRange:
    """Raises `OperatorError` unless two revisions, or one and the working tree, are named.

    >>> parse_range("origin/main..HEAD"), parse_range("v1..")
    (RevisionRange(before='origin/main', after='HEAD'), RevisionRange(before='v1', after=None))
    """
    before, dots, after = text.partition("..")
    if not dots or not before or after.startswith(".") or ".." in after:
        raise OperatorError(
            f"{text!r} does not name two revisions",
            where="REV1..REV2",
            hint="write origin/main..HEAD, or origin/main.. for the working tree; for the common ancestor: "
            '"$(git merge-base origin/main HEAD)..HEAD"',
        )
    return RevisionRange(before, after or None)


def check_different(before: Tree, after: Tree, text: str) -> None:
    """Raises `OperatorError` where there is nothing to compare."""
    if dict(before) != dict(after):
        return
    same = "the same context file" if len(before) == 1 else f"the same {plural(len(before), 'context file')}"
    found = same if before else "no context files"
    raise OperatorError(
        f"both sides have {found}: there is nothing to compare",
        where=text,
        hint="name revisions whose CLAUDE.md, AGENTS.md, … differ; REV.. is the working tree with what is not "
        "committed",
    )


def campaign_name(before: Tree, after: Tree) -> str:
    """The same contents, the same name: a comparison that exists is continued, another one never is."""
    return f"compare-{_content(before)}-{_content(after)}"


def _content(files: Tree) -> str:
    return digest({path: [entry.kind.value, sha256(entry.data)] for path, entry in files.items()})[:10]


def comparison(
    like: Mapping[str, Any],
    *,
    name: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    tasks: Sequence[str],
) -> dict[str, Any]:
    """The campaign file, from the values of the file `like`: its agent, reps, limits and store stay. `before`,
    `after`: sources of `contexts`; None: that side has no context file. `tasks`: empty keeps those of `like`."""
    sources = {BEFORE: before, AFTER: after}
    declared = {key: value for key, value in mapping(like.get("primary")).items() if key not in OF_A_TREND}
    made = {key: value for key, value in like.items() if not key.startswith("_")}
    made["campaign"] = name
    made["tasks"] = list(tasks) or like["tasks"]
    made["contexts"] = {side: dict(source) for side, source in sources.items() if source is not None}
    made["conditions"] = {side: {} if source is None else {"files": side} for side, source in sources.items()}
    made["primary"] = {**declared, "treatment": AFTER, "control": BEFORE}
    return made
