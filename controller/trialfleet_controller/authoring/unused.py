"""Finds and removes built contexts in a store that are old and that no campaign there names.

A plan names objects by digest, so its text shows what it needs. A plan that is being made is not in the store yet.
Therefore freezing a plan checks afterwards that its contexts still exist (`local_planning.contexts_in_place`), and
`remove` reads the plans again after the deletion: one of the two detects the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from trialfleet_controller.authoring.context_cache import MANIFESTS, ContextManifest, manifest_key
from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import object_key
from trialfleet_ledger.parsed_records import AbsentError
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S, WrongValue, settle_value

_MANIFEST = re.compile(manifest_key("[0-9a-f]{64}"))
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
    manifests = [_manifest(store, entry.key) for entry in store.list(MANIFESTS)]
    named = _planned(store).union(*(_objects(one) for one in manifests if one is not None))
    return named.intersection(digests)


def _planned(store: Store) -> set[str]:
    """Every digest in every plan, in any field: a plan of a later version may name objects in other fields. Raises
    `OperatorError` if a listed plan cannot be read: what it names is not known."""
    plans = [entry.key for entry in store.list("") if keys.is_plan(entry.key)]
    texts = (_plan_text(store, key, raw) for key, raw in store.get_many(plans))
    return {match.decode() for text in texts for match in _DIGEST.findall(text)}


def _plan_text(store: Store, key: str, raw: bytes | None) -> bytes:
    try:
        return settle_value(store, key, raw, _require_object, over_s=WHILE_READING_S)
    except WrongValue as error:
        raise OperatorError(
            f"{error}; nothing is deleted, because the contexts that this plan names are not known",
            where=f"{store.url}/{key}",
            hint="repeat the command; if the plan stays unreadable, remove its campaign first",
        ) from None


def _require_object(raw: bytes | None) -> bytes:
    """Raises `WrongValue` unless these are the bytes of a JSON object."""
    if raw is None:
        raise AbsentError
    try:
        if isinstance(json.loads(raw), dict):
            return raw
    except ValueError:
        pass
    raise WrongValue("not a plan")


def _objects(manifest: ContextManifest) -> set[str]:
    return {digest for digest in (manifest.tree, manifest.prompt, manifest.stripped) if digest is not None}


def _manifest(store: Store, key: str) -> ContextManifest | None:
    """The manifest; None for a foreign file, and for a manifest under the name of another request."""
    if not _MANIFEST.fullmatch(key):
        return None
    try:
        manifest = settle_value(store, key, store.get(key), _parse_manifest, over_s=WHILE_READING_S)
    except WrongValue:
        return None
    return manifest if manifest_key(manifest.request) == key else None


def _parse_manifest(raw: bytes | None) -> ContextManifest:
    """Raises `WrongValue`."""
    if raw is None:
        raise AbsentError
    try:
        return ContextManifest.model_validate_json(raw)
    except ValidationError:
        raise WrongValue("not a manifest") from None
