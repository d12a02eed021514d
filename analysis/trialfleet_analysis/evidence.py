"""Whether chains and bundles are what their outcomes say. What is not is missing data, never counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar, cast

from pydantic_core import from_json

from trialfleet_analysis.attempt_listing import list_attempts, read_suspects
from trialfleet_analysis.ledger import (
    NOBODY,
    AttemptRecords,
    AttemptRun,
    CampaignRecords,
    expect_of,
    parsed,
    run_of,
)
from trialfleet_ledger import keys
from trialfleet_ledger.abandonment import Link, unfounded
from trialfleet_ledger.bundle import REDACTED, BundleError, unpack
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.pulled_copy import omits_bundles
from trialfleet_ledger.records.attempt import End, Intent, Start
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Scored
from trialfleet_ledger.store.prefetch import one_ahead
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S, WrongValue, settle_value
from trialfleet_ledger.stored_journal import CheckedReads, by_trial, check_reads
from trialfleet_ledger.thread_pools import open_pool

QUARANTINED = "quarantined: "  # begins the fault that a quarantine record explains
SCORED = "scored.json"  # the bundle's member with its result
CUT = " was too long and is cut in its bundle"
BATCH = 128  # bundles in memory at a time, twice: those examined and those that come
TOGETHER = 4  # bundles that one call examines: a call costs a tenth of what a small bundle does
R = TypeVar("R", bound=Record)
T = TypeVar("T")


@dataclass(frozen=True)
class Evidence:
    """What was found of one trial's chain and bundle. `fault`: why it cannot be counted; None when it holds.
    `verified`: its bytes were read and match; False when only its existence was looked up, or when it was
    not `pulled`."""

    trial: str
    key: str
    sha256: str | None
    verified: bool
    fault: str | None = None
    isolation: str | None = None
    warnings: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    run: AttemptRun = NOBODY
    pulled: bool = True


def read_evidence(store: Store, ledger: CampaignRecords, *, verify: bool, threads: int = 8) -> dict[str, Evidence]:
    """Evidence of every measured trial, by trial id, and of every abandoned one whose chain says otherwise.

    `verify`: read each bundle and compare its SHA-256 and its contents; otherwise look up that it exists. A bundle
    that was not pulled is not verified, and no fault. The end of the measuring attempt is always read: the outcome
    only repeats it, so where they differ, it is wrong.
    Attempts that the ledger quarantined stay quarantined, whatever their bundle is now. Of an abandoned trial, the
    whole chain is read: its losses must be those of the outcome, and leave no retry. A trial with a record that
    is not as it was written has a fault.
    """
    reads = check_reads(store, ledger.plan.campaign, ledger.journal)
    listing = list_attempts(reads)  # before they are read
    ended = _ends(reads, [outcome for outcome in ledger.outcomes if outcome.scored is not None])
    unsound = _unfounded(reads, ledger)
    read_suspects(reads, listing)
    tampered = by_trial({**ledger.faults, **reads.find_faults()})
    wanted, refused = _choose(ledger, ended[0], tampered)
    bundles = _of_bundles(store, reads.campaign, wanted, listing.bundles, verify=verify, threads=threads)
    found = {trial: replace(evidence, run=ended[1][trial]) for trial, evidence in (refused | bundles).items()}
    found |= unsound
    rest = {trial for trial in tampered if trial not in found or trial in ledger.replaced}
    return found | {o.trial.id: _refused(o, tampered[o.trial.id]) for o in ledger.outcomes if o.trial.id in rest}


def _of_bundles(
    store: Store,
    campaign: str,
    wanted: Mapping[str, Outcome],
    there: Mapping[str, int],
    *,
    verify: bool,
    threads: int,
) -> dict[str, Evidence]:
    """`wanted`: outcomes by the key of their bundle; `there`: bundles that are listed, with their bytes."""
    absent = wanted.keys() - there.keys()
    omitted = absent if absent and omits_bundles(store, campaign) else frozenset[str]()
    rest = {key: outcome for key, outcome in wanted.items() if key not in omitted}
    found = _verified(store, rest, threads) if verify else _existing(there, rest)
    return found | {wanted[key].trial.id: replace(_looked_up(wanted[key]), pulled=False) for key in omitted}


def _choose(
    ledger: CampaignRecords, ends: Mapping[str, End | str], tampered: Mapping[str, str]
) -> tuple[dict[str, Outcome], dict[str, Evidence]]:
    """Measured outcomes by the key of their bundle, and refusals of those whose records contradict each other."""
    known = {(record.trial, record.attempt): record.reason for record in ledger.quarantine}
    refused: dict[str, Evidence] = {}
    to_read: dict[str, Outcome] = {}
    for outcome in (outcome for outcome in ledger.outcomes if outcome.scored is not None):
        fault = contradiction(outcome, ends[outcome.trial.id]) or tampered.get(outcome.trial.id)
        reason = known.get((outcome.trial.id, outcome.attempts))
        if reason is not None:
            refused[outcome.trial.id] = _refused(outcome, f"{QUARANTINED}{reason}")
        elif fault is not None:
            refused[outcome.trial.id] = _refused(outcome, fault)
        elif outcome.bundle is None or outcome.bundle_sha256 is None:
            refused[outcome.trial.id] = _refused(outcome, "its outcome names no bundle")
        else:
            to_read[f"{ledger.plan.campaign}/{outcome.bundle}"] = outcome
    return to_read, refused


def contradiction(outcome: Outcome, ended: End | str) -> str | None:
    """What a measured outcome says that the end of its last attempt does not; None when they agree. `ended`: that
    end, or why it could not be opened."""
    if isinstance(ended, str):
        return ended
    if (ended.trial, ended.attempt) != (outcome.trial.id, outcome.attempts):
        return f"its end belongs to attempt {ended.attempt} of trial {ended.trial}"
    if ended.scored is None:
        return f"its outcome is a verdict, but attempt {outcome.attempts} ended in a loss"
    if ended.scored != outcome.scored:
        return _other_verdict(outcome, ended.scored)
    if ended.bundle != outcome.bundle_sha256:
        return "its outcome names another bundle than its end.json"
    if len(outcome.losses) != outcome.attempts - 1:
        return f"its outcome tells of {plural(len(outcome.losses), 'loss')} before attempt {outcome.attempts}"
    return None


def _opened(store: Store, key: str, outcome: Outcome, raw: bytes | None) -> End | str:
    try:
        end = parsed(store, End, key, raw, listed=True)
    except OperatorError:
        return f"the end.json of attempt {outcome.attempts} is no record of this version"
    return f"attempt {outcome.attempts} has no end.json" if end is None else end


def _other_verdict(outcome: Outcome, ended: Scored) -> str:
    told = outcome.scored.verdict if outcome.scored else None
    if told is not ended.verdict:
        return f"its outcome says {told}, but the end.json of attempt {outcome.attempts} says {ended.verdict}"
    return f"its outcome says something else than the end.json of attempt {outcome.attempts}"


def _unfounded(reads: CheckedReads, ledger: CampaignRecords) -> dict[str, Evidence]:
    """Refusals of abandoned outcomes. Read is what its list of losses bounds, not the count that it gives."""
    quarantined = {(record.trial, record.attempt) for record in ledger.quarantine}
    abandoned = [outcome for outcome in ledger.outcomes if outcome.abandoned is not None]
    pairs = [(o.trial.id, n) for o in abandoned for n in range(1, len(o.losses) + 2)]
    records = AttemptRecords(cast("Store", reads), ledger.plan.campaign, pairs)
    found: dict[str, Evidence] = {}
    for outcome in abandoned:
        trial, count = outcome.trial.id, len(outcome.losses)
        links = [
            Link(
                records.one(End, trial, n, "end.json", listed=True),
                score_only=records.score_only(trial, n),
                patched=records.patched(trial, n),
                quarantined=(trial, n) in quarantined,
            )
            for n in range(1, count + 1)
        ]
        followed = records.raw(trial, count + 1, "intent.json") is not None
        fault = unfounded(outcome, links, ledger.plan.retries, followed=followed)
        if fault is not None:
            found[trial] = _refused(outcome, fault)
    return found


def _ends(reads: CheckedReads, measured: Sequence[Outcome]) -> tuple[dict[str, End | str], dict[str, AttemptRun]]:
    """The last end of each trial, or why there is none, and who ran that attempt. Only a later attempt can have
    been told to score alone: of a first one, no intent is read."""
    store, campaign = cast("Store", reads), reads.campaign

    def key(outcome: Outcome, name: keys.AttemptFile) -> str:
        return keys.attempt_file(campaign, outcome.trial.id, outcome.attempts, name)

    wanted = [key(outcome, name) for outcome in measured for name in ("end.json", "start.json")]
    wanted += [key(outcome, "intent.json") for outcome in measured if outcome.attempts > 1]
    raw = dict(store.get_many(wanted))

    def one(model: type[R], outcome: Outcome, name: keys.AttemptFile) -> R | None:
        return parsed(store, model, key(outcome, name), raw.get(key(outcome, name)))

    ends: dict[str, End | str] = {}
    runs: dict[str, AttemptRun] = {}
    for outcome in measured:
        trial = outcome.trial.id
        end = key(outcome, "end.json")
        ended = ends[trial] = _opened(store, end, outcome, raw[end])
        expect_of(reads, None if isinstance(ended, str) else ended)
        intent = one(Intent, outcome, "intent.json")
        runs[trial] = run_of(
            one(Start, outcome, "start.json"),
            None if isinstance(ended, str) else ended,
            score_only=intent is not None and intent.score_only,
        )
    return ends, runs


def _verified(store: Store, wanted: Mapping[str, Outcome], threads: int) -> dict[str, Evidence]:
    """The next bundles are on their way while these are examined."""

    def examine_one(pair: tuple[str, bytes | None]) -> Evidence:
        key, raw = pair
        try:
            return settle_value(store, key, raw, partial(_sound, wanted[key]), over_s=WHILE_READING_S)
        except UnsoundError as error:
            return error.evidence

    def examine_some(pairs: Sequence[tuple[str, bytes | None]]) -> list[Evidence]:
        return [examine_one(pair) for pair in pairs]

    def fetched(batch: Sequence[str]) -> list[tuple[str, bytes | None]]:
        return list(store.get_many(batch))

    found: dict[str, Evidence] = {}
    with open_pool(threads) as pool, open_pool(1) as fetcher:
        for coming in one_ahead(fetcher.submit(fetched, batch) for batch in _parts(list(wanted), BATCH)):
            for some in pool.map(examine_some, _parts(coming.result(), TOGETHER)):
                found |= {evidence.trial: evidence for evidence in some}
    return found


class UnsoundError(WrongValue):
    """A bundle is not what its outcome says."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        super().__init__(evidence.fault)


