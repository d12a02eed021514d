"""When crashed agents halt their condition: by the plan's order, whatever arrives first."""

from __future__ import annotations

import pytest

from tests.support import records
from trialfleet_ledger.amendments import select_halted_cells
from trialfleet_ledger.crashed_agents import begins_with_crashes
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict

TRIAL = Trial(id="a" * 26, task="t", condition="c", rep=0, seed=0, block=0, position=0)


def outcome(letter: str) -> Outcome | None:
    """`x`: crashed, `-`: not over yet, `a`: abandoned, `f`: failed, `p`: passed."""
    if letter == "-":
        return None
    if letter == "a":
        return Outcome(trial=TRIAL, attempts=3, abandoned=LossClass.EVICTED)
    verdict = Verdict.PASSED if letter == "p" else Verdict.FAILED
    stop = Stop.CRASHED if letter == "x" else Stop.FINISHED
    return Outcome(trial=TRIAL, attempts=1, scored=records.scored(verdict, stop=stop))


@pytest.mark.parametrize(
    ("outcomes", "halts"),
    [
        ("xxx", True),
        ("xxxp", True),
        ("xax-x", False),
        ("axaxx", True),
        ("xx", False),
        ("-xxxx", False),
        ("xx-x", False),
        ("pxxxxxx", False),
        ("xfxxx", False),
        ("aaa", False),
        ("", False),
    ],
)
def test_three_crashes_first_halt_a_condition(outcomes: str, *, halts: bool) -> None:
    assert begins_with_crashes(map(outcome, outcomes)) is halts


def test_what_arrives_first_changes_nothing() -> None:
    """Every way in which the outcomes of one plan may arrive gives the same decision in the end, and no other
    before."""
    for plan in ("xxxp", "xxfx", "axxx", "pxxx"):
        whole = begins_with_crashes(map(outcome, plan))
        for known in range(2 ** len(plan)):
            seen = "".join(letter if known >> n & 1 else "-" for n, letter in enumerate(plan))
            assert begins_with_crashes(map(outcome, seen)) in (False, whole)


def test_a_halt_covers_its_task_or_its_condition() -> None:
    cells = [(task, condition) for task in "ab" for condition in "xy"]
    of_task, of_condition = (
        Halt(number=1, at=0.0, task="a", reason="r"),
        Halt(number=2, at=0.0, condition="y", reason="r"),
    )
    assert select_halted_cells(cells, [of_task]) == {("a", "x"), ("a", "y")}
    assert select_halted_cells(cells, [of_condition]) == {("a", "y"), ("b", "y")}
    assert select_halted_cells(cells, [Halt(number=3, at=0.0, reason="r")]) == frozenset()
    with pytest.raises(ValueError, match="not of both"):
        Halt(number=4, at=0.0, task="a", condition="y", reason="r")
