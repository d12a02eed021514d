"""A campaign as the viewer shows it: opened once, and again when its records have changed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
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
from trialfleet_ledger.interim_results import record_shown_outcomes
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan, PlannedTask
from trialfleet_ledger.store.protocol import ListedKey, Store, StoreError
from trialfleet_ledger.trial_order import Planned, planned_trials

CHECKED_EVERY_S = 2.0  # listings of a store that is asked by several pages
QUICK_S = 0.25  # a listing that takes longer is made less often, so that it takes an eighth of the time
RELOADED_WITHIN_S = 10.0  # by a page that waits for its answer, once that is there
# All whose records change what is shown. A bucket's folders are listed faster than other prefixes.
WATCHED = ("amendments/", "decisions/", "halts/", "quarantine/", "outcomes/", "cancel")


@dataclass
class PendingAnswer:
    """The answer of one state, computed in another thread."""

    computed: Future[CampaignAnswer]
    _shown: bool = False
    _ready_at: float = math.inf

    def __post_init__(self) -> None:
        self.computed.add_done_callback(self._is_ready)

    @property
    def awaited(self) -> bool:
        """A page says that it is being computed, and asks for the same state once it is there. Where trials end
        all the time, a newer state would begin that wait again, each time with one more look."""
        return not self._shown and time.monotonic() < self._ready_at + RELOADED_WITHIN_S

    def get(self, seconds: float | None) -> CampaignAnswer | None:
        """After at most so long; None: it is not computed yet. Raises what computing it raised."""
        try:
            wait([self.computed], seconds)
            return self.computed.result(0) if self.computed.done() else None
        finally:
            self._shown = self.computed.done()

    def _is_ready(self, _: Future[CampaignAnswer]) -> None:
        self._ready_at = time.monotonic()


@dataclass(frozen=True)
class CampaignState:
    """`stamp`: which records this was made of; `apart`: outcomes of those that the plan has no place for, less
    trials that count without one, since their records were deleted."""

    tables: CampaignTables
    cells: tuple[CellCount, ...]
    losses: tuple[LossCount, ...]
    answer: PendingAnswer
    stamp: str
    apart: int


@dataclass(frozen=True)
class LiveCounts:
    """`exists`: the campaign has a plan. `stamp`: changes with its records. `outcomes`: as listed."""

    exists: bool
    terminal: int
    stamp: str
    outcomes: tuple[ListedKey, ...] = field(repr=False)


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
    _plan: Plan | None = None
    _planned: tuple[str, int, Mapping[str, Planned]] | None = None
    _activity: ActivityReader | None = None
    _looked_at: int | None = None
    _activity_lock: Lock = field(default_factory=Lock)

    def state(self) -> CampaignState:
        """As the store has it now, had it `CHECKED_EVERY_S` ago, or had it when a page began to wait for the
        answer. While trials are missing, the look is recorded. Raises `OperatorError` and `StoreError` as
        `open_campaign`."""
        with self._lock:
            counts = self._live()
            held = self._state
            if held is None or (held.stamp != counts.stamp and not held.answer.awaited):
                self._state = self._opened(counts)
                return self._state
            return held

    def counts(self) -> LiveCounts:
        """Raises as `state`."""
        with self._lock:
            return self._live()

    def tasks(self) -> Mapping[str, PlannedTask]:
        """Of the plan, by id; none while there is no plan, or none that can be read: a trial's page does
        without."""
        plan = self._kept_plan()
        return {} if plan is None else {task.order.id: task for task in plan.tasks}

    def title(self) -> str:
        """The campaign as a reader sees it named; its name alone while there is no plan that can be read."""
        plan = self._kept_plan()
        return self.campaign if plan is None else plan.title

    def planned(self) -> Mapping[str, Planned]:
        """Trials of the plan with its amendments, without those that looks have left out, by id. Raises as
        `state`."""
        return self._counted()[1]

    def _counted(self) -> tuple[int, Mapping[str, Planned]]:
        """How many trials are planned, and which; fewer than these where a look leaves out some of them."""
        with self._lock:
            stamp = self._live().stamp
            if self._planned is None or self._planned[0] != stamp:
                ledger = Ledger(self.store, self.campaign)
                plan = ledger.plan()
                reps = ledger.directives.planned_reps(plan)
                kept = {one.id: one for one in planned_trials(plan, reps)}
                self._planned = stamp, reps.trials(plan.cell_names), kept
            return self._planned[1:]

    def record_look(self) -> None:
        """For pages that show outcomes of single trials: one look for each block's worth of outcomes, however
        long a page stays open. Raises as `state`; without a plan that can be read there is nothing to look at."""
        counts, plan = self.counts(), self._kept_plan()
        seen = None if plan is None else counts.terminal // len(plan.cell_names)
        if plan is None or not counts.terminal or seen == self._looked_at:
            return
        self._looked_at = seen
        ended = [entry.key.rpartition("/")[2].removesuffix(".json") for entry in counts.outcomes]
        record_shown_outcomes(Ledger(self.store, self.campaign), plan, by="trialfleet view", ended=ended)

    def activity(self) -> CampaignActivity:
        """What runs now, and what has ended last. Raises as `state`."""
        self.record_look()
        count, planned = self._counted()
        with self._activity_lock:
            if self._activity is None:
                self._activity = ActivityReader(self.store, self.campaign)
            return self._activity.read(planned, count)

    def progress(self) -> dict[str, object]:
        """What a page that stays open asks for: counts, no rates."""
        counts, state = self.counts(), self._state
        return {
            "exists": counts.exists,
            "terminal": counts.terminal - (state.apart if state else 0),
            "planned": state.tables.frame.planned if state else None,
            "stamp": counts.stamp,
            "answered": state is not None and state.answer.computed.done(),
        }

    def _kept_plan(self) -> Plan | None:
        with self._lock:
            if self._plan is None:
                with suppress(OperatorError, StoreError):
                    self._plan = Ledger(self.store, self.campaign).plan()
            return self._plan

    def _live(self) -> LiveCounts:
        if self._counts is None or time.monotonic() >= self._counts[0]:
            began = time.monotonic()
            counts, now = live_counts(self.store, self.campaign), time.monotonic()
            self._counts = now + CHECKED_EVERY_S * max(1.0, (now - began) / QUICK_S), counts
        return self._counts[1]

    def _opened(self, counts: LiveCounts) -> CampaignState:
        listed = counts.outcomes
        found = open_campaign(self.store, self.campaign, verify=False, outcomes=listed)
        if not found.interim and not found.verified:
            found = open_campaign(self.store, self.campaign, outcomes=listed)
        found.record_look(self.store, at=time.time(), by="trialfleet view")
        cells = [(cell.task, cell.condition.name) for cell in found.frame.plan.cells]
        return CampaignState(
            tables=found,
            cells=cell_counts(cells, found.tasks, found.trials),
            losses=loss_counts(found.frame.conditions, lost_attempts(found.attempts)),
            answer=PendingAnswer(self.pool.submit(self._answered, found)),
            stamp=counts.stamp,
            apart=counts.terminal - found.trials.num_rows,
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
    plan = tuple(store.list(keys.plan(campaign)))
    found = {kind: tuple(store.list(f"{campaign}/{kind}")) for kind in WATCHED}
    stamp = hash((plan, *found.values()))
    return LiveCounts(bool(plan), len(found["outcomes/"]), f"{stamp:x}", found["outcomes/"])
