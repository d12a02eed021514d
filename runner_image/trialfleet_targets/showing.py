"""Predictions and indexes on a screen, in a pipe and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trialfleet_targets.index import Index
from trialfleet_targets.prediction import Prediction, Symbol, Target
from trialfleet_targets.repository import plain

SKIPPED_SHOWN = 10


def show(index: Index, found: Prediction, *, explain: bool, as_json: bool) -> None:
    """A prediction."""
    if as_json:
        click.echo(json.dumps(_document(found, index.notes), indent=1))
        return
    screen = Console(highlight=False, markup=False)
    if screen.is_terminal:
        _on_screen(screen, index, found, explain=explain)
    else:
        _piped(found, explain=explain)


def describe(index: Index, *, seconds: float, as_json: bool) -> None:
    """What was read."""
    document = {
        "commit": index.commit,
        "methods": list(index.methods),
        "files": dict(sorted(Counter(index.languages).items())),
        "tests": int(index.tests.sum()),
        "definitions": int(index.values["definitions.starts"][-1]),
        "edges": _edges(index),
        "commits": len(index.values["history.sha"]),
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


def _edges(index: Index) -> dict[str, int] | None:
    """By kind; None when no method of the index follows them."""
    try:
        return dict(sorted(Counter(edge.kind.value for edge in index.edges).items()))
    except KeyError:
        return None


def _described(document: dict[str, Any]) -> Iterable[str]:
    yield f"commit {document['commit'][:12]}, read in {document['seconds']:.1f} s for {_and(document['methods'])}"
    yield f"files: {_counts(document['files']) or 'none'}; {document['tests']} of them are tests"
    yield f"definitions: {document['definitions']}"
    if document["edges"] is not None:
        yield f"edges: {_counts(document['edges']) or 'none'}"
    yield f"history: {document['commits']} commits"
    yield from (f"note: {plain(note)}" for note in document["notes"])
    if document["problems"]:
        yield f"read in part: {_counts(document['problems'])}"
    skipped: Sequence[tuple[str, str]] = document["skipped"]
    yield from (f"left out: {plain(path)} ({plain(why)})" for path, why in skipped[:SKIPPED_SHOWN])
    if len(skipped) > SKIPPED_SHOWN:
        yield f"… and {len(skipped) - SKIPPED_SHOWN} more (--json has all)"


def _on_screen(screen: Console, index: Index, found: Prediction, *, explain: bool) -> None:
    for note in index.notes:
        screen.print(Text(f"note: {plain(note)}", style="yellow"))
    if found.abstained is not None:
        screen.print(Text(f"{_abstains(found)}", style="bold"))
        return
    sure = "" if found.confidence is None else f", confidence {found.confidence:.2f}"
    screen.print(Text(f"{plain(found.method)} at {found.commit[:12]}{sure}", style="dim"))
    table = Table(box=None, pad_edge=False)
    table.add_column("score", justify="right")
    table.add_column("file", overflow="fold")
    table.add_column("likely symbols", overflow="fold")
    for target in found.targets:
        table.add_row(_score(target.score), Text(plain(target.path), style="bold"), Text(_symbols(target.symbols)))
        if explain:
            table.add_row("", Text(_parts(target), style="dim"), "")
    screen.print(table)


def _piped(found: Prediction, *, explain: bool) -> None:
    if found.abstained is not None:
        click.echo(_abstains(found))
    for target in found.targets if found.abstained is None else ():
        cells = [_score(target.score), plain(target.path), _symbols(target.symbols)]
        click.echo("\t".join([*cells, _parts(target)] if explain else cells))


def _document(found: Prediction, notes: Sequence[str]) -> dict[str, Any]:
    """`parts` as an object, in its order."""
    targets = [{**asdict(target), "parts": dict(target.parts)} for target in found.targets]
    return {**asdict(found), "targets": targets, "notes": list(notes)}


def _abstains(found: Prediction) -> str:
    why = f": {plain(found.why)}" if found.why else ""
    return f"abstains ({found.abstained}){why}"


def _symbols(symbols: Sequence[Symbol]) -> str:
    return " ".join(f"{plain(symbol.name)}:{symbol.line}" for symbol in symbols)


def _parts(target: Target) -> str:
    return ", ".join(f"{plain(name)} {value:.3g}" for name, value in target.parts)


def _score(score: float) -> str:
    return f"{score:.3f}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
