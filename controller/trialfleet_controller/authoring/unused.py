"""Finds and removes built contexts in a store that are old and that no campaign there names.

A plan names objects by digest, so its text shows what it needs. A plan that is being made is not in the store yet.
Therefore freezing a plan checks afterwards that its contexts still exist (`local_planning.contexts_in_place`), and
`remove` reads the plans again after the deletion: one of the two detects the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from trialfleet_controller.authoring.context_cache import MANIFESTS, ContextManifest, manifest_key
from trialfleet_ledger import keys
from trialfleet_ledger.objects import object_key
from trialfleet_ledger.store.protocol import Store

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@dataclass(frozen=True, slots=True)
class Unused:
    """`at`: when it was written, by the store's clock, seconds since the epoch."""

    manifest: ContextManifest
    at: float


def unused(store: Store, *, before: float) -> list[Unused]:
    """Contexts written before that moment whose tree no plan in the store names. Files that are not manifests, and
    entries without a known age, are kept."""
    named = _planned(store)
    entries = [entry for entry in store.list(MANIFESTS) if entry.at is not None and entry.at < before]
    found = [Unused(made, entry.at or 0) for entry in entries if (made := _manifest(store, entry.key)) is not None]
    return [one for one in found if one.manifest.tree not in named]


def remove(store: Store, chosen: Sequence[Unused]) -> int:
    """Delete the contexts and those of their objects that nothing else names; returns the number of objects.
    Manifests are deleted first, so that none names a missing tree. Can be repeated after a crash at any point."""
    for one in chosen:
        store.delete(manifest_key(one.manifest.request))
    candidates = {digest for one in chosen for digest in _objects(one.manifest)}
    held = {
        digest: data
        for digest in sorted(candidates - _needed(store, candidates))
        if (data := store.get(object_key(digest))) is not None
    }
    for digest in held:
        store.delete(object_key(digest))
    returned = _needed(store, held)
    for digest in returned:
        store.create(object_key(digest), held[digest])
    return len(held) - len(returned)


def _needed(store: Store, digests: Collection[str]) -> set[str]:
    """Those that a plan or a context in the store names."""
    made = [_manifest(store, entry.key) for entry in store.list(MANIFESTS)]
    named = _planned(store).union(*(_objects(one) for one in made if one is not None))
    return named.intersection(digests)


def _planned(store: Store) -> set[str]:
    """Every digest in every plan, in any field: a plan of a later version may name objects in other fields."""
    plans = [entry.key for entry in store.list("") if keys.is_plan(entry.key)]
    return {
        match.decode() for _, raw in store.get_many(plans) if raw is not None for match in _DIGEST.findall(raw)
    }


def _objects(manifest: ContextManifest) -> set[str]:
    return {digest for digest in (manifest.tree, manifest.prompt, manifest.stripped) if digest is not None}


def _manifest(store: Store, key: str) -> ContextManifest | None:
    """The manifest; None for a foreign file, and for a manifest under the name of another request."""
    raw = store.get(key)
    try:
        made = None if raw is None else ContextManifest.model_validate_json(raw)
    except ValidationError:
        return None
    return made if made is not None and manifest_key(made.request) == key else None
