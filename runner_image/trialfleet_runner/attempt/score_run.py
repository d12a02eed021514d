"""Clean scoring: the patch alone travels to a pristine checkout, and the tests run there without a key."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import TestResult
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_repository import trees, workspace
from trialfleet_repository.environments import environment
from trialfleet_repository.patch import changes_of
from trialfleet_repository.testrun import Suite, TestRun, run_tests
from trialfleet_runner.attempt.host_room import RoomSample, has_filled_host
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.attempt.prepared_inputs import Ready
from trialfleet_sandbox.protocol import Sandbox, SandboxError

CHECKOUT = "checkout"  # below the folder of scoring


@dataclass(frozen=True)
class ScoreRun:
    """The scoring run; `results` covers every fail-to-pass and pass-to-pass id, in this order."""

    run: TestRun
    results: tuple[TestResult, ...]
    timed_out: bool


def score(
    grants: Grants,
    ready: Ready,
    diff: str,
    scratch: Path,
    sandbox: Sandbox,
    *,
    record: Path,
    stop: threading.Event,
) -> ScoreRun:
    """Apply `diff` to a fresh checkout below `scratch`, restore protected files and run the tests. Their output
    goes to `record`, which they cannot write if the sandbox can prevent it.

    Raises `PatchError` if the diff does not apply, and `Lost`: `scoring` if the sandbox failed or the environment
    was changed meanwhile (by another attempt's agent, under a subreaper); `host_full`; `terminated` if `stop`
    ended the tests.
    """
    task = grants.task
    changes = changes_of(diff, ready.given, ready.exclusions)
    checkout = scratch / CHECKOUT
    workspace.clone(ready.pristine, checkout)
    trees.write_changes(changes, checkout)
    suite = Suite(
        environment=ready.environment,
        command=task.test_command,
        pythonpath=task.pythonpath,
        timeout_s=grants.limits.tests_timeout_s,
        memory_bytes=grants.limits.memory_bytes,
        disk_bytes=grants.limits.disk_bytes,
        results=task.results,
        env=task.env,
        directory=task.directory,
        metadata=ready.metadata,
    )
    ids = (*task.fail_to_pass, *task.pass_to_pass)
    before = RoomSample.of(scratch)
    if not sandbox.capabilities.protects_environment:  # what is changed now is found at the end, too
        _refuse_changed(ready.environment)
    try:
        run = run_tests(
            suite,
            workspace=checkout,
            scratch=scratch,
            tests=ids,
            sandbox=sandbox,
            stop=stop,
            record=record,
            guarded=[path for path, entry in changes.items() if entry and ready.exclusions.may_hide(path)],
        )
    except SandboxError as error:
        raise Lost(LossClass.SCORING, f"the sandbox failed: {error}") from error
    if run.exit.cause == "stopped":
        raise Lost(LossClass.TERMINATED, "the runner was told to stop while the tests ran")
    _refuse_changed(ready.environment)
    if run.exit.cause != "disk":  # beyond its limit, as within half of the host's rest: the patch's own doing
        has_filled_host(scratch, before, grants.limits)
    return ScoreRun(run, run.results(ids), timed_out=run.exit.cause == "timeout")


def _refuse_changed(built: Path) -> None:
    if not environment.unchanged(built):
        raise Lost(LossClass.SCORING, f"the environment {built.name} is not what was built")
