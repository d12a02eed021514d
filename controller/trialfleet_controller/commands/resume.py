"""`trialfleet resume`: go on after a stop, with more reps or without a halt."""

from __future__ import annotations

import click

from trialfleet_controller.commands.run import conclude


@click.command("resume")
@click.argument("campaign")
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--reps", type=click.IntRange(1), help="Amend the plan to so many reps first.")
@click.option("--lift", is_flag=True, help="Lift the halts in force first.")
@click.option("--parallel", type=click.IntRange(1), help="Another width, for this time.")
@click.option("--out", metavar="DIR", help="Folder for the report. [default: beside the campaign]")
@click.option("--no-report", is_flag=True, help="Leave the report out.")
@click.option("--no-ray", is_flag=True, help="Start runners directly instead of through Ray.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines.")
def resume(
    campaign: str,
    store: str | None,
    reps: int | None,
    lift: bool,
    parallel: int | None,
    out: str | None,
    no_report: bool,
    no_ray: bool,
    as_json: bool,
) -> None:
    """Run what is missing or was lost of CAMPAIGN, never a failure again."""
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.driving import drive, finish
    from trialfleet_controller.ledger import Ledger

    found = find(campaign, store)
    ledger = Ledger(found.store, found.name)
    plan = ledger.plan()
    if parallel is not None:
        plan = plan.model_copy(update={"parallel": parallel})
    ending = drive(
        ledger, plan, as_json=as_json, use_ray=not no_ray, amend=lambda: _amend(ledger, reps, lift=lift)
    )
    conclude(ending.value, found.store.url, found.name, as_json=as_json, out=out, report=not no_report)
    finish(ending, found.store.url, found.name)


def _amend(ledger: object, reps: int | None, *, lift: bool) -> None:
    from trialfleet_controller.driving import effective_reps
    from trialfleet_controller.ledger import Ledger
    from trialfleet_runner.errors import OperatorError

    assert isinstance(ledger, Ledger)
    plan, amendments = ledger.plan(), ledger.amendments()
    now = effective_reps(plan, amendments)
    if reps is not None and reps <= now:
        raise OperatorError(
            f"the campaign has {now} reps already",
            where="--reps",
            hint="reps only grow: what is measured stays",
        )
    lifts = tuple(halt.number for halt in ledger.halts()) if lift else ()
    if lift and not lifts:
        click.echo("no halt is in force", err=True)
    if reps is None and not lifts:
        return
    # A finished campaign has been reported: extending it is a decision after a look, recorded or not.
    finished = sum(1 for _ in ledger.outcome_ids()) >= now * len(plan.cells)
    after_look = reps is not None and (finished or ledger.looks() > 0)
    amendment = ledger.amend(reps=reps, after_look=after_look, lifts=lifts)
    note = " (after a look: the report says so)" if amendment.after_look else ""
    what = [f"{reps} reps{note}"] if reps is not None else []
    click.echo(f"amended: {', '.join([*what, *(f'halt {n} lifted' for n in lifts)])}", err=True)
