"""The receipts of one attempt: what the gateway saw of the condition's texts, with what became of its files on
disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_deliveries.declared_texts import ROOT, DeclaredTexts, declare_texts
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.receipts import (
    Arrival,
    FileRole,
    ImportReceipt,
    Receipt,
    Receipts,
    ScriptReceipt,
)
from trialfleet_ledger.trajectory import Step
from trialfleet_ledger.untrusted import regular_file
from trialfleet_repository.workspace import Template
from trialfleet_runner.attempt.prepared_inputs import Ready

_LARGEST_IMPORT = 2**20
_NO_TEXTS = (FileRole.SCRIPT, FileRole.OTHER)
_BEFORE_NS = (
    86_400 * 10**9
)  # an access time so far back moves with the first access, also where it moves once a day only


def declare_ready(ready: Ready, condition: ConditionOrder) -> DeclaredTexts:
    """The texts of a condition in the workspace that its agent gets."""
    return declare_texts(ready.composed, condition, lambda path: _read_workspace_file(ready.given, path))


def _read_workspace_file(template: Template, path: str) -> bytes | None:
    file = regular_file(template.tree / path) if path in template.manifest else None
    if file is None:
        return None
    with file:
        return file.read(_LARGEST_IMPORT)


@dataclass(frozen=True)
class _ScriptAtStart:
    present: bool
    executable: bool
    accessed: float | None


class ScriptWatch:
    """Whether the scripts of a condition are opened: their access times, from before the agent starts. Nothing is
    claimed on a file system that keeps none."""

    def __init__(self, workspace: Path, scripts: Sequence[str]) -> None:
        self._workspace = workspace
        self._before = {path: self._prepare_script(workspace / path) for path in scripts}
        self._keeps_times = bool(scripts) and _keeps_access_times(workspace)

    def _prepare_script(self, path: Path) -> _ScriptAtStart:
        if path.is_symlink() or not path.is_file():
            return _ScriptAtStart(False, False, None)
        known = path.stat()
        os.utime(path, ns=(known.st_mtime_ns - _BEFORE_NS, known.st_mtime_ns), follow_symlinks=False)
        return _ScriptAtStart(True, bool(known.st_mode & 0o100), path.stat().st_atime)

    def list_opened(self) -> dict[str, bool | None]:
        """Of each script, before anything of ours reads the workspace. None: it cannot be told."""
        found = dict[str, bool | None]()
        for path, before in self._before.items():
            try:
                now = (self._workspace / path).lstat().st_atime
            except OSError:
                found[path] = None
            else:
                found[path] = now != before.accessed if self._keeps_times and before.present else None
        return found

    def describe_scripts(
        self, opened: Mapping[str, bool | None], steps: Sequence[Step]
    ) -> dict[str, ScriptReceipt]:
        """`opened`: as they were after the run."""
        return {
            path: ScriptReceipt(
                present=before.present,
                executable=before.executable,
                ran=_has_run(path, opened.get(path), steps) if before.present else False,
            )
            for path, before in self._before.items()
        }


def _keeps_access_times(workspace: Path) -> bool:
    try:
        with tempfile.NamedTemporaryFile(dir=workspace.parent) as file:
            file.write(b"x")
            file.flush()
            probe = Path(file.name)
            known = probe.stat()
            os.utime(probe, ns=(known.st_mtime_ns - _BEFORE_NS, known.st_mtime_ns))
            before = probe.stat().st_atime
            probe.read_bytes()
            return probe.stat().st_atime != before
    except OSError:
        return False


def _has_run(path: str, opened: bool | None, steps: Sequence[Step]) -> bool | None:
    """A file that nothing opened has not run. One that was opened has, if a command of the model names it: git,
    for one, opens files only to read them."""
    if opened is False:
        return False
    return True if any(step.kind == "run" and path in (step.detail or "") for step in steps) else None


def complete_receipts(
    seen: Receipts, declared: DeclaredTexts, scripts: Mapping[str, ScriptReceipt] | None = None
) -> Receipts:
    """With the state of scripts, and with what became of imports."""
    arrivals = {one.path: one.arrival for one in seen.receipts if one.path is not None}
    found = tuple(_complete(one, declared, scripts or {}, arrivals) for one in seen.receipts)
    return seen.model_copy(update={"receipts": found})


def _complete(
    receipt: Receipt,
    declared: DeclaredTexts,
    scripts: Mapping[str, ScriptReceipt],
    arrivals: Mapping[str, Arrival | None],
) -> Receipt:
    if receipt.path is None or receipt.channel == "hook":
        return receipt
    imports = tuple(
        ImportReceipt(path=path, present=present, arrival=arrivals.get(path))
        for path, present in declared.imports.get(receipt.path, ())
    )
    return receipt.model_copy(update={"script": scripts.get(receipt.path), "imports": imports})


def claim_arrivals(
    parts: Mapping[str, Sequence[str]], receipts: Receipts
) -> tuple[dict[str, bool | None], dict[str, float]]:
    """Channel -> whether all of its texts arrived, and -> which share of their words did. `parts`: channel ->
    names of its texts. None and no share: nothing of it can be recognised. Files without a root's are claimed by
    the one of them of which most arrived: which of them an agent should load by itself is not known. Where
    there is none of instructions, one that is opened on demand counts by its description; settings and scripts are
    no texts for a model."""
    by_name = {one.name: one for one in receipts.receipts if one.arrival is not None}
    claims, shares = dict[str, bool | None](), dict[str, float]()
    for channel, names in parts.items():
        texts = [by_name[name] for name in names if name in by_name]
        if channel == ROOT and not texts and not any(one.name == ROOT for one in receipts.receipts):
            files = [one for one in by_name.values() if one.channel == ROOT and one.role not in _NO_TEXTS]
            instructions = [one for one in files if one.role is FileRole.INSTRUCTIONS]
            texts = sorted(instructions or files, key=_share_of)[-1:]
        claims[channel] = all(one.is_complete or one.listed for one in texts) if texts else None
        if texts:
            size = sum(one.size for one in texts)
            shares[channel] = sum(_share_of(one) * one.size for one in texts) / size
    return claims, shares


def _share_of(receipt: Receipt) -> float:
    return 1.0 if receipt.listed else receipt.share or 0.0
