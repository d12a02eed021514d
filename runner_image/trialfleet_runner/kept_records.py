"""What the store refuses is kept on this machine until a controller stores it: a patch, and the operator's stop of
a runner."""

from __future__ import annotations

from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.attempt import Patch
from trialfleet_ledger.removal import remove_entry
from trialfleet_ledger.store import files
from trialfleet_sandbox.scratch import claim_scratch, find_scratch


def keep_patch(patch: Patch) -> None:
    """Keep the patch; durable on return. It is a file, so that no sweep mistakes it for the folder of a dead
    runner."""
    name = _name_of(patch.trial, patch.attempt, patch.nonce)
    files.create(claim_scratch().path, (name,), canonical_json(patch))


def load_kept_patch(trial: str, attempt: int, nonce: str) -> bytes | None:
    """The patch of the attempt with this intent, if its runner left one here."""
    folder = find_scratch()
    return None if folder is None else files.read(folder.path, (_name_of(trial, attempt, nonce),))


def keep_stop(trial: str, attempt: int, nonce: str) -> None:
    """Keep that the operator stopped this attempt, where the store takes no end of it; durable on return."""
    files.create(claim_scratch().path, (_stop_of(trial, attempt, nonce),), b"")


def has_kept_stop(trial: str, attempt: int, nonce: str) -> bool:
    """Whether the operator stopped the attempt with this intent on this machine."""
    folder = find_scratch()
    return folder is not None and files.read(folder.path, (_stop_of(trial, attempt, nonce),)) is not None


def forget_attempt(trial: str, attempt: int) -> None:
    """Remove what is kept of the attempt: the ledger has its end."""
    folder = find_scratch()
    if folder is None:
        return
    for name in (_name_of(trial, attempt, "*"), _stop_of(trial, attempt, "*")):
        for path in folder.path.glob(name):
            remove_entry(folder, path.name)


def _name_of(trial: str, attempt: int, nonce: str) -> str:
    return f"{trial}-{attempt}-{nonce}.patch.json"


def _stop_of(trial: str, attempt: int, nonce: str) -> str:
    return f"{trial}-{attempt}-{nonce}.stopped"
