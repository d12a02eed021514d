"""Clean scoring: the patch alone travels to pristine checkouts, and the tests run there without a key."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trialfleet_ledger.attempt_ends import TESTS_DEATHS, EndEvent, are_tests_within, loss_of_event
from trialfleet_ledger.bundle import Capped
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import TestResult
from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_repository import trees, workspace
from trialfleet_repository.environments import environment
from trialfleet_repository.passed_runs import agrees, all_passed
from trialfleet_repository.patch import changes_of
from trialfleet_repository.patch_classes import SplitChanges, split_changes
from trialfleet_repository.shared_runs import (
    SharedRun,
    contradicts_pass,
    describe_silent,
    judge_shared,
    without_must_fail,
)
from trialfleet_repository.testrun import REPORT, Suite, TestRun, run_tests
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes
from trialfleet_runner.attempt.bundle_builder import read_hostile
from trialfleet_runner.attempt.host_room import RoomSample, has_filled_host
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.attempt.prepared_inputs import Ready
from trialfleet_runner.attempt.scoring_order import (
    CONTROL_RUNS,
    JUDGED,
    ScoringCause,
    ScoringStep,
    changes_in,
    find_cause,
    has_next,
    next_step,
    others_may_matter,
)
from trialfleet_sandbox.protocol import ContainerDied, Exit, Sandbox, SandboxError
from trialfleet_sandbox.scratch import Scratch

CHECKOUT = "checkout"  # below the folder of scoring


class TestsExhausted(Exception):
    """The tests ended too often without a result for what is scored: a verdict."""

    __test__ = False  # pytest takes it for a test class otherwise


@dataclass(frozen=True)
class ScoreRun:
    """One scoring run; `results` covers every fail-to-pass and pass-to-pass id, in this order. `report`: of the
    test runner, as it wrote it."""

    run: TestRun
    results: tuple[TestResult, ...]
    report: Capped | None

    @property
    def timed_out(self) -> bool:
        return self.run.exit.cause == "timeout"

    @property
    def exhausted(self) -> bool:
        """Whether the tests were seen beyond their limits of memory or disk."""
        return self.run.exit.cause in ("memory", "disk")

    @property
    def passed(self) -> bool:
        """A run that was ended for its time or its resources has not passed."""
        return all_passed(self.results) and agrees(self.run)


@dataclass(frozen=True)
class ControlRun:
    """A run with tests that must fail and with the changes of `step`. `silent`: what of them says nothing, as a
    caution. `judged`: it is the step's run as well."""

    step: ScoringStep
    run: ScoreRun
    contradicts: bool
    silent: str | None
    judged: bool = False


@dataclass(frozen=True)
class ScoringRuns:
    """All scoring runs of an attempt, in order, and the changes that they were made with. `controls`: those with
    tests that must fail that say something of a pass, or whose step was run again without these."""

    runs: Mapping[ScoringStep, ScoreRun]
    split: SplitChanges
    controls: tuple[ControlRun, ...] = ()

    @property
    def cause(self) -> ScoringCause:
        return find_cause(self.passed)

    @property
    def passed(self) -> dict[ScoringStep, bool]:
        return {step: one.passed for step, one in self.runs.items()}

    @property
    def deciding(self) -> ScoreRun:
        """The run whose results are the trial's."""
        return self.runs[self.cause.decided_by]

    @property
    def is_refuted(self) -> bool:
        """Whether tests that must fail passed, twice: so does every test then."""
        controls = self.deciding_controls
        return len(controls) == CONTROL_RUNS and all(one.contradicts for one in controls)

    @property
    def deciding_controls(self) -> tuple[ControlRun, ...]:
        return tuple(one for one in self.controls if one.step is self.cause.decided_by)

    @property
    def silent_controls(self) -> tuple[str, ...]:
        """Cautions about a pass that its tests that must fail do not confirm, each once."""
        return tuple(dict.fromkeys(one.silent for one in self.deciding_controls if one.silent))

    @property
    def forged(self) -> bool:
        return self.cause.forged or self.is_refuted

    @property
    def exits(self) -> list[Exit]:
        apart = (control.run for control in self.controls if not control.judged)
        return [one.run.exit for one in (*self.runs.values(), *apart)]

    def plus(self, step: ScoringStep, run: ScoreRun, *controls: ControlRun) -> ScoringRuns:
        return replace(self, runs={**self.runs, step: run}, controls=(*self.controls, *controls))

    @property
    def costs(self) -> dict[str, float | None]:
        """Metrics of all runs together."""
        core_s = [one.core_s for one in self.exits if one.core_s is not None]
        return {
            "tests_s": round(sum(one.wall_s for one in self.exits), 3),
            "tests_core_s": sum(core_s) if len(core_s) == len(self.exits) else None,
        }


