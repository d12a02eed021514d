"""`trialfleet gc`: what killed processes left, what finished campaigns no longer need, and the caches."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trialfleet_controller.ledger import Ledger
    from trialfleet_runner.campaign import Plan
    from trialfleet_runner.store.protocol import Store

DEAD_STORE_WRITES_S = 3600.0
CONTEXT_DAYS = 30.0


@click.command("gc")
@click.argument("campaign", required=False)
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--cache", "with_cache", is_flag=True, help="Also empty the cache (environments, sources …).")
@click.option("--results", is_flag=True, help="CAMPAIGN itself, with all its results. Needs --yes.")
@click.option(
    "--contexts", is_flag=True, help="Built contexts in --store that no campaign there names. Needs --yes."
)
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="As --results, every such campaign in --store. With --contexts: such contexts alone (default: 30).",
)
@click.option("--yes", is_flag=True, help="Delete results or contexts; without it they are only listed.")
def gc(
    campaign: str | None,
    store: str | None,
    with_cache: bool,
    results: bool,
    contexts: bool,
    older_than: float | None,
    yes: bool,
) -> None:
    """Remove what nothing needs: scratch folders of dead runners; indexes of predicted targets that were not used
    for 30 days; of CAMPAIGN, the grants of finished trials, its pods whose attempts have ended (their owner, too,
    once all trials have), and unfinished writes.

    Results are touched by --results and --older-than alone, and only with --yes; contexts by --contexts alone.
    """
    if contexts:
        _contexts(campaign, store, CONTEXT_DAYS if older_than is None else older_than, results=results, yes=yes)
        return
    _check(campaign, store, results=results, older_than=older_than)
    if results or older_than is not None:
        _results(campaign, store, older_than, yes=yes)
        return
    from trialfleet_runner.attempt.scratch import scratch_root, sweep

    dead = sweep(scratch_root())
    click.echo(f"scratch: {len(dead)} folders of dead processes removed from {scratch_root()}")
    ray = list(_dead_ray_folders())
    for folder in ray:
        shutil.rmtree(folder, ignore_errors=True)
    click.echo(f"Ray: {len(ray)} folders of dead sessions removed")
    _sweep_targets()
    if campaign is not None:
        _collect(campaign, store)
    if with_cache:
        _empty_cache()


def _check(campaign: str | None, store: str | None, *, results: bool, older_than: float | None) -> None:
    from trialfleet_runner.errors import OperatorError

    if results and campaign is None:
        raise OperatorError("of which campaign?", where="--results", hint="trialfleet gc CAMPAIGN --results")
    if older_than is not None and (store is None or campaign is not None):
        raise OperatorError(
            "it is about a whole store",
            where="--older-than",
            hint="trialfleet gc --store s3://bucket/prefix --older-than 90",
        )


def _contexts(campaign: str | None, store: str | None, days: float, *, results: bool, yes: bool) -> None:
    """Built contexts that nobody names, listed, and with `yes` deleted."""
    from trialfleet_controller.authoring.unused import remove, unused
    from trialfleet_runner.errors import OperatorError
    from trialfleet_runner.store.open import open_store

    if store is None or campaign is not None or results:
        raise OperatorError(
            "of which store? Campaigns share its contexts",
            where="--contexts",
            hint="trialfleet gc --store s3://bucket/prefix --contexts",
        )
    if days < 1:
        raise OperatorError(
            "contexts younger than a day may be on their way into a plan", where="--older-than", hint="at least 1"
        )
    kept, now = open_store(store), time.time()
    chosen = unused(kept, before=now - days * 86400)
    for one in chosen:
        made, age = one.manifest, (now - one.at) / 86400
        what = f"{made.task} {made.kind}: {sum(made.tokens.values())} tokens, by {made.author.kind} "
        what += f"{made.author.version}, written {age:.0f} days ago"
        click.echo(what if yes else f"would remove {what}")
    if not chosen:
        click.echo("nothing to remove")
    elif yes:
        objects = remove(kept, chosen)
        click.echo(f"{kept.url}: {len(chosen)} contexts and {objects} objects removed")
    else:
        click.echo("nothing was removed: say --yes, and who asks for such a context again has it written anew")


def _results(campaign: str | None, store: str | None, older_than: float | None, *, yes: bool) -> None:
    """Whole campaigns, listed, and with `yes` deleted."""
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.removal import campaigns
    from trialfleet_runner.store.open import open_store

    found = find(campaign, store) if campaign is not None else None
    kept = found.store if found is not None else open_store(store or "")
    before = time.time() - (older_than or 0) * 86400
    chosen = [
        one for one in campaigns(kept) if (found is None or one.name == found.name) and one.last_at <= before
    ]
    for one in chosen:
        days = (time.time() - one.last_at) / 86400
        what = f"{one.name}: {one.files} files, {one.size / 2**20:.1f} MiB, last driven {days:.0f} days ago"
        click.echo(what if yes else f"would remove {what}")
        if yes:
            _remove(kept, one.name)
    if not chosen:
        click.echo("nothing to remove")
    elif not yes:
        click.echo("nothing was removed: say --yes, and what was measured is gone (`trialfleet pull` copies it)")


def _remove(store: Store, campaign: str) -> None:
    from trialfleet_controller import machine
    from trialfleet_controller.ledger import Ledger
    from trialfleet_controller.removal import remove

    plan = Ledger(store, campaign).plan()
    removed = remove(
        store,
        campaign,
        by=f"gc on {machine.host()}",
        tell=lambda line: click.echo(line, err=True),
        before=lambda: _owner(plan),
    )
    click.echo(f"{campaign}: {removed} files removed")


def _owner(plan: Plan) -> None:
    """Its pods go first: what runs would write into what is being removed."""
    if plan.kubernetes is None:
        return
    from trialfleet_controller.kube.client import Client
    from trialfleet_controller.operate.leftovers import delete_owner

    owners = delete_owner(Client.connect(plan.kubernetes.context), plan)
    click.echo(f"{plan.campaign}: {owners} ConfigMaps removed, and their pods")


def _collect(campaign: str, store: str | None) -> None:
    from trialfleet_controller import keys
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.ledger import Ledger
    from trialfleet_runner.store.directory import DirectoryStore

    found = find(campaign, store)
    ledger = Ledger(found.store, found.name)
    plan = ledger.plan()
    done = set(ledger.outcome_ids())
    removed = 0
    for entry in list(found.store.list(keys.all_grants(found.name))):
        if entry.key.split("/")[-2] in done:
            found.store.delete(entry.key)
            removed += 1
    click.echo(f"{found.name}: grants of {removed} finished attempts removed")
    if plan.kubernetes is not None:
        _pods(ledger, plan, finished=len(done))
    if isinstance(found.store, DirectoryStore):
        swept = found.store.sweep(older_than_s=DEAD_STORE_WRITES_S)
        click.echo(f"{found.store.url}: {swept} unfinished writes removed")


def _pods(ledger: Ledger, plan: Plan, *, finished: int) -> None:
    from trialfleet_controller.amending import effective_reps
    from trialfleet_controller.kube.client import Client
    from trialfleet_controller.operate.leftovers import delete_ended, ended

    assert plan.kubernetes is not None
    deleted = delete_ended(Client.connect(plan.kubernetes.context), plan, ended(ledger.store, plan.campaign))
    click.echo(f"{plan.campaign}: {deleted} pods of ended attempts removed")
    if finished >= effective_reps(plan, ledger.amendments()) * len(plan.cells):
        _owner(plan)


def _sweep_targets() -> None:
    """Neither numpy nor a grammar is needed for it."""
    from trialfleet_controller.targets import sweep_trees
    from trialfleet_targets.cache import cache_folder, sweep

    folder, now = cache_folder(), time.time()
    files, size = sweep(folder, now=now)
    trees = sweep_trees(folder, now=now)
    click.echo(
        f"targets: {files} indexes ({size / 2**20:.1f} MiB) and {trees} trees, unused, removed from {folder}"
    )


def _dead_ray_folders() -> Iterator[Path]:
    from trialfleet_controller.private_ray import RAY_FOLDER, RAY_PARENT, owner_of

    for folder in sorted(RAY_PARENT.glob(f"{RAY_FOLDER}*")):
        pid = owner_of(folder)
        if pid is not None and not Path(f"/proc/{pid}").exists() and folder.stat().st_uid == os.getuid():
            yield folder


def _empty_cache() -> None:
    from trialfleet_runner.cache import cache_root
    from trialfleet_runner.removal import remove

    root = cache_root()
    if root.is_dir():
        for child in root.iterdir():
            remove(child)
    click.echo(f"cache: {root} emptied; the next run builds what it needs")
