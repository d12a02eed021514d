"""A campaign as the viewer shows it: opened once, and again when its records have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from trialfleet_analysis.cells import CellCount, cell_counts
from trialfleet_analysis.kept_answer import CampaignAnswer, keep_answer, kept_answer
from trialfleet_analysis.losses import LossCount, loss_counts, lost_attempts
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_analysis.viewer.activity import ActivityReader, CampaignActivity
from trialfleet_analysis.viewer.answer_process import AnswerProcess
from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import PlannedTask
from trialfleet_ledger.store.protocol import Store, StoreError
from trialfleet_ledger.trial_order import Planned, trials

CHECKED_EVERY_S = 2.0  # listings of a store that is asked by several pages
WATCHED = ("amendments", "halts", "quarantine", "outcomes", "cancel")


@dataclass(frozen=True)
class CampaignState:
    """`stamp`: which records this was made of."""

    tables: CampaignTables
    cells: tuple[CellCount, ...]
    losses: tuple[LossCount, ...]
    answering: Future[CampaignAnswer]
    stamp: str

    def answer(self, seconds: float | None) -> CampaignAnswer | None:
        """After at most so long; None: it is not computed yet. Raises what computing it raised."""
        try:
            return self.answering.result(seconds)
        except TimeoutError:
            return None


@dataclass(frozen=True)
class LiveCounts:
    """`exists`: the campaign has a plan. `stamp`: changes with its records."""

    exists: bool
    terminal: int
    stamp: str


@dataclass
class WatchedCampaign:
    """One campaign of a store. Safe to use from several threads: one opens, the others wait for it."""

    store: Store
    campaign: str
    compute: Callable[[CampaignTables], CampaignAnswer] = field(default_factory=AnswerProcess)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _lock: Lock = field(default_factory=Lock)
    _state: CampaignState | None = None
    _counts: tuple[float, LiveCounts] | None = None
    _tasks: Mapping[str, PlannedTask] = field(default_factory=dict[str, PlannedTask])
    _planned: tuple[str, Mapping[str, Planned]] | None = None
    _activity: ActivityReader | None = None
    _activity_lock: Lock = field(default_factory=Lock)

    def state(self) -> CampaignState:
        """As the store has it now, or had it `CHECKED_EVERY_S` ago. While trials are missing, the look is
        recorded. Raises `OperatorError` and `StoreError` as `open_campaign`."""
        with self._lock:
            counts = self._live()
            if self._state is None or self._state.stamp != counts.stamp:
                self._state = self._opened(counts.stamp)
            return self._state

    def counts(self) -> LiveCounts:
        """Raises as `state`."""
        with self._lock:
            return self._live()

    def tasks(self) -> Mapping[str, PlannedTask]:
        """Of the plan, by id; none while there is no plan, or none that can be read: a trial's page does
        without."""
        with self._lock:
            if not self._tasks:
                with suppress(OperatorError, StoreError):
                    plan = Ledger(self.store, self.campaign).plan()
                    self._tasks = {task.order.id: task for task in plan.tasks}
            return self._tasks

    def planned(self) -> Mapping[str, Planned]:
        """Trials of the plan with its amendments, by id. Raises as `state`."""
        with self._lock:
            stamp = self._live().stamp
            if self._planned is None or self._planned[0] != stamp:
                ledger = Ledger(self.store, self.campaign)
                plan = ledger.plan()
                reps = ledger.directives.planned_reps(plan)
                self._planned = stamp, {one.id: one for one in trials(plan, reps.most)}
            return self._planned[1]

    def activity(self) -> CampaignActivity:
        """What runs now. Raises as `state`."""
        planned = self.planned()
        with self._activity_lock:
            if self._activity is None:
                self._activity = ActivityReader(self.store, self.campaign)
            return self._activity.read(planned)

    def progress(self) -> dict[str, object]:
        """What a page that stays open asks for: counts, no rates."""
        counts, state = self.counts(), self._state
        return {
            "exists": counts.exists,
            "terminal": counts.terminal,
            "planned": state.tables.frame.planned if state else None,
            "stamp": counts.stamp,
            "answered": state is not None and state.answering.done(),
        }

    def _live(self) -> LiveCounts:
        if self._counts is None or time.monotonic() - self._counts[0] > CHECKED_EVERY_S:
            self._counts = (time.monotonic(), live_counts(self.store, self.campaign))
        return self._counts[1]

    def _opened(self, stamp: str) -> CampaignState:
        found = open_campaign(self.store, self.campaign, verify=False)
        if not found.interim and not found.verified:
            found = open_campaign(self.store, self.campaign)
        if found.interim and found.terminal:
            found.record_look(self.store, at=time.time(), by="trialfleet view")
        cells = [(cell.task, cell.condition.name) for cell in found.frame.plan.cells]
        return CampaignState(
            tables=found,
            cells=cell_counts(cells, found.tasks, found.trials),
            losses=loss_counts(found.frame.conditions, lost_attempts(found.attempts)),
            answering=self.pool.submit(self._answered, found),
            stamp=stamp,
        )

    def _answered(self, found: CampaignTables) -> CampaignAnswer:
        kept = kept_answer(self.store, found)
        if kept is not None:
            return kept
        made = self.compute(found)
        keep_answer(self.store, found, made)
        return made


def live_counts(store: Store, campaign: str) -> LiveCounts:
    """From listings alone: no record is read, no rate is shown."""
    plan = [(entry.tag, entry.size) for entry in store.list(keys.plan(campaign))]
    found = {kind: [(e.key, e.tag, e.size) for e in store.list(f"{campaign}/{kind}")] for kind in WATCHED}
    return LiveCounts(bool(plan), len(found["outcomes"]), f"{hash((tuple(plan), str(found))):x}")
