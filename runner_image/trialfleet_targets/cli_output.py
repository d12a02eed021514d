"""Predictions, index summaries and evaluations on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from trialfleet_targets.evaluation.metrics import measures, paired
from trialfleet_targets.index import Index
from trialfleet_targets.prediction import Symbol, Target, TargetPrediction
from trialfleet_targets.progress import screen_of
from trialfleet_targets.repository import printable

if TYPE_CHECKING:
    from rich.console import Console

    from trialfleet_targets.evaluation.run import CaseResult

SKIPPED_SHOWN = 10
_MEASURES = ("hit_at_1", "hit_at_5", "recall_at_5", "mrr")
_COLUMNS = ("method", "commits", "hit@1", "hit@5", "recall@5", "MRR", "default − this: MRR")


def show(index: Index, found: TargetPrediction, *, explain: bool, as_json: bool) -> None:
    """Print a prediction."""
    if as_json:
        click.echo(json.dumps(_document(found, index.notes), indent=1))
        return
    screen = screen_of(sys.stdout)
    if screen.is_terminal:
        _on_screen(screen, index, found, explain=explain)
    else:
        _piped(found, explain=explain)


def describe(index: Index, *, seconds: float, as_json: bool) -> None:
    """Print what an index contains."""
    document = {
        "commit": index.commit,
        "methods": list(index.methods),
        "files": dict(sorted(Counter(index.languages).items())),
        "tests": int(index.tests.sum()),
        "definitions": len(index.values["symbols.lines"]),
        "edges": index.head["edges"],
        "commits": index.head["commits"],
        "problems": dict(sorted(Counter(problem for problem in index.problems if problem).items())),
        "skipped": [[path, why] for path, why in index.skipped],
        "notes": list(index.notes),
        "seconds": round(seconds, 3),
    }
    if as_json:
        click.echo(json.dumps(document, indent=1))
        return
    for line in _described(document):
        click.echo(line)


def show_evaluation(answers: Sequence[CaseResult], *, as_json: bool) -> None:
    """All commits of all repositories together. Intervals are paired over commits within repositories."""
    rows = [_row(answers, name) for name in dict.fromkeys(name for one in answers for name in one.outcomes)]
    if as_json:
        click.echo(json.dumps({"methods": rows, "commits": [_commit(one) for one in answers]}, indent=1))
        return
    screen = screen_of(sys.stdout)
    if not screen.is_terminal:
        for cells in (_COLUMNS, *map(_cells, rows)):
            click.echo("\t".join(cells))
        return
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*_cells(row))
    screen.print(table)
    for name, count in Counter(one.case.repository for one in answers).items():
        click.echo(f"{name}: {count} commits")


def _row(answers: Sequence[CaseResult], name: str) -> dict[str, Any]:
    own, best = ([one.outcomes[method] for one in answers] for method in (name, "default"))
    found = measures(own)
    assert found is not None
    gain = paired(
        [one.reciprocal for one in best], [one.reciprocal for one in own], [one.repository for one in own]
    )
    return {"method": name, **asdict(found), "difference": None if name == "default" else asdict(gain)}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    gain = row["difference"]
    difference = "" if gain is None else f"{gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})"
    return (row["method"], str(row["cases"]), *(f"{row[name]:.3f}" for name in _MEASURES), difference)


def _commit(one: CaseResult) -> dict[str, Any]:
    ranks = {name: outcome.first for name, outcome in one.outcomes.items()}
    return {"repository": one.case.repository, "commit": one.case.commit, "files": one.files, "first": ranks}


def _described(document: dict[str, Any]) -> Iterable[str]:
    methods = " and ".join(document["methods"])
    yield f"commit {document['commit'][:12]}, read in {document['seconds']:.1f} s for {methods}"
    yield f"files: {_counts(document['files']) or 'none'}; {document['tests']} of them are tests"
    yield f"definitions: {document['definitions']}"
    if document["edges"] is not None:
        yield f"edges: {_counts(document['edges']) or 'none'}"
    yield f"history: {document['commits']} commits"
    yield from (f"note: {printable(note)}" for note in document["notes"])
    if document["problems"]:
        yield f"read in part: {_counts(document['problems'])}"
    skipped: Sequence[tuple[str, str]] = document["skipped"]
    yield from (f"left out: {printable(path)} ({printable(why)})" for path, why in skipped[:SKIPPED_SHOWN])
    if len(skipped) > SKIPPED_SHOWN:
        yield f"… and {len(skipped) - SKIPPED_SHOWN} more (--json has all)"


def _on_screen(screen: Console, index: Index, found: TargetPrediction, *, explain: bool) -> None:
    for note in index.notes:
        screen.print(Text(f"note: {printable(note)}", style="yellow"))
    if found.abstained is not None:
        screen.print(Text(_abstains(found), style="bold"))
        return
    sure = "" if found.confidence is None else f", confidence {found.confidence:.2f}"
    screen.print(Text(f"{printable(found.method)} at {found.commit[:12]}{sure}", style="dim"))
    table = Table(box=None, pad_edge=False)
    table.add_column("score", justify="right")
    table.add_column("file", overflow="fold")
    table.add_column("likely symbols", overflow="fold")
    for target in found.targets:
        table.add_row(
            f"{target.score:.3f}", Text(printable(target.path), style="bold"), Text(_symbols(target.symbols))
        )
        if explain:
            table.add_row("", Text(_parts(target), style="dim"), "")
    screen.print(table)


def _piped(found: TargetPrediction, *, explain: bool) -> None:
    if found.abstained is not None:
        click.echo(_abstains(found))
    for target in found.targets:
        cells = [f"{target.score:.3f}", printable(target.path), _symbols(target.symbols)]
        click.echo("\t".join([*cells, _parts(target)] if explain else cells))


def _document(found: TargetPrediction, notes: Sequence[str]) -> dict[str, Any]:
    """JSON document; `parts` becomes an object in the same order."""
    targets = [{**asdict(target), "parts": dict(target.parts)} for target in found.targets]
    return {**asdict(found), "targets": targets, "notes": list(notes)}


def _abstains(found: TargetPrediction) -> str:
    why = f": {printable(found.why)}" if found.why else ""
    return f"abstains ({found.abstained}){why}"


def _symbols(symbols: Sequence[Symbol]) -> str:
    return " ".join(f"{printable(symbol.name)}:{symbol.line}" for symbol in symbols)


def _parts(target: Target) -> str:
    return ", ".join(f"{printable(name)} {value:.3g}" for name, value in target.parts)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
