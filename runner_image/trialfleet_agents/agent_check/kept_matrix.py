"""Measured matrices in this user's cache, one file for each version of an agent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from trialfleet_agents.agent_check.delivery_matrix import DeliveryMatrix, declared, key
from trialfleet_agents.protocol import Identity
from trialfleet_agents.registry import list_tool_calls
from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.deliveries import PlannedDeliveries
from trialfleet_repository.cache import Cache


def keep(cache: Cache, identity: Identity, matrix: DeliveryMatrix) -> Path:
    """Write it; what was measured before of the same version is replaced."""
    path = cache.agent_checks / f"{key(identity)}.json"
    write_whole(path, canonical_json(matrix))
    return path


def kept(cache: Cache, identity: Identity) -> DeliveryMatrix | None:
    """What was measured of this version, for an adapter that declares the same; None: nothing."""
    try:
        return DeliveryMatrix.model_validate_json((cache.agent_checks / f"{key(identity)}.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def plan_deliveries(identities: Iterable[Identity], cache: Cache) -> dict[str, PlannedDeliveries]:
    """Of every agent whose deliveries can be measured, by its digest; with what was measured on this machine."""
    return {one.digest: _deliveries(one, cache) for one in identities if one.kind in list_tool_calls()}


def _deliveries(identity: Identity, cache: Cache) -> PlannedDeliveries:
    matrix = kept(cache, identity)
    same_model = matrix is not None and matrix.model == identity.model  # an agent may say other things to another
    return PlannedDeliveries(
        kind=identity.kind,
        version=identity.version,
        declared={str(name): reaches for name, reaches in declared(identity.reach).items()},
        measured=None if matrix is None else {str(name): reaches for name, reaches in matrix.reached.items()},
        root_files=() if matrix is None else matrix.root_files,
        also_differ={str(name): found for name, found in matrix.also_differ.items()}
        if matrix and same_model
        else {},
    )
