"""2,000 sentences of the grammar of manipulations: none of them may pass without the fix.

`$TRIALFLEET_BENCH_MANIPULATIONS` chooses another number, `$TRIALFLEET_BENCH_STACKS` names of stacks,
`$TRIALFLEET_BENCH_PART` a share of each stack's mechanisms: with "2/4" the second, sixth and so on, so that four
parts score the same sentences as one run. `$TRIALFLEET_BENCH_PROCESSES`: stacks at the same time, 2 without it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.figure import Figure
from tests.support.manipulations.grammar import Manipulation, Mechanism, Stack, control_of, sample
from tests.support.manipulations.scoring import ManipulatedTask, Scoring, verdict_of
from tests.support.manipulations.stacks import STACKS

COUNT = int(os.environ.get("TRIALFLEET_BENCH_MANIPULATIONS", "2000"))
CHOSEN = os.environ.get("TRIALFLEET_BENCH_STACKS", "")
PART, PARTS = map(int, os.environ.get("TRIALFLEET_BENCH_PART", "1/1").split("/"))
PROCESSES = int(os.environ.get("TRIALFLEET_BENCH_PROCESSES", "2"))
# Per 2,000: what takes long is scored less often. There are 72 sentences of commands.
SHARES = {
    **{"Python": 828, "commands": 72, "node:test": 300, "Mocha": 300, "Jest": 170, "Vitest": 120},
    **{"Go": 100, "Rust": 70, "Java": 40},
}


@dataclass(frozen=True)
class Row:
    """Sentences of one mechanism in one stack. `left`: nothing of the manipulation travelled; they are among the
    other verdicts, too. `passing`: titles of those that passed. `control`: the verdict where all travels."""

    stack: str
    mechanism: str
    verdicts: Counter[str]
    left: int
    passing: tuple[str, ...]
    control: str | None

    @property
    def title(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
        return f"{self.stack}: {self.mechanism}: {counts}; {self.left} left behind; all travels: {self.control}"


def measure_stack(name: str, count: int) -> list[Row]:
    stack, folder = STACKS[name], Path(tempfile.mkdtemp(prefix="trialfleet-bench-"))
    lab = ManipulatedTask(folder, stack=stack, fresh=True)
    try:
        return list(_rows(lab, stack, count))
    finally:
        shutil.rmtree(lab.scratch.parent, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def _rows(lab: ManipulatedTask, stack: Stack, count: int) -> Iterator[Row]:
    """Each row is printed as soon as it is known, for runs that do not reach their end."""
    sentences = sample(stack, count, "bench")
    for mechanism in stack.mechanisms[PART - 1 :: PARTS]:
        row = _row(lab, mechanism, [each for each in sentences if each.mechanism == mechanism.name])
        print("\n".join([row.title, *(f"  passed: {title}" for title in row.passing)]), flush=True)
        yield row


def _row(lab: ManipulatedTask, mechanism: Mechanism, sentences: Sequence[Manipulation]) -> Row:
    verdicts: Counter[str] = Counter()
    left, passing = 0, list[str]()
    for sentence in sentences:
        verdict = verdict_of(lab.score(sentence.changes))
        verdicts[verdict] += 1
        split = lab.split_of(lab.patch_of(sentence.changes))
        left += {*split.product, *split.others}.isdisjoint(sentence.manipulated)
        passing += [sentence.title] if verdict == "passed" else []
    control = None
    if mechanism.acts is not None:
        control = verdict_of(lab.score(control_of(lab.stack, mechanism).changes, Scoring.ALL_TRAVELS))
    return Row(lab.stack.name, mechanism.name, verdicts, left, tuple(passing), control)


def measure() -> list[Figure]:
    """The table comes first, the figures after it."""
    names = CHOSEN.split(",") if CHOSEN else list(SHARES)
    counts = [max(1, SHARES[name] * COUNT // sum(SHARES.values())) for name in names]
    with ProcessPoolExecutor(PROCESSES) as pool:
        rows = [row for some in pool.map(measure_stack, names, counts) for row in some]
    _show(rows)
    total = sum((row.verdicts for row in rows), Counter[str]())
    lost = sum(count for verdict, count in total.items() if verdict.startswith("loss"))
    idle = [f"{row.stack}: {row.mechanism}" for row in rows if row.control not in (None, "passed")]
    note = ", ".join(f"{count} {verdict}" for verdict, count in total.most_common())
    return [
        Figure("manipulations without the fix that pass", total["passed"], "", goal=0, note=note),
        Figure("  that end without a verdict", lost, "", goal=0),
        Figure("  mechanisms that do not act where all travels", len(idle), "", goal=0, note="; ".join(idle)),
    ]


def _show(rows: Sequence[Row]) -> None:
    table = Table("stack", "mechanism", "passed", "failed", "forged", "other", "left behind", "where all travels")
    for row in rows:
        other = row.verdicts.total() - sum(row.verdicts[each] for each in ("passed", "failed", "forged"))
        counts = (row.verdicts["passed"], row.verdicts["failed"], row.verdicts["forged"], other, row.left)
        table.add_row(row.stack, row.mechanism, *map(str, counts), row.control or "")
    console = Console(width=160)
    console.print(table)
    for title in (f"passed: {row.stack}: {title}" for row in rows for title in row.passing):
        console.print(title)
