"""The pre-flight: what is asked of a read-only look at the code, and what its answer says.

The answer comes from an agent: it is parsed with distrust, cut to what a prompt can bear, and names only files
that are in the workspace.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trialfleet_deliveries.naming import listed
from trialfleet_deliveries.nodes import inside
from trialfleet_deliveries.texts import render
from trialfleet_ledger.records.measurements import PreflightResult
from trialfleet_ledger.untrusted import plain

MAX_CALLS = 10
_MOST_FINDINGS = 5
_LONGEST = 64_000  # characters of an answer that are looked at
_FIELD_CHARS = 300
_FIELD = re.compile(r"^[\s>*_`#-]*(FILE|LINE|FUNCTION|FIX|REASON)[*_`]*\s*:[*_]*\s*(.*)$", re.IGNORECASE)
_WHOLE = re.compile(r"^[\s>*_`#-]*(UNCERTAIN|SKIP|NO_TARGETS)\b[*_`]*\s*:?\s*(.*)$", re.IGNORECASE)
_LINE = re.compile(r"\d{1,7}")


@dataclass(frozen=True)
class Finding:
    """One place. `line` counts from 1; empty texts where nothing was said."""

    file: str
    line: int | None = None
    function: str = ""
    fix: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Preflight:
    """What it came to; findings only with `FOUND`."""

    result: PreflightResult
    findings: tuple[Finding, ...] = ()
    why: str = ""


def asked(task: str, targets: Sequence[str]) -> str:
    return render("preflight", files=listed(targets), calls=MAX_CALLS, task=task)


def parse(answer: str, paths: Collection[str]) -> Preflight:
    """The answer's places that are files of the workspace (`paths`); never raises.

    An answer with findings counts as found even if it also says UNCERTAIN; one with neither is `uncertain`.

    >>> parse("FILE: a.py\\nLINE: 3\\nFIX: compare with `is`", {"a.py"}).findings
    (Finding(file='a.py', line=3, function='', fix='compare with is', reason=''),)
    """
    lines = answer[:_LONGEST].splitlines()
    found = _findings(lines, paths)
    if found:
        return Preflight(PreflightResult.FOUND, found)
    for line in lines:
        if match := _WHOLE.match(line):
            return Preflight(PreflightResult(match[1].lower()), (), _said(match[2]))
    return Preflight(PreflightResult.UNCERTAIN, (), "the answer names no file of the workspace")


def _findings(lines: Sequence[str], paths: Collection[str]) -> tuple[Finding, ...]:
    blocks: list[dict[str, str]] = []
    for line in lines:
        match = _FIELD.match(line)
        if match is None:
            continue
        name = match[1].lower()
        if name == "file":
            blocks.append({})
        if blocks:
            blocks[-1].setdefault(name, match[2])
    findings = [found for block in blocks if (found := _finding(block, paths)) is not None]
    places = {(found.file, found.line, found.function): found for found in reversed(findings)}
    return tuple(found for found in findings if places.get((found.file, found.line, found.function)) is found)[
        :_MOST_FINDINGS
    ]


def _finding(block: dict[str, str], paths: Collection[str]) -> Finding | None:
    named = inside(_said(block["file"]).removeprefix("/workspace/"))
    if named is None or named not in paths:
        return None
    digits = _LINE.search(block.get("line", ""))
    return Finding(
        file=named,
        line=int(digits[0]) or None if digits else None,
        function=_said(block.get("function", "")),
        fix=_said(block.get("fix", "")),
        reason=_said(block.get("reason", "")),
    )


def _said(text: str) -> str:
    """One line without markup that could open something in a prompt."""
    return " ".join(plain(text.replace("`", "").replace("<", "").replace(">", ""), _FIELD_CHARS).split())


def block(preflight: Preflight) -> str:
    """What goes to the agent; empty when nothing was found."""
    if not preflight.findings:
        return ""
    return render("preflight_findings", findings="\n".join(map(_item, preflight.findings)))


def _item(found: Finding) -> str:
    place = f"`{found.file}`"
    if found.line is not None:
        place += f", line {found.line}"
    if found.function:
        place += f", in `{found.function}`"
    said = [text if text.endswith((".", "!", "?")) else f"{text}." for text in (found.fix, found.reason) if text]
    return f"- {place}" + (f": {' '.join(said)}" if said else "")
