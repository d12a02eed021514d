"""Whether a ledger is what it must be after anything: nothing lost, doubled or re-rolled, nobody left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from trialfleet_controller.dispatch.shards import Ending
from trialfleet_ledger.fold import StoredAttempt, progress, score_from
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.lifecycle import TrialPhase
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.stored_journal import check_reads, read_journal
from trialfleet_ledger.trial_order import trials


def records(at: Path | Store, campaign: str) -> dict[str, bytes]:
    """Every record that may never change, with its bytes."""
    store = _opened(at)
    lasting = [e.key for e in store.list(f"{campaign}/") if not e.key.endswith((".beat", "live.log.zst"))]
    return {key: raw or b"" for key, raw in store.get_many(lasting)}


def _opened(at: Path | Store) -> Store:
    return DirectoryStore(at) if isinstance(at, Path) else at


def ending(outcomes: Iterable[Outcome]) -> Ending:
    """How a campaign ends whose trials are all over."""
    return Ending.COMPLETE if all(outcome.abandoned is None for outcome in outcomes) else Ending.INCOMPLETE


def audit(
    at: Path | Store,
    plan: Plan,
    *,
    log: Path | None = None,
    before: dict[str, bytes] | None = None,
    verdict: Verdict | Mapping[str, Verdict] | None = None,
    reps: int | None = None,
) -> list[Outcome]:
    """Outcomes in plan order, every one of them there and right. `log`: where runners noted each execution of the
    agent; `before`: records at some earlier moment, none of which may have changed; `verdict`: what all must have
    measured, or what by condition; None: what feigned runners make of a trial's seed; `reps`: of an amendment."""
    store = _opened(at)
    ledger = Ledger(store, plan.campaign)
    now = records(store, plan.campaign)
    for key, raw in (before or {}).items():
        assert now.get(key) == raw, f"{key} was changed"
    outcomes = []
    started: set[str] = set()
    planned = ledger.directives.planned_reps(ledger.plan())
    for trial in trials(ledger.plan(), reps):
        if not planned.includes((trial.task, trial.condition), trial.block):
            continue
        chain = ledger.attempts.chain(trial.id)
        outcome = ledger.attempts.outcome(trial.id)
        assert outcome is not None, f"{trial.id} was lost"
        folded = progress(chain, plan.retries)
        assert folded.terminal
        assert outcome.attempts == len(chain)
        assert outcome.scored == folded.scored
        assert outcome.losses == tuple(lost.loss for lost in folded.losses)
        assert sum(a.end is not None and a.end.scored is not None and not a.quarantined for a in chain) <= 1
        if folded.phase is TrialPhase.MEASURED:
            assert folded.scored is not None
            by_seed = Verdict.PASSED if trial.seed % 2 == 0 else Verdict.FAILED
            expected = verdict[trial.condition] if isinstance(verdict, Mapping) else verdict
            assert folded.scored.verdict is (expected or by_seed)
        started |= {f"{trial.id} {n}" for n in range(1, len(chain) + 1) if _may_execute(ledger, chain, n)}
        outcomes.append(outcome)
    if log is not None:
        executions = Counter(log.read_text().splitlines())
        assert executions.keys() <= started, "an agent ran without a start, or where only scoring was due"
        assert set(executions.values()) <= {1}, "an agent ran twice under one start"
    stored = [entry.key for entry in store.list(f"{plan.campaign}/outcomes/")]
    assert len(stored) == len(outcomes)
    assert find_tampered(store, plan.campaign) == {}
    return outcomes


def find_tampered(store: Store, campaign: str) -> dict[str, str]:
    """What the journal says against the records that it names."""
    journal = read_journal(store, campaign)
    reads = check_reads(store, campaign, journal)
    for _ in reads.get_many(sorted(reads.written)):
        pass
    return {**journal.faults, **reads.find_faults()}


def _may_execute(ledger: Ledger, chain: tuple[StoredAttempt, ...], n: int) -> bool:
    key = f"{ledger.campaign}/attempts/{chain[n - 1].intent.trial}/{n}/start.json"
    return ledger.store.get(key) is not None and score_from(chain[: n - 1]) is None
