"""Whether ends and bundles are what their outcomes say. What is not is missing data, never counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import ValidationError

from trialfleet_analysis.ledger import Ledger
from trialfleet_runner.bundle import BundleError, unpack
from trialfleet_runner.contract import End, Outcome, Scored
from trialfleet_runner.store.protocol import Store

BATCH = 128  # bundles in memory at a time


@dataclass(frozen=True)
class Evidence:
    """What was found of one trial's end and bundle. `fault`: why it cannot be counted; None when it holds.
    `verified`: its bytes were read and match; False when only its existence was looked up."""

    trial: str
    key: str
    sha256: str | None
    verified: bool
    fault: str | None = None
    isolation: str | None = None
    warnings: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()


def read_evidence(store: Store, ledger: Ledger, *, verify: bool, threads: int = 8) -> dict[str, Evidence]:
    """Evidence of every measured trial, by trial id.

    `verify`: read each bundle and compare its SHA-256 and its contents; otherwise look up that it exists. The end
    of the measuring attempt is always read: the outcome only repeats it, so where they differ, it is wrong.
    Attempts that the ledger quarantined stay quarantined, whatever their bundle is now.
    """
    measured = [outcome for outcome in ledger.outcomes if outcome.scored is not None]
    campaign = ledger.plan.campaign
    known = {(record.trial, record.attempt): record.reason for record in ledger.quarantine}
    ends = _ends(store, campaign, measured)
    found: dict[str, Evidence] = {}
    to_read: dict[str, Outcome] = {}
    for outcome in measured:
        fault = disagreement(outcome, ends.get(outcome.trial.id))
        reason = known.get((outcome.trial.id, outcome.attempts))
        if reason is not None:
            found[outcome.trial.id] = _refused(outcome, f"quarantined: {reason}")
        elif fault is not None:
            found[outcome.trial.id] = _refused(outcome, fault)
        elif outcome.bundle is None or outcome.bundle_sha256 is None:
            found[outcome.trial.id] = _refused(outcome, "its outcome names no bundle")
        else:
            to_read[f"{campaign}/{outcome.bundle}"] = outcome
    read = _verified(store, to_read, threads) if verify else _existing(store, campaign, to_read)
    return found | read


def disagreement(outcome: Outcome, end: bytes | None) -> str | None:
    """What a measured outcome says that the end of its last attempt does not; None when they agree."""
    if end is None:
        return f"attempt {outcome.attempts} has no end.json"
    try:
        ended = End.model_validate_json(end)
    except ValidationError:
        return f"the end.json of attempt {outcome.attempts} is no record of this version"
    if (ended.trial, ended.attempt) != (outcome.trial.id, outcome.attempts):
        return f"its end belongs to attempt {ended.attempt} of trial {ended.trial}"
    if ended.scored is None:
        return f"its outcome is a verdict, but attempt {outcome.attempts} ended in a loss"
    if ended.scored != outcome.scored:
        return _other_verdict(outcome, ended.scored)
    if ended.bundle != outcome.bundle_sha256:
        return "its outcome names another bundle than its end.json"
    return None


def _other_verdict(outcome: Outcome, ended: Scored) -> str:
    told = outcome.scored.verdict if outcome.scored else None
    if told is not ended.verdict:
        return f"its outcome says {told}, but the end.json of attempt {outcome.attempts} says {ended.verdict}"
    return f"its outcome says something else than the end.json of attempt {outcome.attempts}"


def _ends(store: Store, campaign: str, measured: Sequence[Outcome]) -> dict[str, bytes | None]:
    """The last end of each trial, unread."""
    keys = {f"{campaign}/attempts/{o.trial.id}/{o.attempts}/end.json": o.trial.id for o in measured}
    return {keys[key]: raw for key, raw in store.get_many(list(keys))}


def _verified(store: Store, wanted: Mapping[str, Outcome], threads: int) -> dict[str, Evidence]:
    def examine_one(pair: tuple[str, bytes | None]) -> Evidence:
        return examine(wanted[pair[0]], pair[1])

    keys = list(wanted)
    found: dict[str, Evidence] = {}
    with ThreadPoolExecutor(threads) as pool:
        for batch in _batches(keys):
            pairs = store.get_many(batch)
            for evidence in pool.map(examine_one, pairs):
                found[evidence.trial] = evidence
    return found


def examine(outcome: Outcome, bundle: bytes | None) -> Evidence:
    """Compare one bundle's bytes with what its outcome says of them."""
    if bundle is None:
        return _refused(outcome, "its bundle is missing")
    try:
        manifest = unpack(bundle, outcome.bundle_sha256).manifest
    except BundleError as error:
        return _refused(outcome, str(error))
    if manifest.trial.id != outcome.trial.id or manifest.attempt != outcome.attempts:
        return _refused(outcome, f"its bundle belongs to attempt {manifest.attempt} of trial {manifest.trial.id}")
    return Evidence(
        outcome.trial.id,
        outcome.bundle or "",
        outcome.bundle_sha256,
        verified=True,
        isolation=manifest.isolation,
        warnings=manifest.warnings,
        versions=tuple(sorted(manifest.versions.items())),
    )


def _existing(store: Store, campaign: str, wanted: Mapping[str, Outcome]) -> dict[str, Evidence]:
    sizes = {entry.key: entry.size for entry in store.list(f"{campaign}/attempts/")} if wanted else {}
    return {
        outcome.trial.id: _looked_up(outcome)
        if sizes.get(key, 0) > 0
        else _refused(outcome, "its bundle is missing or empty")
        for key, outcome in wanted.items()
    }


def _looked_up(outcome: Outcome) -> Evidence:
    return Evidence(outcome.trial.id, outcome.bundle or "", outcome.bundle_sha256, verified=False)


def _refused(outcome: Outcome, fault: str) -> Evidence:
    return Evidence(outcome.trial.id, outcome.bundle or "", outcome.bundle_sha256, verified=False, fault=fault)


def _batches(keys: Sequence[str]) -> list[Sequence[str]]:
    return [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
