"""Fixes of validated tasks with honest work around them: the verdict is that of the fix alone, and none is forged.

The shipped tasks whose trees are on package indexes, or those of `$TRIALFLEET_BENCH_TASKS`: task files, separated
by ":". `$TRIALFLEET_BENCH_HONEST` chooses how many tasks of each file at most, `$TRIALFLEET_BENCH_NOISES` how many
sets of other work are put around each fix, `$TRIALFLEET_BENCH_PROCESSES` how many tasks are scored at once. Tasks
are validated again, unless `$TRIALFLEET_BENCH_KEPT` is set: then validations that this machine kept serve.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.honest_tasks import HonestRow, HonestTask
from trialfleet_tasks.taskfile import load_task_file

ROOT = Path(__file__).parents[2]
MOST = int(os.environ.get("TRIALFLEET_BENCH_HONEST", "1000"))
NOISES = int(os.environ.get("TRIALFLEET_BENCH_NOISES", "2"))
GIVEN = [Path(each) for each in os.environ.get("TRIALFLEET_BENCH_TASKS", "").split(":") if each]
SHIPPED = [*sorted((ROOT / "tasks/quickstart/tasks").glob("*.yaml")), ROOT / "examples/shop/task.yaml"]
FRESH = not os.environ.get("TRIALFLEET_BENCH_KEPT")
PROCESSES = int(os.environ.get("TRIALFLEET_BENCH_PROCESSES", "2"))


def score_task(file: Path, number: int) -> tuple[list[HonestRow], str | None]:
    """Rows, or why the task could not be scored."""
    folder = Path(tempfile.mkdtemp(prefix="trialfleet-bench-"))
    task = HonestTask(folder, given=load_task_file(file).tasks[number], fresh=FRESH)
    try:
        return list(task.rows("bench", noises=NOISES)), None
    except Exception as error:
        return [], f"{file.stem} {task.given.id}: {type(error).__name__}: {str(error)[:200]}"
    finally:
        shutil.rmtree(task.scratch.parent, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def scored_tasks() -> Iterator[tuple[list[HonestRow], str | None]]:
    """Each task is printed as soon as it is known, for runs that do not reach their end."""
    chosen = [(file, n) for file in GIVEN or SHIPPED for n in range(len(load_task_file(file).tasks))[:MOST]]
    with ProcessPoolExecutor(PROCESSES) as pool:
        for rows, problem in pool.map(score_task, *zip(*chosen, strict=True)):
            print("\n".join(_lines(rows, problem)), flush=True)
            yield rows, problem


def _lines(rows: list[HonestRow], problem: str | None) -> Iterator[str]:
    if problem is not None:
        yield problem
    for task, changes in groupby(rows, key=lambda row: row.task):
        yield f"{task}: {', '.join(f'{n} {name}' for name, n in Counter(row.verdict for row in changes).items())}"
    yield from (f"  {row.title}" for row in rows if row.again is not None)
    yield from (f"  {row.task} {row.what} needs {', '.join(row.needed)}" for row in rows if row.needed)


def measure() -> list[Figure]:
    ended = list(scored_tasks())
    rows = [row for some, _ in ended for row in some]
    tasks = len({row.task for row in rows})
    verdicts = ", ".join(f"{n} {name}" for name, n in Counter(row.verdict for row in rows).most_common())
    needed = [row.task for row in rows if row.needed]
    return [
        Figure("honest changes scored", len(rows), "", note=f"of {tasks} tasks: {verdicts}"),
        Figure("  whose verdict is not that of the fix alone", sum(not row.agrees for row in rows), "", goal=0),
        Figure(
            "  whose verdict is, when scored again", sum(row.agrees and row.again is not None for row in rows), ""
        ),
        Figure("  forged", sum(row.verdict == "forged" for row in rows), "", goal=0),
        Figure("  that pass with other files only", len(needed), "", note=", ".join(sorted(set(needed))[:10])),
        Figure("  tasks that could not be scored", sum(why is not None for _, why in ended), ""),
    ]
