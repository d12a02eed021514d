"""Resumes a campaign: reads what earlier controllers began and finished, while new trials start."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial

from trialfleet_controller.dispatch.io_pool import IoPool
from trialfleet_controller.dispatch.trial_driver import TrialDriver
from trialfleet_controller.dispatch.trial_steps import TrialSteps
from trialfleet_controller.dispatch.trial_table import CampaignBudget, TrialState, TrialTable
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.trial_order import Planned

TOGETHER = 500  # outcomes that one call reads


class Recovery:
    """A trial whose records have not been read counts as running. `budget`: given if there is a cost cap; then no
    trial starts before the cost of the finished ones is known."""

    def __init__(
        self,
        table: TrialTable,
        trial_driver: TrialDriver,
        steps: TrialSteps,
        io_pool: IoPool,
        budget: CampaignBudget | None,
    ) -> None:
        self._table, self._trial_driver, self._steps, self._io_pool = table, trial_driver, steps, io_pool
        self._budget = budget
        self._unread: deque[Planned] = deque()
        self._past: deque[Sequence[str]] = deque()
        self._reading_past = False

    def begin(self, done: Iterable[Planned], begun: Sequence[Planned]) -> None:
        """`done`: trials with an outcome; `begun`: trials with attempts and without one."""
        ids = sorted(trial.id for trial in done)
        self._past.extend(ids[i : i + TOGETHER] for i in range(0, len(ids), TOGETHER))
        self._unread.extend(begun)

    @property
    def under_way(self) -> bool:
        return bool(self._unread or self._past or self._reading_past or self._table.count(TrialState.READING))

    @property
    def may_start(self) -> bool:
        """Whether trials may start: under a cost cap, all that was spent must be known."""
        return self._budget is None or not self.under_way

    def continue_reading(self) -> None:
        """Read on while the pool has free threads. Open trials first, because they count as running."""
        while self._unread and self._io_pool.busy < self._io_pool.threads:
            self._trial_driver.read(self._unread.popleft())
        while self._past and not self._reading_past and not self._unread:
            self._reading_past = True
            self._io_pool.do(partial(self._steps.past, self._past.popleft(), self._budget), self._have_read)

    def _have_read(self, outcomes: list[tuple[Outcome, float]]) -> None:
        self._reading_past = False
        for outcome, cost in outcomes:
            self._table.earlier(outcome, cost)
