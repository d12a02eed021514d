"""Whether tables say what a finished campaign of this plan can say. By columns: quick for 100,000 trials."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trialfleet_analysis.ledger import Frame
from trialfleet_analysis.tables.columns import known, numbers, some, texts, words
from trialfleet_analysis.tables.rows import TaskRow, Use
from trialfleet_runner.contract import Coverage, LossClass, Stop, Verdict
from trialfleet_runner.stages import Stage

_WORDS: dict[str, type[StrEnum]] = {
    "use": Use,
    "verdict": Verdict,
    "stop": Stop,
    "abandoned": LossClass,
    "coverage": Coverage,
    "loss": LossClass,
    "stage": Stage,
}


def is_sound(frame: Frame, tasks: Sequence[TaskRow], trials: pa.Table, attempts: pa.Table) -> bool:
    """Every planned trial once, no word that does not exist, no pass without the verdict, nothing missing without
    a reason, and an attempt for each trial."""
    return (
        _words_exist(trials)
        and _words_exist(attempts)
        and _is_whole(frame, trials)
        and _agrees_with_itself(trials)
        and _uses(trials) == {(row.task, row.use.value) for row in tasks}
        and bool(np.all((numbers(trials, "block") < blocks_of(frame, trials)) == numbers(trials, "in_blocks")))
        and _every_trial_has_attempts(trials, attempts)
    )


def blocks_of(frame: Frame, trials: pa.Table) -> int:
    """Complete blocks of a finished campaign: all, unless a trial was cancelled while it ran (see
    `complete_blocks`)."""
    counted = ~words(trials, "use").are(Use.HALTED)
    if not counted.any():
        return 0
    cut = numbers(trials, "block")[counted & words(trials, "abandoned").are(LossClass.CANCELLED)]
    return int(cut.min()) if len(cut) else frame.reps


def _words_exist(table: pa.Table) -> bool:
    return all(
        words(table, name).used() <= {word.value for word in kind}
        for name, kind in _WORDS.items()
        if name in table.column_names
    )


def _is_whole(frame: Frame, trials: pa.Table) -> bool:
    """Cells × reps, each once, and none that is not planned."""
    cells, whole = _cells(frame, trials), np.arange(frame.planned)
    places = (numbers(trials, "block"), numbers(trials, "rep"))
    return all(
        bool(np.all((place >= 0) & (place < frame.reps)))
        and np.array_equal(np.sort(cells * frame.reps + place), whole)
        for place in places
    )


def _cells(frame: Frame, trials: pa.Table) -> NDArray[np.int64]:
    """Which of the plan's cells each trial belongs to; −1: none."""
    task, condition = words(trials, "task"), words(trials, "condition")
    number = {(cell.task, cell.condition.name): at for at, cell in enumerate(frame.plan.cells)}
    at = np.full((len(task.names) + 1, len(condition.names) + 1), -1)  # the last of each: no word
    for t, name in enumerate(task.names):
        for c, other in enumerate(condition.names):
            at[t, c] = number.get((name, other), -1)
    return at[task.codes, condition.codes]


def _agrees_with_itself(trials: pa.Table) -> bool:
    measured = known(trials, "verdict")
    passed = numbers(trials, "passed")
    claims: list[NDArray[np.bool_]] = [
        measured == ~known(trials, "missing"),
        measured == known(trials, "passed"),
        measured == known(trials, "stop"),
        measured == known(trials, "coverage"),
        (passed == 1) == words(trials, "verdict").are(Verdict.PASSED),
        ~(measured & known(trials, "fault")),
        ~measured | (numbers(trials, "verified") == 1),
    ]
    return all(bool(claim.all()) for claim in claims)


def _uses(trials: pa.Table) -> set[tuple[str, str]]:
    task, use = words(trials, "task"), words(trials, "use")
    pairs = np.unique(np.stack([task.codes, use.codes]), axis=1)
    return {(task.names[t], use.names[u]) for t, u in pairs.T.tolist()}


def _every_trial_has_attempts(trials: pa.Table, attempts: pa.Table) -> bool:
    """Each has one, and of those with a verdict just one counts."""
    names = texts(trials, "trial")
    counting = texts(some(attempts, known(attempts, "verdict")), "trial")
    return (
        len(set(names)) == len(names)
        and len(set(counting)) == len(counting)
        and set(texts(attempts, "trial")) == set(names)
        and set(counting) == set(texts(some(trials, known(trials, "verdict")), "trial"))
    )
