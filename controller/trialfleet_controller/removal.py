"""Removing whole campaigns from a store, with all their results: by name, or by age."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trialfleet_controller import epochs, keys
from trialfleet_controller.ledger import Ledger
from trialfleet_runner.campaign import Epoch
from trialfleet_runner.store.protocol import Entry, Store


@dataclass(frozen=True, slots=True)
class Kept:
    """One campaign as a store holds it. `last_at`: when it was planned or last driven, seconds since the epoch."""

    name: str
    last_at: float
    files: int
    size: int


def campaigns(store: Store) -> list[Kept]:
    """Every campaign in the store. One listing of all its keys."""
    return [_kept(store, name, files, size) for name, (files, size) in sorted(_sizes(store.list("")).items())]


def _sizes(entries: Iterable[Entry]) -> dict[str, tuple[int, int]]:
    """Campaign -> (files, bytes), of those that have a plan.

    >>> _sizes([Entry("a/campaign.json", 2), Entry("a/x", 3), Entry("objects/1", 9)])
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


def _kept(store: Store, name: str, files: int, size: int) -> Kept:
    newest = max(
        (entry.key for entry in store.list(keys.folder(name, "epochs")) if entry.key.endswith(".json")),
        key=keys.number_of,
        default=None,
    )
    raw = store.get(newest) if newest is not None else None
    driven_at = Epoch.model_validate_json(raw).at if raw is not None else 0.0
    return Kept(name, max(Ledger(store, name).plan().created, driven_at), files, size)


def remove(
    store: Store, campaign: str, *, by: str, tell: Callable[[str], None], before: Callable[[], None] = lambda: None
) -> int:
    """Deletes all of it; how many files. Can be repeated after a crash at any point. `before` is called once
    nobody else drives it.

    Raises `OperatorError` when a controller drives it. The plan goes last: without it the name would be free, and
    what is left of the old campaign would count for a new one.
    """
    driver = epochs.claim(store, campaign, epochs.Pulse(), tell=tell)
    Ledger(store, campaign).cancel(now=True, by=by)  # from here on nobody starts anything
    driver.end()
    before()
    last = (keys.cancel(campaign, now=True), keys.cancel(campaign), keys.plan(campaign))
    found = [entry.key for entry in store.list(f"{campaign}/")]
    found.reverse()  # an epoch's record before its beat: without this, nobody would know that it has ended
    for key in [*(key for key in found if key not in last), *last]:
        store.delete(key)
    return len(found)
