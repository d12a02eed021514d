"""What a page shows of a bundle: prompt, patch, tests, trajectory and hook firings. A part that is missing or
damaged is named, and the others are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from trialfleet_ledger.bundle import Bundle
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.measurements import TestResult
from trialfleet_ledger.records.receipts import RECEIPTS, Receipts
from trialfleet_ledger.trajectory import Step
from trialfleet_ledger.untrusted import json_object

MOST_STEPS = 2_000
MOST_FIRINGS = 500
_RESULTS: TypeAdapter[tuple[TestResult, ...]] = TypeAdapter(tuple[TestResult, ...])


@dataclass(frozen=True)
class HookFiring:
    """One line of the hook's log, as the agent's sandbox kept it."""

    tool: str
    path: str
    node: str
    pushed: bool
    denied: bool


@dataclass(frozen=True)
class BundleParts:
    """`faults`: parts that are missing or cannot be read, with why. `unread_steps`: lines of the trajectory that
    are no step, or beyond `MOST_STEPS`. `files`: sizes by path; `left_out`: bytes that a file lacks."""

    prompt: str | None
    system: str | None
    patch: str | None
    tests: tuple[TestResult, ...] | None
    test_output: str | None
    steps: tuple[Step, ...]
    unread_steps: int
    firings: tuple[HookFiring, ...]
    preflight: str | None
    receipts: Receipts | None
    files: Mapping[str, int]
    left_out: Mapping[str, int]
    warnings: tuple[str, ...]
    faults: tuple[str, ...]


def parts_of(bundle: Bundle) -> BundleParts:
    """Every part that the bundle holds."""
    tests, fault = _tests(bundle.text("tests/results.json"))
    steps, unread = steps_of(bundle.text("trajectory.jsonl"))
    faults = [fault] if fault else []
    faults += [f"{path} is missing" for path in ("prompt.txt", "patch.diff") if path not in bundle.files]
    receipts, unreadable = _receipts(bundle.text(RECEIPTS))
    faults += [unreadable] if unreadable else []
    if "trajectory.jsonl" not in bundle.files:
        faults.append("trajectory.jsonl is missing")
    if unread:
        faults.append(f"{plural(unread, 'line')} of trajectory.jsonl are no steps, or more than {MOST_STEPS:,}")
    return BundleParts(
        prompt=bundle.text("prompt.txt"),
        system=bundle.text("system.txt") or None,
        patch=bundle.text("patch.diff"),
        tests=tests,
        test_output=bundle.text("tests/output.log"),
        steps=steps,
        unread_steps=unread,
        firings=tuple(_firings(bundle)),
        preflight=bundle.text("preflight/answer.txt"),
        receipts=receipts,
        files={path: len(data) for path, data in sorted(bundle.files.items())},
        left_out={file.path: file.left_out for file in bundle.manifest.files if file.left_out},
        warnings=bundle.manifest.warnings,
        faults=tuple(faults),
    )


def _tests(text: str | None) -> tuple[tuple[TestResult, ...] | None, str | None]:
    if text is None:
        return None, "tests/results.json is missing"
    try:
        return _RESULTS.validate_json(text), None
    except ValidationError:
        return None, "tests/results.json is no list of results"


def _receipts(text: str | None) -> tuple[Receipts | None, str | None]:
    try:
        return None if text is None else Receipts.model_validate_json(text), None
    except ValidationError:
        return None, f"{RECEIPTS} cannot be read"


def steps_of(text: str | None) -> tuple[tuple[Step, ...], int]:
    """Steps of a trajectory, and how many of its lines are no step, or beyond `MOST_STEPS`."""
    found, unread = list[Step](), 0
    for line in (text or "").split("\n"):
        if not line.strip():
            continue
        try:
            step = Step.model_validate_json(line) if len(found) < MOST_STEPS else None
        except ValidationError:
            step = None
        if step is None:
            unread += 1
        else:
            found.append(step)
    return tuple(found), unread


def _firings(bundle: Bundle) -> Iterator[HookFiring]:
    for name, denied in (("hook.jsonl", False), ("fail_fast.jsonl", True)):
        for line in (bundle.text(name) or "").split("\n")[:MOST_FIRINGS]:
            found = json_object(line)
            if found:
                yield HookFiring(
                    _word(found.get("tool")),
                    _word(found.get("path")),
                    _word(found.get("node")),
                    pushed=found.get("emitted") is True,
                    denied=denied and found.get("denied") is True,
                )


def _word(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
