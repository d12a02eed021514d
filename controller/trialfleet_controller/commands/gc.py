"""`trialfleet gc`: what killed processes left, what finished campaigns no longer need, and the caches."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

DEAD_STORE_WRITES_S = 3600.0


@click.command("gc")
@click.argument("campaign", required=False)
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--cache", "with_cache", is_flag=True, help="Also empty the cache (environments, sources …).")
def gc(campaign: str | None, store: str | None, with_cache: bool) -> None:
    """Remove what nothing needs: scratch folders of dead runners; of CAMPAIGN, the grants of finished trials and
    unfinished writes. Results are never touched."""
    from trialfleet_runner.attempt.scratch import scratch_root, sweep

    dead = sweep(scratch_root())
    click.echo(f"scratch: {len(dead)} folders of dead processes removed from {scratch_root()}")
    ray = list(_dead_ray_folders())
    for folder in ray:
        shutil.rmtree(folder, ignore_errors=True)
    click.echo(f"Ray: {len(ray)} folders of dead sessions removed")
    if campaign is not None:
        _collect(campaign, store)
    if with_cache:
        _empty_cache()


def _collect(campaign: str, store: str | None) -> None:
    from trialfleet_controller import keys
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.ledger import Ledger
    from trialfleet_runner.store.directory import DirectoryStore

    found = find(campaign, store)
    ledger = Ledger(found.store, found.name)
    ledger.plan()
    done = set(ledger.outcome_ids())
    removed = 0
    for entry in list(found.store.list(keys.all_grants(found.name))):
        if entry.key.split("/")[-2] in done:
            found.store.delete(entry.key)
            removed += 1
    click.echo(f"{found.name}: grants of {removed} finished attempts removed")
    if isinstance(found.store, DirectoryStore):
        swept = found.store.sweep(older_than_s=DEAD_STORE_WRITES_S)
        click.echo(f"{found.store.url}: {swept} unfinished writes removed")


def _dead_ray_folders() -> Iterator[Path]:
    from trialfleet_controller.local import RAY_FOLDER, RAY_PARENT, owner_of

    for folder in sorted(RAY_PARENT.glob(f"{RAY_FOLDER}*")):
        pid = owner_of(folder)
        if pid is not None and not Path(f"/proc/{pid}").exists() and folder.stat().st_uid == os.getuid():
            yield folder


def _empty_cache() -> None:
    from trialfleet_runner.attempt.scratch import remove
    from trialfleet_runner.cache import cache_root

    root = cache_root()
    if root.is_dir():
        for child in root.iterdir():
            remove(child)
    click.echo(f"cache: {root} emptied; the next run builds what it needs")
