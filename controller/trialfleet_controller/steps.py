"""The steps of one trial: reads and writes the ledger, starts runners. Values in, values out, so that several
trials' steps may be under way in as many threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trialfleet_controller import keys
from trialfleet_controller.backend import Backend, Order, TooLate
from trialfleet_controller.classify import Departure, classify
from trialfleet_controller.fault import checkpoint
from trialfleet_controller.fold import Attempt, BrokenChain, Conclude, Intend, Place, Step, Watch, next_step
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.lifecycle import Budgets
from trialfleet_controller.machine import Liveness
from trialfleet_controller.money import Purse
from trialfleet_controller.orders import Granter
from trialfleet_controller.plan import Planned
from trialfleet_controller.trialbook import Opened
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import Loss, LossClass, Outcome
from trialfleet_runner.errors import OperatorError

UNKNOWN = Departure()  # nobody saw it go


@dataclass(frozen=True, slots=True)
class Seen:
    """An attempt as it was found. `runner`: how the one that claimed it is; None: none has, or there is an end."""

    opened: Opened
    runner: Liveness | None


@dataclass(frozen=True)
class Steps:
    """Everything that the steps touch. `epoch`: this controller's."""

    ledger: Ledger
    backend: Backend
    granter: Granter
    budgets: Budgets
    epoch: int

    def next(self, opened: Opened) -> Step:
        """What is to be done now. Pure, but for the place that its error names."""
        try:
            return next_step(opened.trial.record(), opened.chain, self.budgets)
        except BrokenChain as error:
            raise OperatorError(
                f"the records contradict each other: {error}",
                where=f"{self.ledger.store.url}/{keys.attempts(self.ledger.campaign, opened.trial.id)}",
                hint="somebody changed the ledger: put its file back as it was, from a copy that was pulled",
            ) from error

    def read(self, trial: Planned) -> Opened:
        """What earlier controllers, or others, made of the trial."""
        chain = self.ledger.chain(trial.id)
        return Opened(trial, (*chain[:-1], *map(self.ledger.verify, chain[-1:])))

    def launch(self, opened: Opened) -> tuple[Opened, Place | Watch | Conclude]:
        """Intent, grants, runner. `Place`: it was launched; otherwise somebody else has come further."""
        while True:
            match self.next(opened):
                case Intend() as step:
                    attempt = self.ledger.intend(opened.trial.id, step, epoch=self.epoch)
                    opened = self._reread(opened) if attempt is None else _longer(opened, attempt)
                case Place(_, score_from) as step:
                    self._place(opened, score_from)
                    return opened, step
                case Watch() | Conclude() as step:
                    return opened, step

    def _reread(self, opened: Opened) -> Opened:
        return replace(opened, chain=self.read(opened.trial).chain)

    def _place(self, opened: Opened, score_from: int | None) -> None:
        """Signs again for as long as there is no room."""
        while True:
            grants = self.granter.grants(opened.trial, opened.last.intent, score_from)
            url = self.granter.url(self.ledger.grant(grants))
            checkpoint("launch.before")
            try:
                self.backend.launch(Order(opened.id, canonical_json(grants), url))
            except TooLate:
                continue
            return checkpoint("launch.after")

    def look(self, opened: Opened, gone: Departure = UNKNOWN) -> Seen:
        """The last attempt as the ledger has it now; a verdict is kept only when it can be trusted."""
        attempt = self._verified(self.ledger.refresh(opened.last), gone)
        open_start = attempt.start if attempt.end is None else None
        return Seen(opened.with_last(attempt), None if open_start is None else self.backend.alive(open_start))

    def lose(self, opened: Opened, gone: Departure) -> Opened:
        """Nobody runs the last attempt any more: it gets an end, unless it wrote one while it went."""
        attempt = self.ledger.refresh(opened.last)
        if attempt.end is None:
            attempt = self._ended(attempt, gone)
        return opened.with_last(self._verified(attempt, gone))

    def _verified(self, attempt: Attempt, gone: Departure) -> Attempt:
        """A verdict's bundle is compared with its end; of what ran otherwise than planned, none counts."""
        attempt = self.ledger.verify(attempt)
        return attempt if gone.unplanned is None else self.ledger.distrust(attempt, gone.unplanned.message)

    def _ended(self, attempt: Attempt, gone: Departure) -> Attempt:
        if gone.last_words is not None and belongs(gone, attempt):
            return self.ledger.adopt(attempt, gone.last_words)
        return self.ledger.lose(
            attempt, classify(gone, started=attempt.start is not None, patched=attempt.patched)
        )

    def cancel(self, opened: Opened) -> Opened:
        """Mark what runs as lost: a verdict that is there already stands."""
        attempt = self.ledger.refresh(opened.last)
        if attempt.end is None:
            loss = Loss(
                loss=LossClass.CANCELLED,
                message="the campaign was cancelled",
                agent_started=attempt.start is not None,
                patched=attempt.patched,
            )
            self.ledger.lose(attempt, loss)
        return opened

    def conclude(self, step: Conclude) -> Outcome:
        return self.ledger.conclude(step.outcome)

    def past(self, trials: Sequence[str], purse: Purse | None) -> list[tuple[Outcome, float]]:
        """Outcomes of earlier controllers with what each trial has cost; without a purse nothing costs."""
        return [
            (outcome, 0.0 if purse is None else self._cost(outcome, purse))
            for outcome in self.ledger.outcomes(trials)
        ]

    def _cost(self, outcome: Outcome, purse: Purse) -> float:
        if outcome.attempts == 1 and outcome.scored is not None:
            return purse.price(1, outcome.scored)
        return purse.cost(self.ledger.chain(outcome.trial.id))


def belongs(gone: Departure, attempt: Attempt) -> bool:
    """Whether the last words are this attempt's: another's say nothing about it."""
    end, intent = gone.last_words, attempt.intent
    return end is not None and (end.trial, end.attempt, end.nonce) == (intent.trial, intent.attempt, intent.nonce)


def _longer(opened: Opened, attempt: Attempt) -> Opened:
    return replace(opened, chain=(*opened.chain, attempt))
