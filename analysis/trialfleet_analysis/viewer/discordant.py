"""Pairs of trials that differ in their outcome: the same task in the same block, under two conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_analysis.tables.columns import among, codes, integers, numbers, some, texts, truths
from trialfleet_analysis.tables.table import Table


@dataclass(frozen=True)
class TrialPair:
    """Trial `a` of condition A and trial `b` of condition B: same task, same rep."""

    rep: int
    a: str
    b: str


@dataclass(frozen=True)
class TaskPairs:
    """One task's pairs. `both`, `neither`: how many passed on both sides, or on none; `apart`: one trial was
    lost."""

    task: str
    only_a: tuple[TrialPair, ...]
    only_b: tuple[TrialPair, ...]
    both: int
    neither: int
    apart: int


def discordant(trials: Table, tasks: Sequence[str], a: str, b: str) -> tuple[TaskPairs, ...]:
    """Of the complete blocks, one per task. A rep whose trial was lost on either side is no pair."""
    used = some(trials, truths(trials, "in_blocks") & among(trials, "condition", (a, b)))
    sides = codes(used, "condition", (a, b))
    task, rep = codes(used, "task", tasks), integers(used, "rep")
    passed, ids = numbers(used, "passed"), texts(used, "trial")
    found: dict[tuple[int, int], dict[int, tuple[float, str]]] = {}
    for n in np.lexsort((rep, task)).tolist():
        if task[n] >= 0:
            found.setdefault((int(task[n]), int(rep[n])), {})[int(sides[n])] = (float(passed[n]), ids[n] or "")
    return tuple(_of_task(name, place, found) for place, name in enumerate(tasks))


def _of_task(name: str, place: int, found: dict[tuple[int, int], dict[int, tuple[float, str]]]) -> TaskPairs:
    mine = [(rep, sides) for (task, rep), sides in found.items() if task == place and len(sides) == 2]
    outcomes = [(TrialPair(rep, sides[0][1], sides[1][1]), sides[0][0], sides[1][0]) for rep, sides in mine]
    return TaskPairs(
        name,
        only_a=tuple(_those(outcomes, 1, 0)),
        only_b=tuple(_those(outcomes, 0, 1)),
        both=len(list(_those(outcomes, 1, 1))),
        neither=len(list(_those(outcomes, 0, 0))),
        apart=sum(bool(np.isnan(x) or np.isnan(y)) for _, x, y in outcomes),
    )


def _those(outcomes: list[tuple[TrialPair, float, float]], a: int, b: int) -> Iterator[TrialPair]:
    return (pair for pair, x, y in outcomes if (x, y) == (a, b))
