"""The report as Markdown: the same numbers, for a pull request or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trialfleet_analysis.losses import UNASSIGNED
from trialfleet_analysis.process import MEASURES, Measure, Typical
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import NOTHING, limits, percent, plural, quantity, seconds
from trialfleet_analysis.report.hostile import markdown as text
from trialfleet_analysis.report.words import estimand
from trialfleet_analysis.tables import Use


def to_markdown(report: Report) -> str:
    """Same report, same bytes."""
    parts = (
        _head(report),
        _conditions(report),
        _cells(report),
        _endings(report),
        _losses(report),
        _metrics(report),
        _blocks(report),
        _delivery(report),
        _manifest(report),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(report: Report) -> Iterator[str]:
    progress = report.progress
    yield f"# {text(report.campaign)}"
    yield ""
    if report.banner:
        yield f"> **{text(report.banner)}**"
        yield ""
    state = "Interim" if progress.interim else "Final"
    yield (
        f"{state}: {progress.terminal:,} of {plural(progress.planned, 'trial')}, "
        f"{progress.complete_blocks} of {plural(progress.blocks, 'block')} complete; "
        f"bundles {'verified' if report.verified else 'not verified'}."
    )
    for sentence in report.answer:
        yield ""
        yield text(sentence)
    if report.cautions:
        yield ""
        yield "Before you believe it:"
        yield ""
        yield from (f"- {text(caution)}" for caution in report.cautions)


def _conditions(report: Report) -> Iterator[str]:
    yield from _heading("Conditions")
    yield f"Mean of the tasks’ pass rates on {estimand(report)}; 95% intervals do not pool counts."
    yield ""
    columns = ("condition", "mean rate", "95% interval", "passed / valid", "lost", "bounds", "first runs missing")
    yield from _table(
        columns,
        (
            (
                text(r.condition),
                percent(r.rate.estimate),
                limits(r.rate),
                f"{r.passes} / {r.valid}",
                str(r.lost),
                NOTHING if r.worst is None else f"{percent(r.worst)} to {percent(r.best)}",
                str(r.first_runs_missing),
            )
            for r in report.conditions
        ),
    )


def _cells(report: Report) -> Iterator[str]:
    yield from _heading("Cells")
    columns = ("task", "condition", "passed", "valid", "lost", "rate", "Wilson", "Clopper-Pearson", "")
    yield from _table(
        columns,
        (
            (
                text(cell.task),
                text(cell.condition),
                str(cell.passes),
                str(cell.valid),
                str(cell.lost),
                percent(cell.wilson.estimate),
                limits(cell.wilson),
                limits(cell.clopper_pearson),
                ", ".join(
                    [
                        *([] if cell.use is Use.PRIMARY else [f"apart: {cell.use.value.replace('_', ' ')}"]),
                        *([f"no covering node in {cell.coverage_none}"] if cell.coverage_none else []),
                    ]
                ),
            )
            for cell in report.cells
        ),
    )


def _endings(report: Report) -> Iterator[str]:
    yield from _heading("How trials ended")
    yield from _table(
        ("condition", "ending", "trials"),
        (
            (text(v.condition), "lost" if v.verdict is None else v.verdict.value.replace("_", " "), str(v.trials))
            for v in report.verdicts
        ),
    )
    yield ""
    yield from _table(
        ("condition", "why the agent stopped", "trials", "passed"),
        ((text(s.condition), s.stop.value.replace("_", " "), str(s.trials), str(s.passes)) for s in report.stops),
    )


def _losses(report: Report) -> Iterator[str]:
    yield from _heading("Losses")
    if not report.losses:
        yield "No attempt was lost."
        return
    yield from _table(
        ("condition", "class", "stage", "attempts"),
        (
            (
                entry.condition if entry.condition == UNASSIGNED else text(entry.condition),
                entry.loss.value.replace("_", " "),
                entry.stage.value.replace("_", " "),
                str(entry.attempts),
            )
            for entry in report.losses
        ),
    )
    yield ""
    yield from _table(
        ("condition", "informative", "started runs", "rate", "median time to loss", "abandoned trials"),
        (
            (
                text(entry.condition),
                str(entry.informative),
                str(entry.started),
                percent(entry.rate),
                quantity(entry.elapsed_s, "s"),
                str(entry.abandoned),
            )
            for entry in report.loss_rates
        ),
    )
    if report.quarantined:
        yield ""
        yield from _table(
            ("quarantined trial", "cell", "reason"),
            ((e.trial, text(f"{e.task} × {e.condition}"), text(e.reason)) for e in report.quarantined),
        )


def _metrics(report: Report) -> Iterator[str]:
    yield from _heading("What trials took")
    yield "Median over tasks of each task’s median; shares are means. n: trials with the metric."
    yield ""
    found = {(entry.measure, entry.condition): entry for entry in report.metrics}
    names = report.condition_names
    yield from _table(
        ("metric", *(text(name) for name in names)),
        (
            (
                measure.label,
                *(_typical(found[measure.key, name], measure) for name in names),
            )
            for measure in MEASURES
            if names and (measure.key, names[0]) in found
        ),
    )
    core = report.core_seconds
    yield ""
    yield (
        f"Core time per trial: median {seconds(core.median)}, mean {seconds(core.mean)} (n {core.trials}); "
        f"medians of overhead {seconds(core.overhead)}, agent {seconds(core.agent)}, tests {seconds(core.tests)}."
    )


def _typical(entry: Typical, measure: Measure) -> str:
    return f"{quantity(entry.value, measure.unit)} (n {entry.trials})"


def _blocks(report: Report) -> Iterator[str]:
    yield from _heading("Blocks")
    rows = ((str(b.block), f"{b.passes} / {b.valid}", str(b.lost)) for b in report.blocks)
    yield from _table(("block", "passed / valid", "lost"), rows)


def _delivery(report: Report) -> Iterator[str]:
    yield from _heading("Delivery")
    yield from _table(
        ("condition", "channel", "seen at the model", "not seen", "no model"),
        (
            (text(c.condition), c.channel, str(c.reached), str(c.not_reached), str(c.unknown))
            for c in report.channels
            if c.declared or c.reached
        ),
    )


def _manifest(report: Report) -> Iterator[str]:
    yield from _heading("Manifest")
    yield from _table(
        ("", "name", "value"), ((line.group, text(line.name), text(line.value)) for line in report.manifest)
    )


def _heading(title: str) -> tuple[str, ...]:
    return "", f"## {title}", ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
