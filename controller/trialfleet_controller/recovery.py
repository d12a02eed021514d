"""Taking a campaign up again: what earlier controllers began and finished is read while new trials start."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import partial

from trialfleet_controller.errands import Errands
from trialfleet_controller.lives import Lives
from trialfleet_controller.money import Purse
from trialfleet_controller.plan import Planned
from trialfleet_controller.steps import Steps
from trialfleet_controller.trialbook import At, Trialbook
from trialfleet_runner.contract import Outcome

TOGETHER = 500  # outcomes that one errand reads


class Recovery:
    """A trial whose records have not been read counts as running. `purse`: given when a cost cap makes it
    necessary to know what finished trials have cost before another starts."""

    def __init__(self, book: Trialbook, lives: Lives, steps: Steps, errands: Errands, purse: Purse | None) -> None:
        self._book, self._lives, self._steps, self._errands = book, lives, steps, errands
        self._purse = purse
        self._unread: deque[Planned] = deque()
        self._past: deque[Sequence[str]] = deque()
        self._reading_past = False

    def begin(self, done: Collection[str], begun: Sequence[Planned]) -> None:
        ids = sorted(done)
        self._past.extend(ids[i : i + TOGETHER] for i in range(0, len(ids), TOGETHER))
        self._unread.extend(begun)
        self._book.held(begun)

    @property
    def under_way(self) -> bool:
        return bool(self._unread or self._past or self._reading_past or self._book.count(At.READING))

    @property
    def may_start(self) -> bool:
        """Whether what has been spent is known, as far as that matters."""
        return self._purse is None or not self.under_way

    def go_on(self) -> None:
        """Read on, leaving half of the errands' room to launches. Trials first: they hold places."""
        while self._unread and self._errands.busy < self._errands.threads:
            self._lives.read(self._unread.popleft())
        while self._past and not self._reading_past and not self._unread:
            self._reading_past = True
            self._errands.do(partial(self._steps.past, self._past.popleft(), self._purse), self._have_read)

    def _have_read(self, outcomes: list[tuple[Outcome, float]]) -> None:
        self._reading_past = False
        for outcome, cost in outcomes:
            self._book.earlier(outcome, cost)
