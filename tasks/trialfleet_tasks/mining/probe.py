"""What mining may give, from one look at the newest candidate: its environment, its tests and all tests of its
package, in a minute at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.waiting import waiting_for
from trialfleet_repository.environments.environment import build
from trialfleet_repository.results.junit import collection_failures
from trialfleet_repository.testrun import TestRun
from trialfleet_tasks.mining.environment_failures import HINTS, told_apart
from trialfleet_tasks.mining.examine import Miner
from trialfleet_tasks.mining.findings import REMEDIES, MiningFinding, RejectionReason, hint_of, reason_of
from trialfleet_tasks.mining.history import CandidateCommit
from trialfleet_tasks.mining.mine import IN_A_ROW
from trialfleet_tasks.mining.state import MiningState
from trialfleet_tasks.presets.packages import in_package
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.bench import GO_ON, bench
from trialfleet_tasks.validate.inputs import prepare_inputs
from trialfleet_tasks.validate.judge import not_a_run
from trialfleet_tasks.validate.runs import TaskRunner

PROBE_S = 60.0
FEWEST = IN_A_ROW  # candidates of a language; of fewer, their own findings say the same as soon
_KEPT = 0.4  # of candidates, in repositories whose tests run
_RUNS = 4  # of a candidate's tests, besides those that are repeated at both trees
_MOST_FILES = 2000  # words of a command
_SHARE = 5  # candidates have one environment
_ROUND = 10


@dataclass(frozen=True)
class ProbeResult:
    """Of one language. `environment_s`: until the environment was built; `run_s`: of one run of the candidate's
    own tests; `tests`: of its package, which took `suite_s`. None: not known when `limit_s` was over. `cause`: why
    no test of it can run, with what helps (`hint`)."""

    language: str
    limit_s: float = PROBE_S
    environment_s: float | None = None
    run_s: float | None = None
    tests: int | None = None
    suite_s: float | None = None
    cause: str | None = None
    hint: str | None = None


def choose_probed(chosen: Sequence[CandidateCommit], state: MiningState) -> CandidateCommit | None:
    """The newest candidate of the language that most of them have, if none of it was examined for good."""
    by_language: dict[str, list[CandidateCommit]] = {}
    for candidate in chosen:
        by_language.setdefault(candidate.language.name, []).append(candidate)
    most = max(by_language.values(), key=len, default=list[CandidateCommit]())
    known = state.findings(candidate.commit.sha for candidate in most)
    if len(most) < FEWEST or any(not finding.temporary for finding in known):
        return None
    return max(most, key=lambda candidate: str(candidate.commit.committed or ""))


def probe_repository(miner: Miner, candidate: CandidateCommit, limit_s: float = PROBE_S) -> ProbeResult:
    """What is known when that time is over. An environment that is not ready then is finished all the same:
    candidates need it as well."""
    look = _ProbeThread(miner, candidate, limit_s)
    look.start()
    with waiting_for("a first look at the newest commit that may be a task", at_most_s=limit_s):
        look.join(limit_s)
    if look.failure is not None:
        raise look.failure
    return look.result


class _ProbeThread(threading.Thread):
    """Has every result as soon as it is known."""

    def __init__(self, miner: Miner, candidate: CandidateCommit, limit_s: float) -> None:
        super().__init__(name="probe", daemon=True)
        self.miner, self.candidate, self.until = miner, candidate, time.monotonic() + limit_s
        self.result = ProbeResult(candidate.language.name, limit_s)
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            task = self.miner.prepare_task(self.candidate)
            if isinstance(task, MiningFinding):
                self._give_up(task.outcome, task.detail, task.hint)
            else:
                self._measure(task)
        except OperatorError as error:
            self._give_up(RejectionReason.ENVIRONMENT_FAILED, error.message, error.hint)
        except BaseException as error:  # `probe_repository` raises it
            self.failure = error

    def _measure(self, task: LoadedTask) -> None:
        miner, started = self.miner, time.monotonic()
        prepared = prepare_inputs(task, cache=miner.cache, mirrors=miner.mirrors, sandbox=miner.sandbox)
        planned, tree = prepared.environment, prepared.variants.pristine
        others = miner.sandbox.capabilities.other_uid
        environment = build(planned.ref, planned.source, cache=miner.cache, for_other_uid=others)
        self.result = replace(self.result, environment_s=time.monotonic() - started)
        paths = self.candidate.language.test_modules(tree)
        files = in_package(planned.ref.kind, tree, paths, planned.directory)[:_MOST_FILES]
        own = tuple(path for path in self.candidate.tests if path in tree)
        with bench(prepared, environment, cache=miner.cache, sandbox=miner.sandbox, timeout_s=miner.timeout_s) as (
            _,
            runner,
        ):
            first = self._run_in_time(runner, own)
            if first is not None and first.exit.cause != "timeout":
                self.result = replace(self.result, run_s=first.exit.wall_s)
            whole = self._run_in_time(runner, files)
        self._judge([run for run in (whole, first) if run is not None])

    def _run_in_time(self, runner: TaskRunner, files: Sequence[str]) -> TestRun | None:
        """None where there is nothing to run, or no time."""
        left = self.until - time.monotonic()
        if left < 1 or not files:
            return None
        extra = (GO_ON,) if runner.suite.results == "pytest" else ()
        timed = replace(runner, suite=replace(runner.suite, timeout_s=min(left, runner.suite.timeout_s)))
        return timed.run(files, fixed=True, extra=extra)

    def _judge(self, runs: Sequence[TestRun]) -> None:
        """`runs`: that of the whole package first."""
        late = bool(runs) and runs[0].exit.cause == "timeout"
        if runs and not late and not any(case.outcome == "passed" for run in runs for case in run.cases or ()):
            problem = next(filter(None, (not_a_run(run, "fixed") for run in runs)), None)
            if problem is not None:
                reason = reason_of((problem,))
                self._give_up(reason, f"{problem.message}\n{problem.output}", hint_of(problem, reason))
                return
        if len(runs) > 1:
            cases, collected = runs[0].cases or (), runs[0].settings.collected
            counted = len(cases) - len(collection_failures(cases)) or len(collected or ()) or None
            seconds = None if late else runs[0].exit.wall_s
            self.result = replace(self.result, tests=counted, suite_s=seconds)

    def _give_up(self, outcome: str, detail: str, hint: str | None) -> None:
        reason = told_apart(RejectionReason(outcome), detail)
        cause = f"{reason.value}: {one_line(detail.partition(chr(10))[0], 300)}"
        self.result = replace(self.result, cause=cause, hint=HINTS.get(reason, hint) or REMEDIES.get(reason))


def describe_probe(found: ProbeResult, *, candidates: int, repeats: int, jobs: int) -> str:
    """The verdict in one line.

    >>> found = ProbeResult("Python", environment_s=20.4, run_s=1.5, tests=1412, suite_s=9.2)
    >>> describe_probe(found, candidates=300, repeats=3, jobs=2)
    'this repository (Python): 1,412 tests ran in 9 s, the environment took 20 s; expect about 120 tasks an hour'
    >>> describe_probe(ProbeResult("Go", cause="needs_network: no", hint="mine"), candidates=9, repeats=3, jobs=2)
    'this repository (Go): cannot run its tests: needs_network: no; fix: mine. Its 9 candidates are examined'
    """
    start = f"this repository ({found.language})"
    if found.cause is not None:
        fix = f"; fix: {found.hint}" if found.hint else ""
        count = plural(candidates, "candidate")
        return f"{start}: cannot run its tests: {found.cause}{fix}. Its {count} are examined"
    if found.environment_s is None:
        return f"{start}: its first environment is not ready after {found.limit_s:.0f} s; no rate is known yet"
    count = plural(found.tests, "test") if found.tests is not None else "all its tests"
    ran = (
        f"{count} ran in {found.suite_s:.0f} s"
        if found.suite_s is not None
        else f"{count} take longer than this look"
    )
    ready = f"the environment took {found.environment_s:.0f} s"
    rate = expect_tasks(found, candidates=candidates, repeats=repeats, jobs=jobs)
    if rate is None:
        late = f"one run of a commit's own tests is not over after {found.limit_s:.0f} s"
        return f"{start}: {ready}, and {late}; expect few tasks"
    return f"{start}: {ran}, {ready}; expect about {plural(rate, 'task')} an hour"


def expect_tasks(found: ProbeResult, *, candidates: int, repeats: int, jobs: int) -> int | None:
    """In an hour, rounded; None where it is not known how long tests take. `candidates`: that there are.

    >>> expect_tasks(ProbeResult("Go", environment_s=100, run_s=25), candidates=90, repeats=3, jobs=1)
    5
    """
    if found.environment_s is None or found.run_s is None:
        return None
    seconds = (2 * repeats + _RUNS) * max(1.0, found.run_s) + found.environment_s / _SHARE
    rate = round(_KEPT * min(candidates, jobs * 3600 / seconds))
    return rate if rate < _ROUND else _ROUND * round(rate / _ROUND)