@dataclass(frozen=True)
class Scorer:
    """Scores the changes of one attempt. `sandbox`: the tests'. Setting `stop` ends a run."""

    grants: Grants
    ready: Ready
    scratch: Scratch
    sandbox: Sandbox
    stop: threading.Event

    def score(self, diff: str) -> ScoringRuns:
        """Run the tests with the changes of `diff` as `scoring_order` says, each time in a fresh checkout, on a
        volume that nothing of the run before is left in.

        Raises `PatchError` if the diff does not apply, and `Lost`: `scoring` if the sandbox failed or the
        environment was changed meanwhile (by these tests, or by another attempt's agent, under a subreaper);
        `host_full`; `terminated` if `stop` ended the tests. Raises `TestsExhausted` once the tests' container has
        died, or the environment was changed, too often, in earlier attempts or now.
        """
        if self._loss_of_deaths(self.grants.tests_died) is None:
            raise TestsExhausted("their container died in each of the earlier attempts")
        ready = self.ready
        control = ready.must_fail
        known = ready.pristine.manifest.keys() if ready.classes else ()
        split = split_changes(changes_of(diff, ready.given, ready.exclusions), ready.classes, known)
        matter = others_may_matter(split, ready.classes, known)
        scoring = ScoringRuns({}, split)
        while (step := next_step(scoring.passed, others_matter=matter)) is not None:
            if control is not None and control.exit_code is not None and step in JUDGED:
                scoring = self._shared(scoring, step, control)
                continue
            followed = control is not None or has_next(step, scoring.passed, others_matter=matter)
            scoring = scoring.plus(step, self._run(changes_in(step, split), self._ids, followed=followed))
        if control is None or not scoring.cause.passed or scoring.cause.forged:
            return scoring
        return self._controlled(scoring, control)

    def _shared(self, scoring: ScoringRuns, step: ScoringStep, test: MustFailTest) -> ScoringRuns:
        """One run of the judged tests with those that must fail, and where it is unclear, one without these."""
        wanted, changes = self.grants.task.fail_to_pass, changes_in(step, scoring.split)
        shared = self._run(changes, self._ids, followed=True, control=test)
        seen = judge_shared(shared.run, test, self._ids)
        control = _control_run(step, shared, test, wanted, judged=seen is SharedRun.PASSED)
        if seen is SharedRun.UNCLEAR:
            return scoring.plus(step, self._run(changes, self._ids, followed=True), control)
        run = without_must_fail(shared.run, test)
        judged = ScoreRun(run, run.results(self._ids), shared.report)
        return scoring.plus(step, judged, *([control] if control.judged else ()))

    def _controlled(self, scoring: ScoringRuns, test: MustFailTest) -> ScoringRuns:
        """With as many control runs as the pass needs: one that agrees with it, else `CONTROL_RUNS`."""
        wanted, step = self.grants.task.fail_to_pass, scoring.cause.decided_by
        changes = changes_in(step, scoring.split)
        while len(done := scoring.deciding_controls) < CONTROL_RUNS and all(one.contradicts for one in done):
            run = self._run(changes, wanted, followed=len(done) + 1 < CONTROL_RUNS, control=test)
            control = _control_run(step, run, test, wanted)
            scoring = replace(scoring, controls=(*scoring.controls, control))
        return scoring

    @property
    def _ids(self) -> tuple[str, ...]:
        return (*self.grants.task.fail_to_pass, *self.grants.task.pass_to_pass)

    def _run(
        self, changes: Changes, ids: tuple[str, ...], *, followed: bool, control: MustFailTest | None = None
    ) -> ScoreRun:
        """With the tests that must fail of `control` after the others."""
        ids = (*ids, *(control.ids if control else ()))
        folder = self.scratch.empty_score()
        checkout = folder / CHECKOUT
        workspace.clone(self.ready.pristine, checkout)
        added = {} if control is None else {control.path: TreeEntry(control.text.encode())}
        trees.write_changes({**changes, **added}, checkout)
        before = RoomSample.of(folder)
        if not self.sandbox.capabilities.protects_environment:  # what is changed now is found at the end, too
            _refuse_changed(self.ready)
        may_hide = self.ready.exclusions.may_hide
        try:
            run = run_tests(
                self._suite(),
                workspace=checkout,
                scratch=folder,
                tests=ids,
                sandbox=self.sandbox,
                stop=self.stop,
                record=self.scratch.tests,  # which tests cannot write if the sandbox can prevent it
                guarded=[path for path, entry in changes.items() if entry and may_hide(path)],
                followed=followed,
            )
        except ContainerDied as error:
            raise self._death(str(error)) from error
        except SandboxError as error:
            raise Lost(LossClass.SCORING, f"the sandbox failed: {error}") from error
        if run.exit.cause == "memory" and self.sandbox.capabilities.separate_container:
            raise self._death("the kernel killed tests for memory, of their container or of the node")
        if run.exit.cause == "stopped":
            raise Lost(LossClass.TERMINATED, "the runner was told to stop while the tests ran")
        if not environment.unchanged(self.ready.environment):
            raise self._change()
        if run.exit.cause != "disk":  # beyond its limit, as within half of the host's rest: the patch's own doing
            has_filled_host(folder, before, self.grants.limits)
        return ScoreRun(run, run.results(ids), read_hostile(folder / "home" / REPORT))

    def _change(self) -> Lost | TestsExhausted:
        """What one more changed environment is. What the fix's own run took says nothing of it."""
        why = f"the tests, or another attempt, changed the environment {self.ready.environment.name}"
        within = self.grants.tests_died + 1 < TESTS_DEATHS
        loss = loss_of_event(EndEvent.TESTS_CHANGED, within_limits=within)
        return TestsExhausted(why) if loss is None else Lost(loss, why, by_patch=True)

    def _death(self, why: str) -> Lost | TestsExhausted:
        """What one more death of the tests' container is."""
        deaths = self.grants.tests_died + 1
        loss = self._loss_of_deaths(deaths)
        if loss is None:
            return TestsExhausted(why)
        return Lost(loss, f"{why}{self._why_no_verdict() if deaths >= TESTS_DEATHS else ''}", by_patch=True)

    def _loss_of_deaths(self, deaths: int) -> LossClass | None:
        fix_bytes, limit_bytes = self.grants.task.fix_bytes, self.grants.limits.memory_bytes
        within = are_tests_within(deaths, fix_bytes=fix_bytes, limit_bytes=limit_bytes)
        return loss_of_event(EndEvent.TESTS_DIED, within_limits=within)

    def _why_no_verdict(self) -> str:
        if self.grants.task.fix_bytes is None:
            return "; no verdict: the memory of the fix's own run is unknown (`trialfleet validate --fresh`)"
        return "; no verdict: the fix's own run took more than half of limits.memory"

    def _suite(self) -> Suite:
        task, limits = self.grants.task, self.grants.limits
        return Suite(
            environment=self.ready.environment,
            command=task.test_command,
            pythonpath=task.pythonpath,
            timeout_s=limits.tests_timeout_s,
            memory_bytes=limits.memory_bytes,
            disk_bytes=limits.disk_bytes,
            inodes=limits.inodes,
            results=task.results,
            env=task.env,
            directory=task.directory,
            metadata=self.ready.metadata,
        )


def _control_run(
    step: ScoringStep, run: ScoreRun, test: MustFailTest, wanted: Sequence[str], *, judged: bool = False
) -> ControlRun:
    return ControlRun(step, run, contradicts_pass(run.run, test, wanted), describe_silent(run.run, test), judged)


def _refuse_changed(ready: Ready) -> None:
    if not environment.unchanged(ready.environment):
        raise Lost(LossClass.SCORING, f"the environment {ready.environment.name} is not what was built")