def _sound(outcome: Outcome, bundle: bytes | None) -> Evidence:
    """As `examine`. Raises `UnsoundError` if there is a fault."""
    evidence = examine(outcome, bundle)
    if evidence.fault is not None:
        raise UnsoundError(evidence)
    return evidence


def examine(outcome: Outcome, bundle: bytes | None) -> Evidence:
    """Compare one bundle's bytes with what its outcome says of them."""
    if bundle is None:
        return _refused(outcome, "its bundle is missing")
    try:
        opened = unpack(bundle, outcome.bundle_sha256)
    except BundleError as error:
        return _refused(outcome, str(error))
    manifest = opened.manifest
    if manifest.trial.id != outcome.trial.id or manifest.attempt != outcome.attempts:
        return _refused(outcome, f"its bundle belongs to attempt {manifest.attempt} of trial {manifest.trial.id}")
    if manifest.plan not in (None, outcome.plan):
        return _refused(outcome, f"its bundle was made under another {keys.PLAN} than its outcome names")
    if not repeats_result(outcome.scored, opened.files.get(SCORED)):
        return _refused(outcome, f"its outcome says {_verdict(outcome)}, but its bundle holds another result")
    return Evidence(
        outcome.trial.id,
        outcome.bundle or "",
        outcome.bundle_sha256,
        verified=True,
        isolation=manifest.isolation,
        warnings=(*manifest.warnings, *(f"{file.path}{CUT}" for file in manifest.files if file.left_out)),
        versions=tuple(sorted(manifest.versions.items())),
    )


