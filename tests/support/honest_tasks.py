"""Scores the fix of a validated task with honest work around it: the verdict is that of the fix alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.support.honest_changes import add_noise, fix_changes, parts_of
from tests.support.manipulations.scoring import ScoredTask, Scoring, verdict_of
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import PlannedTask
from trialfleet_repository import trees
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.prepare import prepare_task
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.task import validate_task

NO_NOISE: tuple[tuple[str, ...], Changes] = ((), {})


@dataclass(frozen=True)
class HonestRow:
    """One scored set of changes. `what`: "whole" or "part"; `noise`: names of the work around it. `alone`: the
    verdict of the same changes in one run, without noise, order and control. `again`: where these differ,
    the verdict when the changes are scored once more: on a busy machine tests that compare times may fail."""

    task: str
    what: str
    noise: tuple[str, ...]
    alone: str
    verdict: str
    needed: tuple[str, ...] = ()
    again: str | None = None

    @property
    def agrees(self) -> bool:
        return self.alone in (self.verdict, self.again)

    @property
    def title(self) -> str:
        verdicts = f"{self.verdict}, not {self.alone}; again: {self.again}"
        return f"{self.task} {self.what} ({', '.join(self.noise) or 'no noise'}): {verdicts}"


@dataclass
class HonestTask(ScoredTask):
    """A task of a file. `mirrors`: by the repository's address."""

    given: LoadedTask = field(kw_only=True)
    mirrors: Mapping[str, Path] = field(default_factory=dict[str, Path], kw_only=True)

    @cached_property
    def loaded(self) -> LoadedTask:
        return self.given

    @cached_property
    def planned(self) -> PlannedTask:
        objects, sandbox = Objects(self.cache.objects, self.store), choose()
        validation = validate_task(
            self.given,
            repeats=1,
            sandbox=sandbox,
            cache=self.cache,
            objects=objects,
            mirrors=self.mirrors,
            fresh=self.fresh,
        )
        assert validation.problems == (), validation.problems
        return prepare_task(
            self.given, validation, cache=self.cache, objects=objects, mirrors=self.mirrors, sandbox=sandbox
        )

    @cached_property
    def fix(self) -> Changes:
        diff = Objects(self.cache.objects, self.store).get(self.planned.order.fix).decode()
        return fix_changes(diff, self.ready.given)

    @cached_property
    def tree(self) -> dict[str, TreeEntry]:
        return trees.unpack(Objects(self.cache.objects, self.store).get(self.planned.order.workspace))

    def rows(self, seed: str, *, noises: int = 2, parts: int = 1) -> Iterator[HonestRow]:
        """The fix whole and in parts, each alone and with `noises` sets of other work."""
        for what, changes in (
            ("whole", self.fix),
            *(("part", part) for part in parts_of(self.fix, self.tree)[:parts]),
        ):
            alone = "passed" if what == "whole" else verdict_of(self.score(changes, Scoring.ONE_RUN))
            for number in range(noises + 1):
                names, noise = add_noise(self.tree, self.fix, f"{seed}-{number}") if number else NO_NOISE
                scored, again = self.score({**noise, **changes}), None
                if verdict_of(scored) != alone:
                    self.results.clear()
                    again = verdict_of(self.score({**noise, **changes}))
                needed = getattr(scored, "needed", ())
                yield HonestRow(self.loaded.id, what, names, alone, verdict_of(scored), needed, again)
