"""Scores changes through the runner's own attempt, in this process: its patch is stored before it starts."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path

import yaml

from tests.support.attempts import LIMITS, TRIAL, Lab, write
from tests.support.manipulations.changes import write_as_agent
from tests.support.manipulations.grammar import Stack
from trialfleet_agents.context_files import is_context_file
from trialfleet_deliveries.placement import FileReading
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import PlannedTask
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.attempt import Patch
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.verdicts import Loss, Scored, Stop
from trialfleet_repository import workspace
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.patch import WorkspacePatch, changes_of, diff
from trialfleet_repository.patch_classes import SplitChanges, split_changes
from trialfleet_repository.workspace_scan import Changes
from trialfleet_runner.attempt.pipeline import Attempt
from trialfleet_runner.attempt.prepared_inputs import Inputs, Ready, prepare
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.scratch import Scratch
from trialfleet_tasks.validate.task import validate_task

_AGENT = AgentSpec(kind="nop")
_LIMITS = LIMITS.model_copy(update={"tests_timeout_s": 120.0, "memory_bytes": 2**31, "disk_bytes": 2**29})


class Scoring(Enum):
    """ORDER: as trials are scored. ONE_RUN: what travels at all, in one run without a control. ALL_TRAVELS: one
    run with every change."""

    ORDER = "order"
    ONE_RUN = "one run"
    ALL_TRAVELS = "all travels"


class OpenExclusions(Exclusions):
    """Nothing is left behind, and nothing is guarded: with these a manipulation must succeed."""

    def excludes(self, path: str) -> bool:
        return False

    def may_hide(self, path: str) -> bool:
        return False


class OpenAttempt(Attempt):
    """An attempt whose changes all travel."""

    def _ready(self, reading: FileReading) -> Ready:
        return _opened(super()._ready(reading))


def _opened(ready: Ready) -> Ready:
    return replace(ready, exclusions=OpenExclusions(ready.given.manifest, (), (".",), is_context=is_context_file))


@dataclass
class ScoredTask(Lab):
    """A task, validated (`fresh`: again). Changes of which the same travels are scored once; `results`: by how
    they are scored, and what travels."""

    fresh: bool = field(default=False, kw_only=True)
    results: dict[tuple[Scoring, str], Scored | Loss] = field(
        default_factory=dict[tuple[Scoring, str], Scored | Loss]
    )

    @cached_property
    def planned(self) -> PlannedTask:
        if self.fresh:
            objects = Objects(self.cache.objects, self.store)
            validate_task(
                self.loaded, repeats=1, sandbox=choose(), cache=self.cache, objects=objects, mirrors={}, fresh=True
            )
        return super().planned

    @cached_property
    def ready(self) -> Ready:
        grants = self.grants(_AGENT)
        return prepare(grants, Inputs(grants, self.cache), choose())

    def patch_of(self, changes: Changes, scoring: Scoring = Scoring.ORDER) -> WorkspacePatch:
        """What the runner takes of a workspace in which the agent made the changes."""
        ready = _opened(self.ready) if scoring is Scoring.ALL_TRAVELS else self.ready
        with tempfile.TemporaryDirectory(dir=self.scratch.parent) as folder:
            workspace.clone(ready.given, Path(folder) / "workspace")
            write_as_agent(changes, Path(folder) / "workspace")
            return diff(Path(folder) / "workspace", ready.given, ready.exclusions)

    def split_of(self, patch: WorkspacePatch) -> SplitChanges:
        """What the runner makes of it."""
        ready = self.ready
        changes = changes_of(patch.diff, ready.given, ready.exclusions)
        return split_changes(changes, ready.classes, ready.pristine.manifest.keys())

    def score(self, changes: Changes, scoring: Scoring = Scoring.ORDER) -> Scored | Loss:
        patch = self.patch_of(changes, scoring)
        key = scoring, patch.diff
        if scoring is Scoring.ORDER:
            split = self.split_of(patch)
            key = scoring, repr((sorted(split.product.items()), sorted(split.others.items())))
        if key not in self.results:
            self.results[key] = self._scored(patch, scoring)
        return self.results[key]

    def _scored(self, patch: WorkspacePatch, scoring: Scoring) -> Scored | Loss:
        number = next(self.numbers)
        record = canonical_json(_record(patch, number))
        self.store.put(f"lab/attempts/{TRIAL}/{number}/patch.json", record)
        grants = self.grants(_AGENT, attempt=next(self.numbers), score_patch_of=number, limits=_LIMITS)
        if scoring is not Scoring.ORDER:
            task = grants.task.model_copy(update={"classes": None, "must_fail": None})
            grants = grants.model_copy(update={"task": task})
        return self._attempted(grants, OpenAttempt if scoring is Scoring.ALL_TRAVELS else Attempt)

    def _attempted(self, grants: Grants, kind: type[Attempt]) -> Scored | Loss:
        folder = self.scratch / str(grants.attempt)
        folder.mkdir(mode=0o711, parents=True)
        sandbox = choose()
        try:
            attempt = kind(grants, Scratch.below(folder), sandbox, sandbox, self.cache, threading.Event())
            return attempt.run()
        finally:
            subprocess.run(["rm", "-rf", str(folder)], check=True)


@dataclass
class ManipulatedTask(ScoredTask):
    """A stack's task."""

    stack: Stack = field(kw_only=True)

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


def _record(patch: WorkspacePatch, number: int) -> Patch:
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
