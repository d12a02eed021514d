"""What a bundle keeps of all scoring runs, and how their files are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trialfleet_runner.attempt.loss import storable
from trialfleet_runner.attempt.score_run import ControlRun, ScoreRun, ScoringRuns

NEEDED_FILES = 100  # of a verdict, at most: scoring.json has all
_NAMED = 10  # in a warning


def scoring_record(scoring: ScoringRuns) -> dict[str, object]:
    """`tests/scoring.json` of the bundle: the runs in order, and the changed files by their class."""
    cause, split = scoring.cause, scoring.split
    return {
        "runs": [{"changes": step.value, **_run_record(run)} for step, run in scoring.runs.items()],
        "decided_by": cause.decided_by.value,
        "controls": [_control_record(one) for one in scoring.controls],
        "forged": scoring.forged,
        "unsteady": cause.unsteady,
        "product": list_files(split.product, None),
        "others": list_files(split.others, None),
        "left": list_files(split.left, None),
    }


def _control_record(control: ControlRun) -> dict[str, object]:
    told = {"contradicts": control.contradicts, "silent": control.silent, "judged": control.judged}
    return {"changes": control.step.value, **told, **_run_record(control.run)}


def _run_record(run: ScoreRun) -> dict[str, object]:
    ended = run.run.exit
    return {
        "passed": run.passed,
        "ended": ended.cause,
        "code": ended.code,
        "wall_s": round(ended.wall_s, 3),
        "core_s": None if ended.core_s is None else round(ended.core_s, 3),
        "tests_passed": sum(result.outcome == "passed" for result in run.results),
        "tests": len(run.results),
    }


def list_files(paths: Iterable[str], limit: int | None = NEEDED_FILES) -> tuple[str, ...]:
    """The first paths in their order, as text that a record can hold; `limit` None: all."""
    return tuple(storable(path) for path in sorted(paths)[:limit])


def describe_left(paths: Sequence[str], count: int) -> str:
    """The warning about changes that no scoring run had. `paths`: the first of `count`.

    >>> describe_left(["vendor/a.go", "vendor/b.go"], 40)
    "not scored, because it is not the product's: vendor/a.go, vendor/b.go and 38 more"
    """
    rest = count - len(paths[:_NAMED])
    more = f" and {rest:,} more" if rest > 0 else ""
    return f"not scored, because it is not the product's: {', '.join(paths[:_NAMED])}{more}"
