"""Campaigns drawn at random as stores: their trials, the looks that a controller takes, and what happens besides:
losses, halts, quarantine, added reps, a cancellation, limits that are reached, trials that are open."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.support import ledgers
from tests.support.ledgers import BEFORE_AGENT, MID_RUN, Fate
from tests.support.random_campaigns import DrawnTrials, draw_trials
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.looks import Looks
from trialfleet_controller.planning.amending import amend
from trialfleet_ledger.amendments import select_halted_cells
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.verdicts import Loss, LossClass, Stop, Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import Planned, trials

CANCELLED = Loss(loss=LossClass.CANCELLED, message="", agent_started=True)
STOPPED = Loss(loss=LossClass.INTERRUPTED, message="", agent_started=True)


@dataclass(frozen=True)
class DrawnLedger:
    """`happened`: what it is a sample of, in words."""

    store: DirectoryStore
    plan: Plan
    happened: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.plan.campaign


def draw_ledger(seed: int, folder: Path, *, largest: int = 3, kind: str | None = None) -> DrawnLedger:
    """Same seed and kind, same records, but for times. `kind`: None: the seed's."""
    rng, draw = np.random.default_rng(seed), random.Random(f"ledger {seed}")
    drawn = draw_trials(seed, rng, largest=largest, kind=kind)
    return _Written(drawn, draw, folder).play()


