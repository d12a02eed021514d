"""What `gc` deletes: leftovers of killed processes, what a campaign no longer needs, whole campaigns, caches.

Imports are lazy: most calls of `gc` need neither a cluster nor the predictor of edit targets.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_controller.dispatch import epochs
from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.owned_folder import OwnedFolder, find_folder
from trialfleet_ledger.parsed_records import parse_record
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.directives import Epoch
from trialfleet_ledger.store.protocol import ListedKey, Store

if TYPE_CHECKING:
    from trialfleet_controller.authoring.unused import Unused
    from trialfleet_ledger.plan import Plan


DAY_S = 86400.0
_OLD_ATTEMPT = re.compile(r".+-[0-9]+-[0-9a-f]{8}")
_OLD_CACHE = {"agent-checks", "environments", "git", "objects", "sdists", "targets", "validations", "workspaces"}
DEAD_STORE_WRITES_S = 3600.0


def remove_dead_attempts() -> str:
    """What was removed of the attempts of killed runners."""
    from trialfleet_sandbox.scratch import find_scratch, scratch_folder, sweep

    try:
        folder = find_scratch()
    except OperatorError as error:
        return f"nothing removed: {error}"
    removed = [] if folder is None else sweep(folder)
    return f"{plural(len(removed), 'folder')} of dead processes removed from {scratch_folder()}"


def remove_dead_ray_folders() -> Iterator[str]:
    """Remove this user's Ray sessions whose process is dead. What was removed, and what of that name was not
    because it lacks the marker."""
    from trialfleet_controller.hosting.private_ray import RAY_FOLDER, RAY_PARENT, owner_of
    from trialfleet_ledger.removal import remove_folder

    removed = 0
    for folder in sorted(RAY_PARENT.glob(f"{RAY_FOLDER}*")):
        pid = owner_of(folder)
        if pid is None or Path(f"/proc/{pid}").exists() or folder.lstat().st_uid != os.geteuid():
            continue
        try:
            remove_folder(OwnedFolder(folder, "ray"))
            removed += 1
        except OperatorError as error:
            yield f"nothing removed: {error}"
    yield f"{plural(removed, 'folder')} of dead sessions removed"


def remove_unused_targets() -> str:
    """What was removed from the cache of predicted targets. Neither numpy nor a grammar is needed for it."""
    from trialfleet_controller.planning.predicted_targets import sweep_trees
    from trialfleet_targets.cache import cache_folder, find_cache, sweep
    from trialfleet_targets.errors import TargetsError

    try:
        find_cache_folder()  # refuses a folder that another user can replace
        cache, now = find_cache(), time.time()
    except OperatorError as error:
        return f"nothing removed: {error}"
    except TargetsError as error:
        return f"nothing removed: {error}\n  fix: {error.hint}"
    indexes, index_bytes = (0, 0) if cache is None else sweep(cache, now=now)
    trees = 0 if cache is None else sweep_trees(cache, now=now)
    removed = f"{indexes} indexes ({index_bytes / 2**20:.1f} MiB) and {trees} trees, unused"
    return f"{removed}, removed from {cache_folder()}"


def remove_spent_grants(ledger: Ledger) -> int:
    """Remove the grants of finished trials; of how many attempts."""
    done = set(ledger.attempts.outcome_ids())
    listed = ledger.store.list(keys.all_grants(ledger.campaign))
    spent = [entry.key for entry in listed if entry.key.split("/")[-2] in done]
    for key in spent:
        ledger.store.delete(key)
    return len(spent)


def remove_ended_pods(ledger: Ledger, plan: Plan) -> tuple[int, int | None]:
    """Remove the pods of ended attempts of a campaign on Kubernetes; how many. And, once all trials are over, the
    ConfigMaps that own them; how many (None: not over)."""
    assert plan.kubernetes is not None
    from trialfleet_controller.backends.kube.client import Client
    from trialfleet_controller.operate.leftovers import delete_ended, delete_owner, ended

    client = Client.connect(plan.kubernetes.context)
    deleted = delete_ended(client, plan, ended(ledger.store, plan.campaign))
    planned = ledger.directives.planned_reps(plan).trials(plan.cell_names)
    over = sum(1 for _ in ledger.attempts.outcome_ids()) >= planned
    return deleted, delete_owner(client, plan) if over else None


def remove_unfinished_writes(store: Store) -> int | None:
    """None: only a store that is a folder has any."""
    return None if store.folder is None else store.sweep(older_than_s=DEAD_STORE_WRITES_S)


def remove_campaign(store: Store, campaign: str, *, tell: Callable[[str], None]) -> tuple[int, int | None]:
    """Remove the campaign with all its results: how many files, and how many ConfigMaps (None: not on Kubernetes).
    Can be repeated after a crash at any point.

    Pods go before the files, because they would write into what is being removed. The plan goes last: without it
    the name would be free, and what is left of the old campaign would count for a new one. Raises `OperatorError`
    when a controller drives it.
    """
    from trialfleet_controller.backends.local import machine

    ledger = Ledger(store, campaign)
    plan = ledger.plan()
    driver = epochs.claim(store, campaign, epochs.HeartbeatConfig(), tell=tell)
    ledger.directives.cancel(now=True, by=f"gc on {machine.host()}")  # from here on nobody starts anything
    driver.end()
    owners = None if plan.kubernetes is None else _remove_owner(plan)
    last = (keys.cancel(campaign, now=True), keys.cancel(campaign), keys.plan(campaign))
    found = [entry.key for entry in store.list(f"{campaign}/")]
    found.reverse()  # an epoch's record before its beat: without this, nobody would know that it has ended
    for key in [*(key for key in found if key not in last), *last]:
        store.delete(key)
    return len(found), owners


def _remove_owner(plan: Plan) -> int:
    from trialfleet_controller.backends.kube.client import Client
    from trialfleet_controller.operate.leftovers import delete_owner

    assert plan.kubernetes is not None
    return delete_owner(Client.connect(plan.kubernetes.context), plan)


def unused_contexts(store: Store, days: float) -> list[Unused]:
    """Built contexts that are older than `days` and that no plan in the store names."""
    from trialfleet_controller.authoring.unused import unused

    return unused(store, before=time.time() - days * DAY_S)


def old_campaigns(store: Store, days: float, *, name: str | None) -> list[StoredCampaign]:
    """Campaigns that were not driven for `days`; `name`: this one alone."""
    before = time.time() - days * DAY_S
    return [one for one in campaigns(store) if (name is None or one.name == name) and one.last_at <= before]


def find_cache_folder() -> OwnedFolder | None:
    """The cache that trialfleet created; None if there is none. Raises `OperatorError` if a folder of that name
    lacks its marker."""
    from trialfleet_repository.cache import cache_root

    return find_folder(cache_root(), "cache")


def empty_cache(cache: OwnedFolder) -> None:
    """Remove everything in it but the marker; the next run builds what it needs."""
    from trialfleet_ledger.removal import remove_entry

    for entry in cache.entries():
        remove_entry(cache, entry.name)


def find_old_layout() -> dict[Path, list[str]]:
    """What earlier versions left directly below the scratch root and the cache root: root -> names. These lack a
    marker, so they are named and never removed."""
    from trialfleet_repository.cache import cache_root
    from trialfleet_sandbox.scratch import LOCK, abandoned, scratch_root

    scratch, cache = scratch_root(), cache_root()
    attempts = [folder for folder in _listed(scratch) if _OLD_ATTEMPT.fullmatch(folder.name)]
    dead = [folder.name for folder in attempts if (folder / LOCK).is_file() and abandoned(folder)]
    parts = [folder.name for folder in _listed(cache) if folder.name in _OLD_CACHE and folder.is_dir()]
    named = [(scratch, dead), (cache, parts if "environments" in parts else [])]
    return {root: names for root, names in named if names}


def _listed(folder: Path) -> list[Path]:
    """This user's entries; nothing if there is no such folder or it is closed."""
    try:
        return sorted(path for path in folder.iterdir() if path.lstat().st_uid == os.geteuid())
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class StoredCampaign:
    """One campaign as a store holds it. `last_at`: when it was planned or last driven, seconds since the epoch."""

    name: str
    last_at: float
    files: int
    size: int


