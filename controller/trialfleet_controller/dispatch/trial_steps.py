"""The I/O of one trial: reads and writes the ledger, starts runners. It takes and returns values, so many threads
may run it for different trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trialfleet_controller.backends.protocol import Backend, Liveness, Order, TooLate
from trialfleet_controller.backends.runner_termination import (
    RunnerTermination,
    classify,
    exhausted_patch,
    explained,
    stopped_by_operator,
)
from trialfleet_controller.dispatch.launch_requests import Granter
from trialfleet_controller.dispatch.trial_table import CampaignBudget, OpenTrial
from trialfleet_ledger import keys
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.fold import (
    BrokenChain,
    Conclude,
    Intend,
    LaunchAttempt,
    Step,
    StoredAttempt,
    WatchAttempt,
    count_tests_deaths,
    next_step,
    score_from,
)
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Loss, LossClass
from trialfleet_ledger.spent_money import price_chain, price_runs
from trialfleet_ledger.trial_order import Planned
from trialfleet_ledger.untrusted import finite

UNKNOWN = RunnerTermination()  # nobody saw the runner end


@dataclass(frozen=True, slots=True)
class Seen:
    """A trial as it was found. `runner`: the state of the runner that claimed its last attempt; None: no runner
    has, or the attempt has its end."""

    opened: OpenTrial
    runner: Liveness | None


@dataclass(frozen=True)
class TrialSteps:
    """`epoch`: of this controller."""

    ledger: Ledger
    backend: Backend
    granter: Granter
    retries: RetrySpec
    epoch: int

    def next(self, opened: OpenTrial) -> Step:
        """What is to be done now. No I/O."""
        try:
            return next_step(opened.trial.record(), opened.chain, self.retries)
        except BrokenChain as error:
            raise OperatorError(
                f"the records contradict each other: {error}",
                where=f"{self.ledger.store.url}/{keys.attempts(self.ledger.campaign, opened.trial.id)}",
                hint="the ledger was changed by hand: restore its files from a copy made with `trialfleet pull`",
            ) from error

    def read(self, trial: Planned) -> OpenTrial:
        """The trial's records, of every controller."""
        chain = self.ledger.attempts.chain(trial.id)
        return OpenTrial(trial, (*chain[:-1], *map(self.ledger.attempts.verify, chain[-1:])))

    def launch(self, opened: OpenTrial) -> tuple[OpenTrial, LaunchAttempt | WatchAttempt | Conclude]:
        """Write intent and grants, start the runner. `LaunchAttempt`: it was launched; otherwise another
        controller is further ahead."""
        while True:
            match self.next(opened):
                case Intend() as step:
                    attempt = self.ledger.attempts.intend(
                        opened.trial.id, step, epoch=self.epoch, cluster_id=self.backend.cluster_id
                    )
                    opened = self._reread(opened) if attempt is None else _longer(opened, attempt)
                case LaunchAttempt(_, score_from) as step:
                    self._place(opened, score_from)
                    return opened, step
                case WatchAttempt() | Conclude() as step:
                    return opened, step

    def _reread(self, opened: OpenTrial) -> OpenTrial:
        return replace(opened, chain=self.read(opened.trial).chain)

    def _place(self, opened: OpenTrial, score_from: int | None) -> None:
        """Signs the grants again whenever the backend has had no room for too long."""
        while True:
            grants = self._grants(opened, score_from)
            url = self.granter.url(self.ledger.attempts.grant(grants))
            checkpoint("launch.before")
            trial = opened.trial
            try:
                self.backend.launch(Order(opened.id, canonical_json(grants), url, trial.block, trial.position))
            except TooLate:
                continue
            return checkpoint("launch.after")

    def _grants(self, opened: OpenTrial, score_from: int | None) -> Grants:
        deaths = count_tests_deaths(opened.chain[:-1])
        return self.granter.grants(opened.trial, opened.last.intent, score_from, tests_died=deaths)

    def renew(self, opened: OpenTrial) -> None:
        """Sign again for a runner of an earlier controller: its credentials may have expired."""
        grants = self._grants(opened, score_from(opened.chain[:-1]))
        self.backend.renew(opened.id, self.granter.url(self.ledger.attempts.grant(grants)))

    def look(self, opened: OpenTrial, gone: RunnerTermination = UNKNOWN) -> Seen:
        """The last attempt as the ledger has it now. A verdict that cannot be trusted is quarantined."""
        attempt = self._verified(self.ledger.attempts.refresh(opened.last), gone)
        open_start = attempt.start if attempt.end is None else None
        return Seen(opened.with_last(attempt), None if open_start is None else self.backend.alive(open_start))

    def unreported_ends(self, *, age_s: float) -> set[tuple[str, int]]:
        """Trial and attempt of the ends that have been in the ledger for `age_s` or longer."""
        return self.ledger.attempts.ended_before(self.ledger.store.now() - age_s)

    def lose(self, opened: OpenTrial, gone: RunnerTermination) -> OpenTrial:
        """Give the last attempt, whose runner has gone, an end unless the runner wrote one before it went."""
        attempt = self.ledger.attempts.refresh(opened.last)
        if attempt.end is None:
            if self.backend.stop_kept(attempt.intent):
                gone = stopped_by_operator(gone, "the operator stopped it while the store took no end of it")
            attempt = self._ended(self._with_patch(self.ledger.attempts.confirm_patch(attempt), gone), gone)
        return opened.with_last(self._verified(attempt, gone))

    def _with_patch(self, attempt: StoredAttempt, gone: RunnerTermination) -> StoredAttempt:
        raw = None if attempt.patched else self.backend.kept_patch(attempt.intent)
        if gone.exhausted and not attempt.patched:
            raw = raw or canonical_json(exhausted_patch(attempt.intent, self.ledger.store.now()))
        return attempt if raw is None else self.ledger.attempts.store_patch(attempt, raw)

    def _verified(self, attempt: StoredAttempt, gone: RunnerTermination) -> StoredAttempt:
        """Compares a verdict's bundle with its end. A verdict of a runner that did not match the plan never
        counts."""
        attempt = self.ledger.attempts.verify(attempt)
        return (
            attempt if gone.unplanned is None else self.ledger.attempts.distrust(attempt, gone.unplanned.message)
        )

    def _ended(self, attempt: StoredAttempt, gone: RunnerTermination) -> StoredAttempt:
        if gone.last_words is not None and belongs(gone, attempt):
            return self.ledger.attempts.adopt(attempt, explained(gone.last_words, gone.named))
        return self.ledger.attempts.lose(
            attempt, classify(gone, started=attempt.start is not None, patched=attempt.patched)
        )

    def cancel(self, opened: OpenTrial) -> None:
        """Mark the last attempt as lost, unless it has its end already."""
        attempt = self.ledger.attempts.refresh(opened.last)
        if attempt.end is None:
            loss = Loss(
                loss=LossClass.CANCELLED,
                message="the campaign was cancelled",
                agent_started=attempt.start is not None,
                patched=attempt.patched,
            )
            self.ledger.attempts.lose(attempt, loss)

    def conclude(self, step: Conclude) -> Outcome:
        return self.ledger.attempts.conclude(step.outcome)

    def past(self, trials: Sequence[str], budget: CampaignBudget | None) -> list[tuple[Outcome, float]]:
        """Outcomes of earlier controllers with what each trial has cost; without a budget the cost is not read."""
        return [
            (outcome, 0.0 if budget is None else self._cost(outcome, budget))
            for outcome in self.ledger.attempts.outcomes(trials)
        ]

    def _cost(self, outcome: Outcome, budget: CampaignBudget) -> float:
        if outcome.attempts == 1 and outcome.scored is not None:
            return price_runs(1, finite(outcome.scored.metrics.cost_usd), budget.trial)
        return price_chain(self.ledger.attempts.chain(outcome.trial.id), budget.trial)


def belongs(gone: RunnerTermination, attempt: StoredAttempt) -> bool:
    """Whether the last words are about this attempt."""
    end, intent = gone.last_words, attempt.intent
    return end is not None and (end.trial, end.attempt, end.nonce) == (intent.trial, intent.attempt, intent.nonce)


def _longer(opened: OpenTrial, attempt: StoredAttempt) -> OpenTrial:
    return replace(opened, chain=(*opened.chain, attempt))