def repeats_result(scored: Scored | None, member: bytes | None) -> bool:
    """Whether a result is the one in its bundle. `member`: scored.json, with marks in place of keys; None, or one
    that this version cannot read, says nothing. An end that came by a termination message may lack parts."""
    if scored is None or member is None:
        return True
    try:
        if from_json(member) == scored.model_dump(mode="json"):  # mostly so, and five times as fast
            return True
        bundled = Scored.model_validate_json(member)
    except ValueError:
        return True
    return (
        (scored.verdict, scored.stop, scored.tests_passed) == (bundled.verdict, bundled.stop, bundled.tests_passed)
        and _repeats(scored.metrics, bundled.metrics)
        and (REDACTED.encode() in member or _repeats_texts(scored, bundled))
    )


def _repeats_texts(scored: Scored, bundled: Scored) -> bool:
    return (
        (scored.diff_sha256, scored.unsteady, scored.cautions)
        == (bundled.diff_sha256, bundled.unsteady, bundled.cautions)
        and scored.needed in ((), bundled.needed)
        and _repeats(scored.delivery, bundled.delivery)
    )


def _repeats(part: Metrics | Delivery, bundled: Metrics | Delivery) -> bool:
    """Whether each value is the other's, or was left out."""
    nothing = type(part)()
    names = type(part).model_fields
    return all(getattr(part, name) in (getattr(bundled, name), getattr(nothing, name)) for name in names)


def _verdict(outcome: Outcome) -> str:
    return "nothing" if outcome.scored is None else outcome.scored.verdict


def _existing(there: Mapping[str, int], wanted: Mapping[str, Outcome]) -> dict[str, Evidence]:
    return {
        outcome.trial.id: _looked_up(outcome)
        if there.get(key, 0) > 0
        else _refused(outcome, "its bundle is missing or empty")
        for key, outcome in wanted.items()
    }


def _looked_up(outcome: Outcome) -> Evidence:
    return Evidence(outcome.trial.id, outcome.bundle or "", outcome.bundle_sha256, verified=False)


def _refused(outcome: Outcome, fault: str) -> Evidence:
    return Evidence(outcome.trial.id, outcome.bundle or "", outcome.bundle_sha256, verified=False, fault=fault)


def _parts(whole: Sequence[T], size: int) -> list[Sequence[T]]:
    return [whole[start : start + size] for start in range(0, len(whole), size)]
