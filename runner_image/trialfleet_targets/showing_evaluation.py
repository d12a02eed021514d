"""How well the methods did on a repository's own commits, for people, pipes and machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from trialfleet_targets.evaluation.metrics import Measures, Outcome, measures, paired
from trialfleet_targets.evaluation.run import Answer

_COLUMNS = ("method", "commits", "hit@1", "hit@5", "recall@5", "MRR", "default − this: MRR")


def show_evaluation(answers: Sequence[Answer], *, as_json: bool) -> None:
    """All commits of all repositories together. Intervals are paired over commits within repositories."""
    rows = [_row(answers, name) for name in dict.fromkeys(name for one in answers for name in one.outcomes)]
    if as_json:
        click.echo(json.dumps({"methods": rows, "commits": [_commit(one) for one in answers]}, indent=1))
        return
    cells = [_cells(row) for row in rows]
    screen = Console(highlight=False, markup=False)
    if not screen.is_terminal:
        for line in (_COLUMNS, *cells):
            click.echo("\t".join(line))
        return
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for line in cells:
        table.add_row(*line)
    screen.print(table)
    for name, count in _repositories(answers).items():
        click.echo(f"{name}: {count} commits")


def _row(answers: Sequence[Answer], name: str) -> dict[str, Any]:
    own = [one.outcomes[name] for one in answers]
    found = measures(own)
    assert found is not None
    return {
        "method": name,
        **asdict(found),
        "difference": None if name == "default" else _difference(answers, own),
    }


def _difference(answers: Sequence[Answer], own: Sequence[Outcome]) -> dict[str, float]:
    best = [one.outcomes["default"].reciprocal for one in answers]
    groups = [one.case.repository for one in answers]
    return asdict(paired(best, [one.reciprocal for one in own], groups))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    found = Measures(*(row[name] for name in ("cases", "hit_at_1", "hit_at_5", "recall_at_5", "mrr")))
    values = (found.hit_at_1, found.hit_at_5, found.recall_at_5, found.mrr)
    gain = row["difference"]
    said = "" if gain is None else f"{gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})"
    return (row["method"], str(found.cases), *(f"{value:.3f}" for value in values), said)


def _commit(one: Answer) -> dict[str, Any]:
    ranks = {name: outcome.first for name, outcome in one.outcomes.items()}
    return {"repository": one.case.repository, "commit": one.case.commit, "files": one.files, "first": ranks}


def _repositories(answers: Sequence[Answer]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in answers:
        counts[one.case.repository] = counts.get(one.case.repository, 0) + 1
    return counts
