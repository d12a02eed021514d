"""`trialfleet gc`: removes what killed processes left, what finished campaigns no longer need, and caches."""

from __future__ import annotations

import shlex
import time

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.waiting import waiting_for

CONTEXT_DAYS = 30.0


@click.command("gc")
@click.argument("campaign", required=False)
@store_option
@click.option(
    "--cache", "with_cache", is_flag=True, help="Also empty the cache (environments, sources, …). Requires --yes."
)
@click.option("--results", is_flag=True, help="Remove CAMPAIGN with all its results. Requires --yes.")
@click.option(
    "--contexts",
    is_flag=True,
    help="Remove built contexts in --store that no campaign there uses. Requires --yes.",
)
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Remove every campaign in --store that was last driven more than DAYS days ago. Requires --yes. With "
    "--contexts: the minimum age of a context. [default: 30]",
)
@click.option(
    "--yes", is_flag=True, help="Delete results, contexts or the cache. Without it they are only listed."
)
def gc(
    campaign: str | None,
    store: str | None,
    with_cache: bool,
    results: bool,
    contexts: bool,
    older_than: float | None,
    yes: bool,
) -> None:
    """Remove data that is no longer needed.

    Always: scratch folders of dead runners, folders of dead Ray sessions, and indexes of predicted targets that
    were not used for 30 days. With CAMPAIGN: the grants of its finished trials, pods whose attempts have ended
    (and their owning ConfigMap once every trial has ended), and unfinished writes in a directory store.

    Only --results and --older-than remove results, only --contexts removes contexts, and only --cache empties the
    cache; all require --yes.

    Scratch folders and the cache are folders that trialfleet creates and marks below $TRIALFLEET_SCRATCH and
    $TRIALFLEET_CACHE. Nothing else in those two is deleted, and nothing in a folder without the marker.
    """
    with waiting_for("files to be looked at and removed"):
        if contexts:
            days = CONTEXT_DAYS if older_than is None else older_than
            _contexts(campaign, store, days, results=results, yes=yes)
            return
        _check(campaign, store, results=results, older_than=older_than)
        if results or older_than is not None:
            _results(campaign, store, older_than or 0, yes=yes)
            return
        _leftovers()
        if campaign is not None:
            _campaign(campaign, store)
        if with_cache:
            _cache(yes=yes)


def _check(campaign: str | None, store: str | None, *, results: bool, older_than: float | None) -> None:
    from trialfleet_ledger.errors import OperatorError

    if results and campaign is None:
        raise OperatorError("no campaign is given", where="--results", hint="trialfleet gc CAMPAIGN --results")
    if older_than is not None and (store is None or campaign is not None):
        raise OperatorError(
            "needs --store and no CAMPAIGN, because it applies to a whole store",
            where="--older-than",
            hint="trialfleet gc --store s3://bucket/prefix --older-than 90",
        )


def _contexts(campaign: str | None, store: str | None, days: float, *, results: bool, yes: bool) -> None:
    from trialfleet_controller.authoring.unused import remove
    from trialfleet_controller.garbage import DAY_S, unused_contexts
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.store.open import open_store

    if store is None or campaign is not None or results:
        raise OperatorError(
            "needs --store alone, because the campaigns of a store share its contexts",
            where="--contexts",
            hint="trialfleet gc --store s3://bucket/prefix --contexts",
        )
    if days < 1:
        raise OperatorError(
            "a context younger than one day may be about to be planned with",
            where="--older-than",
            hint="give 1 or more",
        )
    opened = open_store(store)
    chosen = unused_contexts(opened, days)
    for one in chosen:
        made, age = one.manifest, (time.time() - one.at) / DAY_S
        what = f"{made.task} {made.kind}: {plural(sum(made.tokens.values()), 'token')}, by {made.author.kind} "
        what += f"{made.author.version}, written {age:.0f} days ago"
        click.echo(what if yes else f"would remove {what}")
    if not chosen:
        click.echo("nothing to remove")
    elif yes:
        objects = remove(opened, chosen)
        click.echo(f"{opened.url}: {plural(len(chosen), 'context')} and {plural(objects, 'object')} removed")
    else:
        click.echo("nothing was removed: pass --yes to delete these contexts; they are rebuilt on next use")


def _results(campaign: str | None, store: str | None, days: float, *, yes: bool) -> None:
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.garbage import DAY_S, old_campaigns, remove_campaign
    from trialfleet_ledger.store.open import open_store

    found = None if campaign is None else find(campaign, store)
    opened = open_store(store or "") if found is None else found.store
    chosen = old_campaigns(opened, days, name=None if found is None else found.name)
    for one in chosen:
        age = (time.time() - one.last_at) / DAY_S
        what = (
            f"{one.name}: {plural(one.files, 'file')}, {one.size / 2**20:.1f} MiB, last driven {age:.0f} days ago"
        )
        click.echo(what if yes else f"would remove {what}")
        if yes:
            files, owners = remove_campaign(opened, one.name, tell=lambda line: click.echo(line, err=True))
            _say_owners(one.name, owners)
            click.echo(f"{one.name}: {plural(files, 'file')} removed")
    if not chosen:
        click.echo("nothing to remove")
    elif not yes:
        click.echo("nothing was removed: pass --yes to delete these results (`trialfleet pull` copies them first)")


def _cache(*, yes: bool) -> None:
    from trialfleet_controller.garbage import empty_cache, find_cache_folder

    cache = find_cache_folder()
    entries = [] if cache is None else [*cache.entries()]
    if cache is None or not entries:
        click.echo("cache: nothing to remove")
    elif yes:
        empty_cache(cache)
        click.echo(f"cache: {cache.path} emptied; the next run builds what it needs")
    else:
        for entry in entries:
            click.echo(f"would remove {entry}")
        click.echo("cache: nothing was removed: pass --yes to empty it; the next run builds what it needs")


def _leftovers() -> None:
    from trialfleet_controller.garbage import (
        find_old_layout,
        remove_dead_attempts,
        remove_dead_ray_folders,
        remove_unused_targets,
    )

    click.echo(f"scratch: {remove_dead_attempts()}")
    for line in remove_dead_ray_folders():
        click.echo(f"Ray: {line}")
    click.echo(f"targets: {remove_unused_targets()}")
    for root, names in find_old_layout().items():
        paths = " ".join(shlex.quote(str(root / name)) for name in names)
        click.echo(f"{root}: left as an earlier version made it, without a marker; to remove it: rm -r -- {paths}")


def _campaign(campaign: str, store: str | None) -> None:
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.garbage import remove_ended_pods, remove_spent_grants, remove_unfinished_writes

    found = find(campaign, store)
    ledger = found.ledger
    plan = ledger.plan()
    click.echo(f"{found.name}: grants of {plural(remove_spent_grants(ledger), 'finished attempt')} removed")
    if plan.kubernetes is not None:
        pods, owners = remove_ended_pods(ledger, plan)
        click.echo(f"{found.name}: {plural(pods, 'pod')} of ended attempts removed")
        _say_owners(found.name, owners)
    if (writes := remove_unfinished_writes(found.store)) is not None:
        click.echo(f"{found.store.url}: {writes} unfinished writes removed")


def _say_owners(campaign: str, owners: int | None) -> None:
    if owners is not None:
        click.echo(f"{campaign}: {owners} ConfigMaps removed, and their pods")
