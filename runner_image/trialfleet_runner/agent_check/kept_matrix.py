"""Measured matrices in this user's cache, one file for each version of an agent."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import canonical_json
from trialfleet_repository.cache import Cache
from trialfleet_runner.agent_check.delivery_matrix import DeliveryMatrix, key
from trialfleet_runner.agents.protocol import Identity


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
