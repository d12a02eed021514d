"""`trialfleet run`: runs a campaign file and writes its report."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from trialfleet_controller.commands.options import HostOptions, host_options, mirror_option, report_options
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.operator_errors import operator_error
from trialfleet_runner.cli import load_command

if TYPE_CHECKING:
    from trialfleet_controller.campaigns import CampaignReference
    from trialfleet_controller.planning.dry_run import DryRunAgent
    from trialfleet_ledger.ledger import Ledger


@click.command("run")
@click.argument("campaign_file", type=click.Path(path_type=Path))
@click.option("--store", metavar="URL", help="Use this store instead of the campaign file's.")
@click.option(
    "--agent",
    "dry_run",
    type=click.Choice(["search", "oracle", "nop"]),
    help="Dry run: this agent, which needs no key, runs in place of the file's. Labelled as such, in a store of "
    "its own: <store>/_dry-run-<agent>.",
)
@mirror_option
@report_options
@host_options
@click.option(
    "--no-stop",
    is_flag=True,
    help="Go on when a declared look finds a gain too unlikely. What it found is recorded.",
)
@click.option(
    "--until-decided",
    is_flag=True,
    help="Go on beyond the file's reps until a block decides; for campaigns with `stop: {anytime: …}`.",
)
@click.option(
    "--max-reps", type=click.IntRange(1), metavar="N", help="With --until-decided: at most so many reps."
)
@click.option("--json", "as_json", is_flag=True, help="Print progress as JSON lines.")
def run(
    campaign_file: Path,
    store: str | None,
    dry_run: DryRunAgent | None,
    mirror: tuple[str, ...],
    out: str | None,
    no_report: bool,
    no_stop: bool,
    until_decided: bool,
    max_reps: int | None,
    as_json: bool,
    keep_failed: int,
    **asked: Unpack[HostOptions],
) -> None:
    """Run the campaign of CAMPAIGN_FILE to its end and write the report.

    An existing campaign is continued if its file means the same. Exits 3 if the campaign is over and not every
    planned trial is measured.
    """
    from trialfleet_controller.backends.local.capacity import UNBOUNDED, local_slots
    from trialfleet_controller.campaigns import from_file
    from trialfleet_controller.dispatch.drive_options import DriveOptions
    from trialfleet_controller.hosting.local_drive import drive, finish
    from trialfleet_controller.hosting.place import Hosts, early_ray
    from trialfleet_controller.local_planning import freeze, make_plan
    from trialfleet_tasks.taskfile import campaign_tasks

    if until_decided != (max_reps is not None):
        raise OperatorError(
            "one says to go on, the other how far",
            where="--max-reps" if until_decided else "--until-decided",
            hint="give both: --until-decided --max-reps 60",
        )
    found = from_file(campaign_file, store, dry_run)
    assert found.file is not None
    local = found.file.spec.kubernetes is None
    hosts = Hosts.asked(**asked, local=local)
    limits = found.file.spec.limits
    if local:
        local_slots(limits.frozen(), limits.parallel or UNBOUNDED)  # a trial that cannot fit is refused first
    with early_ray(hosts, found.file.spec, len(campaign_tasks(found.file.loaded))) as hosts:
        made = make_plan(found.file, found.store, mirror, origin=found.origin)
        ledger = found.ledger
        plan, new = freeze(ledger, made)
        if plan.dry_run and plan.banner:
            click.echo(plan.banner, err=True)
        if not new:
            click.echo(f"{plan.title} exists: continuing it", err=True)
        options = DriveOptions.of(made, keep_failed=keep_failed, obey_futility=not no_stop)
        ending = drive(
            ledger,
            plan,
            options,
            as_json=as_json,
            address=found.address,
            hosts=hosts,
            amend=lambda: _grow(ledger, max_reps),
        )
    arguments = _named_dry_run(found, campaign_file) if dry_run else named(str(campaign_file), store)
    conclude(ending.value, arguments, as_json=as_json, out=out, report=not no_report)
    finish(ending, found.store.url, found.name)


def _grow(ledger: Ledger, most_reps: int | None) -> None:
    from trialfleet_controller.planning.amending import described, grow_until_decided

    amendment = None if most_reps is None else grow_until_decided(ledger, most_reps)
    if amendment is not None:
        click.echo(described(amendment), err=True)


def named(campaign: str, store: str | None) -> tuple[str, ...]:
    """The arguments that name a campaign, as the user gave them: a campaign file holds more about its store than a
    URL does."""
    return (campaign,) if store is None else (campaign, "--store", store)


def _named_dry_run(found: CampaignReference, campaign_file: Path) -> tuple[str, ...]:
    """As `named`: its folder, or the campaign file with the store of the dry run."""
    folder = Path(found.store.url, found.name)
    return (os.path.relpath(folder),) if folder.is_dir() else named(str(campaign_file), found.store.url)


def conclude(ending: str, campaign: tuple[str, ...], *, as_json: bool, out: str | None, report: bool) -> None:
    """Print how the campaign ended, and report unless it was interrupted. `campaign`: see `named`."""
    if as_json:
        click.echo(printable_json({"event": "ended", "ending": ending}))
    if report and ending != "interrupted":
        # Standard output holds one JSON object per line and nothing else.
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            try:
                _report(campaign, out)
            except Exception as error:  # the caller still reports how the campaign ended, which matters more
                if (known := operator_error(error)) is None:
                    raise
                click.echo(f"no report: {known}", err=True)


def _report(campaign: tuple[str, ...], out: str | None) -> None:
    """Call the report command of the package that registers it."""
    command = load_command("report")
    if command is not None:
        words = [*campaign, "--format", "brief", *(["--out", out] if out else [])]
        command.main(words, prog_name="report", standalone_mode=False)
        return
    again = shlex.join(("trialfleet", "report", *campaign))
    click.echo(f"no report here: this installation has no analysis; elsewhere, `{again}`", err=True)