def campaigns(store: Store) -> list[StoredCampaign]:
    """Every campaign in the store. One listing of all its keys."""
    return [_kept(store, name, files, size) for name, (files, size) in sorted(_sizes(store.list("")).items())]


def _sizes(entries: Iterable[ListedKey]) -> dict[str, tuple[int, int]]:
    """Campaign -> (files, bytes), of those that have a plan.

    >>> _sizes([ListedKey("a/campaign.json", 2), ListedKey("a/x", 3), ListedKey("objects/1", 9)])
    {'a': (2, 5)}
    """
    sums: dict[str, tuple[int, int]] = {}
    planned: set[str] = set()
    for entry in entries:
        name = entry.key.partition("/")[0]
        files, total = sums.get(name, (0, 0))
        sums[name] = files + 1, total + entry.size
        if keys.is_plan(entry.key):
            planned.add(name)
    return {name: sums[name] for name in sorted(planned)}


def _kept(store: Store, name: str, files: int, size: int) -> StoredCampaign:
    newest = max(
        (entry.key for entry in store.list(keys.folder(name, "epochs")) if entry.key.endswith(".json")),
        key=keys.number_of,
        default=None,
    )
    driven_at = 0.0 if newest is None else _driven_at(store, newest)
    return StoredCampaign(name, max(Ledger(store, name).plan().created, driven_at), files, size)


def _driven_at(store: Store, listed: str) -> float:
    """When this epoch began. Now if its record has vanished since the listing: a campaign that changes is kept."""
    epoch = parse_record(store, listed, store.get(listed), Epoch, listed=True)
    return time.time() if epoch is None else epoch.at
