"""Scores changes through the runner's own attempt, in this process: the agent's part is given as a stored patch."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import yaml

from tests.support.attempts import LIMITS, TRIAL, Lab, write
from tests.support.manipulations.changes import write_as_agent
from tests.support.manipulations.grammar import Stack
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.attempt import Patch
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.verdicts import Loss, Scored, Stop, Verdict
from trialfleet_repository import workspace
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.patch import WorkspacePatch, diff
from trialfleet_repository.workspace_scan import Changes
from trialfleet_runner.attempt.pipeline import Attempt
from trialfleet_runner.attempt.prepared_inputs import Inputs, Ready, prepare
from trialfleet_runner.context.placement import FileReading
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.scratch import Scratch

_AGENT = AgentSpec(kind="nop")


class OpenExclusions(Exclusions):
    """Nothing is left behind, and nothing is guarded: with these a manipulation must succeed."""

    def excludes(self, path: str) -> bool:
        return False

    def may_hide(self, path: str) -> bool:
        return False


class OpenAttempt(Attempt):
    """An attempt whose changes all travel."""

    def _ready(self, reading: FileReading) -> Ready:
        return opened(super()._ready(reading))


def opened(ready: Ready) -> Ready:
    return replace(ready, exclusions=OpenExclusions(ready.given.manifest, (), (".",)))


@dataclass
class ManipulatedTask(Lab):
    """A stack's task, validated; equal changes are scored once. `scored`: by whether all travels, and the diff."""

    stack: Stack = field(kw_only=True)
    results: dict[tuple[bool, str], Scored | Loss] = field(default_factory=dict[tuple[bool, str], Scored | Loss])

    @cached_property
    def task_file(self) -> Path:
        stack, folder = self.stack, self.root / "task"
        write(folder / "pre", stack.base)
        for path in stack.executable:
            (folder / "pre" / path).chmod(0o755)
        if stack.lock:
            subprocess.run(stack.lock, cwd=folder / "pre", check=True, capture_output=True)
        subprocess.run(["cp", "-a", f"{folder}/pre", f"{folder}/fixed"], check=True)
        write(folder / "fixed", stack.fix)
        task = {
            "id": "manipulated",
            "source": {"kind": "path", "pre_fix": "pre", "fixed": "fixed"},
            "prompt_source": "failing_test",
            "test_file": stack.test_file,
            "fail_to_pass": list(stack.fails),
            "pass_to_pass": list(stack.passes),
        }
        path = folder / "task.yaml"
        path.write_text(yaml.safe_dump({"repo": {"environment": dict(stack.environment)}, "tasks": [task]}))
        return path

    @cached_property
    def ready(self) -> Ready:
        grants = self.grants(_AGENT)
        return prepare(grants, Inputs(grants, self.cache), choose())

    def patch_of(self, changes: Changes, *, all_travel: bool = False) -> WorkspacePatch:
        """What the runner takes of a workspace in which the agent made the changes."""
        ready = opened(self.ready) if all_travel else self.ready
        with tempfile.TemporaryDirectory(dir=self.scratch.parent) as folder:
            workspace.clone(ready.given, Path(folder) / "workspace")
            write_as_agent(changes, Path(folder) / "workspace")
            return diff(Path(folder) / "workspace", ready.given, ready.exclusions)

    def score(self, changes: Changes, *, all_travel: bool = False) -> Scored | Loss:
        """`all_travel`: nothing is left behind, and no order or control applies."""
        patch = self.patch_of(changes, all_travel=all_travel)
        key = all_travel, patch.diff
        if key not in self.results:
            self.results[key] = self._scored(patch, all_travel=all_travel)
        return self.results[key]

    def _scored(self, patch: WorkspacePatch, *, all_travel: bool) -> Scored | Loss:
        number = next(self.numbers)
        self.store.put(f"lab/attempts/{TRIAL}/{number}/patch.json", canonical_json(_record(patch, number)))
        grants = self.grants(_AGENT, attempt=next(self.numbers), score_patch_of=number, limits=LIMITS_OF_TESTS)
        if all_travel:
            grants = grants.model_copy(
                update={"task": grants.task.model_copy(update={"classes": None, "must_fail": None})}
            )
        return self._attempted(grants, OpenAttempt if all_travel else Attempt)

    def _attempted(self, grants: Grants, kind: type[Attempt]) -> Scored | Loss:
        self.scratch.mkdir(exist_ok=True)
        folder = self.scratch / str(grants.attempt)
        folder.mkdir(mode=0o711)
        sandbox = choose()
        try:
            attempt = kind(grants, Scratch.below(folder), sandbox, sandbox, self.cache, threading.Event())
            return attempt.run()
        finally:
            subprocess.run(["rm", "-rf", str(folder)], check=True)


LIMITS_OF_TESTS = LIMITS.model_copy(update={"tests_timeout_s": 120.0, "memory_bytes": 2**31, "disk_bytes": 2**29})


def _record(patch: WorkspacePatch, number: int) -> Patch:
    from trialfleet_ledger.records.measurements import Delivery

    return Patch(
        trial=TRIAL,
        attempt=number,
        nonce="n",
        at=time.time(),
        diff=patch.diff,
        diff_sha256=sha256(patch.diff.encode()),
        excluded=patch.excluded,
        stop=Stop.FINISHED,
        metrics=Metrics(),
        delivery=Delivery(),
    )


def verdict_of(result: Scored | Loss) -> str:
    return result.verdict.value if isinstance(result, Scored) else f"loss {result.loss.value}: {result.message}"
