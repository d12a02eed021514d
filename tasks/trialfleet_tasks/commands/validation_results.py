"""What a terminal shows of validations: a table, each problem with the end of its output, a line for each cause of
warnings. All of it is in a log for each task."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.display_text import one_line, visible
from trialfleet_ledger.screen import Screen
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.record import Problem, Validation

TAIL_LINES = 20
EXAMPLES = 3
_COUNTS = ("fail→pass", "pass→pass", "runs")
_RIGHT = (*_COUNTS, "seconds")


def _table(results: Sequence[Validation]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("task", "result", *_COUNTS, "control", "anchor", "covered by", "seconds"):
        table.add_column(title, justify="right" if title in _RIGHT else "left")
    for result in results:
        table.add_row(*(Text(one_line(cell)) for cell in _row(result)), style=None if result.holds else "red")
    return table


def print_results(
    found: Sequence[tuple[LoadedTask, Validation]], sandbox: Sandbox, *, logs: Path, verbose: bool
) -> None:
    """Print them, and write `logs/<task>.log` for each task that has something to say."""
    console = Screen(width=None if sys.stdout.isatty() else 180)
    console.print(_table([result for _, result in found]))
    for task, result in found:
        log = _write_log(result, logs)
        for problem in result.problems:
            console.print(Text(f"\n{task.where}: {_problem(problem)}"), style="red")
            if problem.output.strip():
                console.print(Text(f"{output_end(problem.output)}\n  all of it: {log}"))
        if result.holds and result.must_fail is None:
            console.print(Text(f"{task.id}: control of passes: {one_line(result.control)}"), style="yellow")
        lines = list(map(one_line, result.warnings)) if verbose else causes(result.warnings)
        for line in lines:
            console.print(Text(f"{task.id}: {line}"), style="yellow")
        if len(lines) < len(result.warnings):
            console.print(Text(f"{task.id}: all {len(result.warnings)} warnings: --verbose, or {log}"))
    for warning in sandbox.warnings:
        console.print(Text(f"{sandbox.name}: {warning}"), style="yellow")


def causes(warnings: Iterable[str]) -> list[str]:
    """One line for all warnings that say the same of something, the most frequent first.

    >>> causes(["a.py: excluded", "strip_extra 'x' removes nothing", "b.py: excluded"])
    ['excluded: a.py, b.py', "strip_extra 'x' removes nothing"]
    """
    about: dict[str, list[str]] = {}
    for warning in warnings:
        what, colon, cause = warning.rpartition(": ")
        about.setdefault(one_line(cause if colon else warning), []).extend([one_line(what)] if colon else [])
    lines: list[str] = []
    for cause, named in sorted(about.items(), key=lambda item: -len(item[1])):
        more = f" and {len(named) - EXAMPLES} more" if len(named) > EXAMPLES else ""
        lines.append(f"{cause}: {', '.join(named[:EXAMPLES])}{more}" if named else cause)
    return lines


def output_end(output: str) -> str:
    """The last lines, without what could move a terminal's cursor."""
    return "\n".join("  | " + visible(line, 300) for line in output.rstrip().splitlines()[-TAIL_LINES:])


def _problem(problem: Problem) -> str:
    way_out = f"\n  fix: {problem.hint}" if problem.hint else ""
    return f"{visible(problem.message, 1000)}{way_out}"


def _write_log(result: Validation, logs: Path) -> Path | None:
    if not result.problems and not result.warnings:
        return None
    log = logs / f"{result.task}.log"
    logs.mkdir(parents=True, exist_ok=True)
    said = [f"{problem.kind.value}: {_problem(problem)}\n\n{problem.output}" for problem in result.problems]
    write_whole(log, "\n".join([*said, *result.warnings, ""]).encode(errors="replace"))
    return log


def _row(result: Validation) -> tuple[str, ...]:
    covering = {row.context: row.node for row in result.coverage if row.path in result.targets and row.node}
    verdict = result.problems[0].kind.value if result.problems else result.status.value
    return (
        result.task,
        verdict,
        str(len(result.fail_to_pass)),
        str(len(result.pass_to_pass)),
        str(result.repeats),
        result.control.partition(" ")[0],
        result.anchor or "-",
        ", ".join(f"{name}: {node}" for name, node in covering.items()) or "-",
        f"{result.seconds:.1f}",
    )
