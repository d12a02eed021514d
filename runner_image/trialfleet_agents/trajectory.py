"""Trajectories that a `command` agent may print: JSON lines of our Step fields, or one ATIF document."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trialfleet_agents.called_step import called_step
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.trajectory import MAX_STEPS, Parsed, Step
from trialfleet_ledger.untrusted import LINE_BYTES, finite, json_object, lines, mapping, objects, plain, relative


def read_trajectory(stdout: Path, workspace: Path) -> Parsed:
    """Steps from the lines of `stdout` that are step objects; else from an ATIF document in it.

    Everything else on stdout is the program's own talk and is not counted as malformed.
    """
    document = _atif(stdout)
    if document is not None:
        return _from_atif(document, workspace)
    steps: list[Step] = []
    turns: set[int] = set()
    calls = malformed = 0
    for line in lines(stdout):
        found = json_object(line) if line.lstrip().startswith(b"{") else {}
        if "kind" not in found or "turn" not in found:
            continue
        try:
            step = _clean(Step.model_validate(found), workspace)
        except ValidationError:
            step = None
        if step is None or step.kind == "change":  # only the runner sees changes
            malformed += 1
            continue
        turns.add(step.turn)
        calls += step.kind not in ("message", "hook")
        _keep(steps, step)
    if not steps:
        return Parsed(malformed_lines=malformed)
    return Parsed(steps=tuple(steps), turns=len(turns), tool_calls=calls, malformed_lines=malformed)


def _keep(steps: list[Step], step: Step) -> None:
    if len(steps) < MAX_STEPS:
        steps.append(step)


def _clean(step: Step, workspace: Path) -> Step:
    return step.model_copy(
        update={
            "tool": plain(step.tool, 100) if step.tool else None,
            "path": relative(step.path, (str(workspace), "/workspace")) if step.path else None,
            "detail": plain(step.detail) if step.detail else None,
        }
    )


def _atif(stdout: Path) -> dict[str, Any] | None:
    """The ATIF document that is all of stdout or its last line."""
    if not stdout.is_file() or stdout.stat().st_size > LINE_BYTES:
        return None
    data = stdout.read_bytes().strip()
    for candidate in (data, data.rpartition(b"\n")[2]):
        found = json_object(candidate) if candidate.startswith(b"{") else {}
        if str(found.get("schema_version", "")).startswith("ATIF-"):
            return found
    return None


def _from_atif(document: dict[str, Any], workspace: Path) -> Parsed:
    """ATIF 1.0-1.8: one agent step is one turn; its tool calls are steps of ours. Bad parts are skipped."""
    steps: list[Step] = []
    roots = (str(workspace), "/workspace")
    turn = calls = malformed = 0
    start: float | None = None
    for entry in objects(document.get("steps")):
        at = _seconds(entry.get("timestamp"))
        start = at if start is None else start
        if entry.get("source") != "agent":
            continue
        turn += 1
        at_s = None if at is None or start is None else max(0.0, at - start)
        _keep(steps, Step(turn=turn, at_s=at_s, kind="message", detail=plain(str(entry.get("message") or ""))))
        for call in objects(entry.get("tool_calls")):
            try:
                name, given = str(call.get("function_name", "")), mapping(call.get("arguments"))
                _keep(steps, called_step(name, given, turn=turn, at_s=at_s, roots=roots))
                calls += 1
            except ValidationError:
                malformed += 1
    return Parsed(
        steps=tuple(steps),
        turns=turn,
        tool_calls=calls,
        malformed_lines=malformed,
        **_totals(mapping(document.get("final_metrics"))),
    )


def _totals(metrics: dict[str, Any]) -> dict[str, Any]:
    """ATIF's prompt tokens include the cached ones; ours do not."""
    prompt, cached = _count(metrics.get("total_prompt_tokens")), _count(metrics.get("total_cached_tokens"))
    cost = metrics.get("total_cost_usd")
    return {
        "input_tokens": None if prompt is None else max(0, prompt - (cached or 0)),
        "output_tokens": _count(metrics.get("total_completion_tokens")),
        "cache_read_tokens": cached,
        "cost_usd": finite(cost),
    }


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= LARGEST_COUNT else None


def _seconds(stamp: object) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp() if isinstance(stamp, str) else None
    except (ValueError, OverflowError):
        return None