class _Written:
    """A campaign that is played in a folder."""

    def __init__(self, drawn: DrawnTrials, draw: random.Random, folder: Path) -> None:
        self.drawn, self.draw, self.happened = drawn, draw, [drawn.kind, *([drawn.odd] if drawn.odd else [])]
        self.plan = self._plan()
        self.store = ledgers.write_plan(folder, self.plan)
        self.ledger = Ledger(self.store, self.plan.campaign)
        self.named = sha256(canonical_json(self.plan))
        self.begun = set[str]()
        self.late = draw.random() < 0.3
        self.unlikely = draw.choice((0.0, 0.0, 0.1))

    def play(self) -> DrawnLedger:
        draw, ledger = self.draw, self.ledger
        if draw.random() < 0.95:
            driver = epochs.claim(self.store, self.plan.campaign, epochs.HeartbeatConfig())
            driver.beat()
            if draw.random() < 0.8:
                driver.end()
        if self.drawn.kind == "halving":
            for _ in range(draw.choice((0, 0, 1, 2))):
                self._halt()
        whole = draw.random() < 0.6
        last = self.plan.reps if whole else draw.randint(0, self.plan.reps)
        self._run(0, last)
        ended = whole or bool(ledger.directives.decisions())
        if ended and draw.random() < 0.25:
            self._extend()
        for likely, event in ((0.2, self._halt), (0.2, self._quarantine), (0.1, self._cancel)):
            if draw.random() < likely:
                event()
        ledgers.write_journal(self.store, self.plan)
        return DrawnLedger(self.store, self.plan, tuple(self.happened))

    def _plan(self) -> Plan:
        fixed, draw = self.drawn.fixed, self.draw
        declared = fixed.declaration
        primary = declared if isinstance(declared, Primary) else None
        trend = declared if isinstance(declared, TrendPrimary) else None
        apart = fixed.tasks[-1:] if len(fixed.tasks) > 1 and draw.random() < 0.1 else ()
        made = ledgers.plan(fixed.tasks, fixed.conditions, reps=fixed.planned_reps, no_oracle=apart)
        update: dict[str, object] = {"seed": fixed.seed, "primary": primary, "trend": trend}
        update["registered"] = None if primary or trend else declared
        tasks = tuple(
            task.model_copy(update={"repository": where})
            for task, where in zip(made.tasks, fixed.repositories, strict=True)
        )
        if draw.random() < 0.2:
            update["wall_clock_s"] = draw.choice((1e-6, 1e6))
        if draw.random() < (0.6 if self.drawn.kind == "halving" else 0.2):
            update |= {
                "cost_usd_campaign": draw.choice(
                    (4.0, 12.0, 40.0) if self.drawn.kind == "halving" else (0.5, 1e6)
                ),
                "limits": Limits(cost_usd=1.0),
                "agents": {
                    name: own.model_copy(update={"spec": own.spec.model_copy(update={"model": "m"})})
                    for name, own in made.agents.items()
                },
            }
        return made.model_copy(update={**update, "tasks": tasks})

    def _run(self, first: int, last: int) -> None:
        """Blocks up to before `last`, with looks as a controller takes them; the last ones may be open."""
        directives, open_share = self.ledger.directives, self.draw.choice((0.0, 0.0, 0.3))
        for block in range(first, last):
            planned = directives.planned_reps(self.plan)
            if block >= planned.most or (self._ended() and not self._runs_on()):
                return
            halted = select_halted_cells(self.plan.cell_names, directives.halts())
            for trial in self._block(block):
                cell = trial.task, trial.condition
                if not planned.includes(cell, block) or cell in halted:
                    continue
                if block == last - 1 and self.draw.random() < open_share:
                    self._begin(trial)
                else:
                    self._write(trial)
            self._look()
        if open_share:
            self.happened.append("open")

    def _block(self, block: int) -> list[Planned]:
        return [one for one in trials(self.plan, block + 1) if one.block == block]

    def _ended(self) -> bool:
        looks = self._looks()
        return looks.read().stop is not None

    def _runs_on(self) -> bool:
        """Without a barrier trials of later blocks may be over before somebody decides."""
        schedule = self.plan.schedule
        if schedule is not None and not schedule.holds_back and self.late:
            self.late = False
            self.happened.append("ran on")
            return True
        return False

    def _looks(self) -> Looks:
        reps = self.ledger.directives.planned_reps(self.plan).most
        every = trials(self.plan, reps)
        return Looks(self.plan, lambda: every, self.ledger, epoch=1, reps=reps)

    def _look(self) -> None:
        self._looks().read()

    def _write(self, trial: Planned) -> None:
        self.begun.add(trial.id)
        ledgers.write_trial(self.store, self.plan, trial.record(), self._fate(trial), named_plan=self.named)

    def _fate(self, trial: Planned) -> Fate:
        fixed, draw = self.drawn.fixed, self.draw
        at = fixed.tasks.index(trial.task), fixed.conditions.index(trial.condition), trial.rep % fixed.planned_reps
        passed, cost = float(self.drawn.passed[at]), float(self.drawn.costs[at])
        if np.isnan(passed):
            return Fate(None, losses=(MID_RUN,) * 3)
        losses = draw.choice(((MID_RUN,), (BEFORE_AGENT,), (STOPPED,))) if draw.random() < self.unlikely else ()
        verdict = Verdict.PASSED if passed else draw.choice((Verdict.FAILED, Verdict.FAILED, Verdict.TIMED_OUT))
        if passed and self.drawn.odd == "withdrawn" and draw.random() < 0.4:
            verdict = Verdict.FORGED
        stop = Stop.TIMEOUT if verdict is Verdict.TIMED_OUT else Stop.FINISHED
        if not passed and draw.random() < self.unlikely:
            stop = Stop.CRASHED
        metrics = Metrics(
            cost_usd=None if np.isnan(cost) else cost, turns=max(1, round(10 * cost)) if cost > 0 else None
        )
        return Fate(verdict, stop, losses, metrics)

    def _begin(self, trial: Planned) -> None:
        """An attempt that runs, one that was lost, or none yet."""
        self.begun.add(trial.id)
        draw = self.draw
        which = draw.randint(0, 3)
        if which == 1:
            ledgers.write_running(self.store, self.plan.campaign, trial.record(), 1, b"a line\n")
        elif which >= 2:
            ledgers.write_loss(
                self.store, self.plan.campaign, trial.record(), 1, draw.choice((MID_RUN, BEFORE_AGENT, STOPPED))
            )
            if which == 3:
                ledgers.write_running(self.store, self.plan.campaign, trial.record(), 2, b"a line\n")

    def _extend(self) -> None:
        now = self.ledger.directives.planned_reps(self.plan).most
        try:
            amend(self.ledger, reps=now + self.draw.randint(1, 3))
        except OperatorError:
            return
        self.happened.append("extended")
        reps = self.ledger.directives.planned_reps(self.plan)
        last = self.draw.randint(now, reps.most)
        for block in range(last):
            for trial in self._block(block):
                if trial.id not in self.begun and reps.includes((trial.task, trial.condition), block):
                    self._write(trial)
            self._look()

    def _halt(self) -> None:
        fixed, directives = self.drawn.fixed, self.ledger.directives
        match self.draw.randint(0, 3):
            case 0:
                directives.halt(None, "the key is refused")
                self.happened.append("campaign halted")
            case 1:
                directives.halt_condition(self.draw.choice(fixed.conditions), "its agent crashed")
                self.happened.append("condition halted")
            case _:
                directives.halt(self.draw.choice(fixed.tasks), "its image is broken")
                self.happened.append("task halted")

    def _cancel(self) -> None:
        self.ledger.directives.cancel(now=self.draw.random() < 0.5, by="somebody")
        self.happened.append("cancelled")

    def _quarantine(self) -> None:
        every = (self.ledger.attempts.outcome(one) for one in sorted(self.ledger.attempts.outcome_ids()))
        measured = [one for one in every if one is not None and one.scored is not None]
        for one in self.draw.sample(measured, min(len(measured), self.draw.randint(1, 3))):
            ledgers.quarantine(self.store, self.plan, one, named_plan=self.named)
        if measured:
            self.happened.append("quarantined")
