"""`trialfleet status`: counts, from the store alone."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from trialfleet_controller.standing import Standing, read_standing


@click.command("status")
@click.argument("campaign")
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--watch", is_flag=True, help="Again and again until it is over or Ctrl-C, without rates.")
@click.option(
    "--every", type=click.FloatRange(min=0.5), default=10, show_default=True, metavar="S", help="With --watch."
)
@click.option("--json", "as_json", is_flag=True, help="For machines; with --watch one object a line.")
def status(campaign: str, store: str | None, watch: bool, every: float, as_json: bool) -> None:
    """Count what is done, running and lost in CAMPAIGN.

    Rates before the end are those of complete blocks alone, and showing them is recorded as a look: an extension
    after it is labelled. --watch shows none: counts may be watched, results may not.
    """
    from trialfleet_controller.campaigns import find

    found = find(campaign, store)
    if watch:
        from trialfleet_controller.watching import Screen, watching

        return watching(found.store, found.name, Screen.here(as_json=as_json), every_s=every)
    standing = read_standing(found.store, found.name)
    if standing.terminal < standing.planned and standing.complete_blocks:
        from trialfleet_controller.directives import Directives

        Directives(found.store, found.name).look(
            planned=standing.planned,
            terminal=standing.terminal,
            complete_blocks=standing.complete_blocks,
            by="status",
        )
    click.echo(json.dumps(standing.as_json(), indent=1) if as_json else "\n".join(lines(standing)))
    return None


def lines(standing: Standing, *, rates: bool = True) -> list[str]:
    """The report for people."""
    return [
        f"{standing.campaign}: {standing.state}; {standing.terminal} of {standing.planned} trials",
        *([standing.banner] if standing.banner else []),
        *([f"cancelled by {standing.cancelled}"] if standing.cancelled else []),
        *(f"halted: {halt}" for halt in standing.halts),
        *(["extended after a look"] if standing.after_look else []),
        "",
        *_table(standing, rates=rates),
        "",
        *(_of_rates(standing) if rates else ()),
        *([f"attempts lost: {_counts(standing.losses)}"] if standing.losses else ["no attempt was lost"]),
        *([f"quarantined bundles: {standing.quarantined}"] if standing.quarantined else []),
    ]


def _of_rates(standing: Standing) -> list[str]:
    return [
        f"pass rates: {standing.complete_blocks} of {standing.blocks} blocks are complete; only they are used,",
        "and each rate is the mean of its tasks' rates, as in the report",
    ]


def _table(standing: Standing, *, rates: bool) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("condition", "planned", "measured", "running", "abandoned", "attempts lost", "passed")
    ]
    for name, c in standing.conditions.items():
        rate = c.interim_rate
        passed = "–" if rate is None else f"{rate:.3f} ({c.interim_passed}/{c.interim_measured})"
        planned, measured, running = str(c.planned), str(c.measured), str(c.running)
        rows.append((name, planned, measured, running, str(c.abandoned), str(c.lost_attempts), passed))
    rows = rows if rates else [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [_row(row, widths) for row in rows]


def _row(cells: Sequence[str], widths: list[int]) -> str:
    first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join((first.strip().ljust(widths[0]), *rest))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
