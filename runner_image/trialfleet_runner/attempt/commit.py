"""The runner's conditional writes: start, patch, bundle, end.

All carry the intent's nonce: they answer that intent and no other. Two runners of one intent differ by process and
time, so each knows its own write again.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.machine import boot_id, machine_id
from trialfleet_ledger.records.attempt import End, Patch, Start
from trialfleet_ledger.records.grants import Grants, PutGrant
from trialfleet_ledger.records.verdicts import Loss, Scored
from trialfleet_ledger.store import grants as store


def claim(grants: Grants, *, scratch: Path, isolation: str) -> str | None:
    """Write start.json; return its SHA-256. None: another runner has this attempt; leave without a trace."""
    start = Start(
        plan=grants.plan,
        trial=grants.trial.id,
        attempt=grants.attempt,
        nonce=grants.intent_nonce,
        at=time.time(),
        host=socket.gethostname(),
        boot_id=boot_id(),
        pid=os.getpid(),
        scratch=str(scratch),
        isolation=isolation,
        image=os.environ.get("TRIALFLEET_IMAGE"),
        pod=os.environ.get("TRIALFLEET_POD_UID"),
        node=os.environ.get("TRIALFLEET_NODE"),
        machine=machine_id(),
    )
    raw = canonical_json(start)
    return sha256(raw) if _create(grants, "start", grants.start, raw) else None


def leave_patch(grants: Grants, patch: Patch) -> str:
    """Write patch.json; return its SHA-256. A patch that is there already was written by another runner of this
    attempt, which `claim` rules out; the end, not the patch, decides, so nothing more is said here."""
    raw = canonical_json(patch)
    _create(grants, "patch", grants.patch, raw)
    return sha256(raw)


def leave_bundle(grants: Grants, bundle: bytes) -> bool:
    """Write the bundle. False: another is there, so this attempt is not ours to end."""
    return _create(grants, "bundle", grants.bundle, bundle)


def end_of(
    grants: Grants, result: Scored | Loss, bundle: bytes | None, *, start: str | None, patch: str | None
) -> End:
    """`start`, `patch`: the SHA-256 of those records that this runner wrote."""
    return End(
        plan=grants.plan,
        trial=grants.trial.id,
        attempt=grants.attempt,
        nonce=grants.intent_nonce,
        at=time.time(),
        by="runner",
        start=start,
        patch=patch,
        scored=result if isinstance(result, Scored) else None,
        loss=result if isinstance(result, Loss) else None,
        bundle=None if bundle is None else sha256(bundle),
        bundle_bytes=None if bundle is None else len(bundle),
    )


def commit(grants: Grants, end: End) -> bool:
    """Write the end. False: the controller ended this attempt first, and that stands.

    Raises `StoreError` when the store does not answer: then nothing was committed, as far as can be known.
    """
    return _create(grants, "end", grants.end, canonical_json(end))


def _create(grants: Grants, name: str, grant: PutGrant, data: bytes) -> bool:
    checkpoint(f"runner.{name}.before", grants.attempt)
    created = store.create(grant, data)
    checkpoint(f"runner.{name}.after", grants.attempt)
    return created
