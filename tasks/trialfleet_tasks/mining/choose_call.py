"""Chooses how a Python project's tests are called: of its declared calls, the one by which most tests pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.task import PythonEnvironment
from trialfleet_repository.languages import PYTHON
from trialfleet_tasks.mining.declared_call import DeclaredCall
from trialfleet_tasks.mining.examine import Miner
from trialfleet_tasks.mining.findings import MiningFinding
from trialfleet_tasks.mining.history import CandidateCommit
from trialfleet_tasks.mining.python_environment import PythonEnvironments
from trialfleet_tasks.validate.bench import passing_tests

_COMMITS = 3  # that are tried at most, until one call leads
_CALLS = 2  # of pytest, and of other runners, that are tried at one


@dataclass(frozen=True)
class TriedCall:
    """`passed`: how many of the tests that were given."""

    call: DeclaredCall
    passed: int

    @property
    def words(self) -> str:
        """As a sentence names it."""
        place = f" ({self.call.place})" if self.call.place else ""
        return f"`{self.call.program}`{place}: {plural(self.passed, 'test')}"


def choose_python_call(miner: Miner, candidates: Sequence[CandidateCommit]) -> tuple[TriedCall, ...]:
    """The calls that were tried, the preferred one first; none where there is no choice. The commits that `miner`
    examines from now on are called by it."""
    environments = miner.environments.get(PYTHON.name)
    if not isinstance(environments, PythonEnvironments):
        return ()
    newest = [candidate for candidate in candidates if candidate.language is PYTHON]
    newest.sort(key=lambda candidate: str(candidate.commit.committed), reverse=True)
    passed: dict[str, TriedCall] = {}
    for candidate in newest[:_COMMITS]:
        try:
            choices = environments.of_each_call(*miner.environment_facts(candidate))
        except OperatorError:
            continue
        if len(choices) < 2:
            return ()
        of_pytest = [choice for choice in choices if not choice[0].runner][:_CALLS]
        others = [choice for choice in choices if choice[0].runner][:_CALLS]
        for call, environment in (*of_pytest, *others):
            before = passed.get(call.key, TriedCall(call, 0))
            passed[call.key] = TriedCall(call, before.passed + _count(miner, candidate, environment))
        first, *rest = rank_calls(tuple(passed.values()))
        if first.passed:
            environments.preferred = first.call
            if not others or all(first.passed > one.passed for one in rest):
                break
    return rank_calls(tuple(passed.values())) if environments.preferred else ()


def rank_calls(tried: Sequence[TriedCall]) -> tuple[TriedCall, ...]:
    """The one by which most tests pass first; of several pytest's, then the first.

    >>> own = DeclaredCall("tox.ini", runs_another=True, runner=("python", "-m", "unittest"))
    >>> [one.call.program for one in rank_calls([TriedCall(own, 3), TriedCall(DeclaredCall(""), 3)])]
    ['pytest', 'python -m unittest']
    >>> [one.call.program for one in rank_calls([TriedCall(DeclaredCall(""), 2), TriedCall(own, 3)])]
    ['python -m unittest', 'pytest']
    """
    return tuple(sorted(tried, key=lambda one: (-one.passed, one.call.runs_another)))


def _count(miner: Miner, candidate: CandidateCommit, environment: PythonEnvironment) -> int:
    """How many of the commit's tests pass at it."""
    task = miner.make_task(candidate, environment)
    if isinstance(task, MiningFinding):
        return 0
    try:
        passed = passing_tests(
            task,
            candidate.tests,
            cache=miner.cache,
            mirrors=miner.mirrors,
            sandbox=miner.sandbox,
            timeout_s=miner.timeout_s,
            say=lambda _: None,
            trees=("fixed",),
        )
    except OperatorError:
        return 0
    return len(passed)


def describe_calls(tried: Sequence[TriedCall]) -> Iterator[str]:
    """What was chosen, as lines for a person."""
    if tried:
        others = "; ".join(one.words for one in tried[1:])
        yield f"tests are called as {tried[0].words} of the newest commits pass; {others}"
