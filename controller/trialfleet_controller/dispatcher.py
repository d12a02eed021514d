"""The core that drives one campaign, or one shard of it: launches in plan order, settles what ended, obeys the
ledger and its lease.

One thread keeps the book; a few others run errands against ledger and backend, and their results come back as
values. No Ray, no cluster: a `Backend` runs the attempts. Every step may be cut by `kill -9`; a new dispatcher
rebuilds its state from the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from trialfleet_controller.backend import Backend
from trialfleet_controller.breaker import Breaker
from trialfleet_controller.caution import Caution
from trialfleet_controller.epochs import Driver
from trialfleet_controller.errands import Errands, Round
from trialfleet_controller.events import Event, Kind, Note, ignore
from trialfleet_controller.leaving import MOMENT_S, leave_running, stop_children
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.lifecycle import Budgets
from trialfleet_controller.lives import Lives
from trialfleet_controller.money import Purse
from trialfleet_controller.orders import Granter, attempt_deadline_s
from trialfleet_controller.pace import Pace
from trialfleet_controller.plan import Planned
from trialfleet_controller.recovery import Recovery
from trialfleet_controller.shards import Activity, Ending, Lease, Report
from trialfleet_controller.steering import Interrupt, News, Rhythm, Steering
from trialfleet_controller.steps import Steps
from trialfleet_controller.tally import Tally
from trialfleet_controller.trialbook import At, Trialbook
from trialfleet_runner.campaign import Plan

COMMIT_S = 5.0  # a runner told to stop gives its agent the whole grace; then it must still commit what was lost


class Dispatcher:
    """Drives `trials` to their outcomes. `on_change` is called with the tally whenever it may have changed.
    `lease`: when a campaign is driven by several; one alone leases to itself."""

    def __init__(
        self,
        plan: Plan,
        trials: Sequence[Planned],
        ledger: Ledger,
        backend: Backend,
        driver: Driver,
        *,
        lease: Lease | None = None,
        interrupt: Interrupt | None = None,
        on_change: Callable[[Tally], None] = lambda _: None,
        tell: Callable[[str], None] = lambda _: None,
        note: Note = ignore,
        rhythm: Rhythm | None = None,
    ) -> None:
        self._plan, self._trials, self._ledger = plan, trials, ledger
        self._backend, self._driver = backend, driver
        self._interrupt = interrupt or Interrupt()
        self._on_change, self._tell, self._note = on_change, tell, note
        self._rhythm = rhythm or Rhythm()
        self._patience_s = plan.limits.stop_grace_s + COMMIT_S
        self._leased = self._lease = lease or Lease.whole(plan)
        self._pace = Pace.of(self._lease.creates_per_s, burst=self._lease.creates_burst, now=time.monotonic())
        self._errands = Errands(backend.concurrency)
        self._steering = Steering(ledger, tell, note, every_s=self._rhythm.steer_s)
        self._steps = Steps(ledger, backend, Granter(plan, ledger.store), Budgets.of(plan.retries), driver.number)
        self._look = Round(self._errands, self._steering.read, self._heed)
        self._beat = Round(self._errands, driver.beat, lambda _: None)
        self._left = False  # interrupted: what is open is the next controller's
        self._begin(frozenset())
        self._report = Report(open=len(trials))

    def _begin(self, done: frozenset[str]) -> None:
        """An empty book, but for what is done."""
        metered = self._plan.agent.model is not None
        purse = Purse(self._lease.money_usd, self._plan.limits.cost_usd or 0.0)
        self._book = Trialbook(
            self._trials, done, blocks_ahead=self._plan.blocks_ahead, purse=purse, metered=metered
        )
        self._book.queue.oldest_elsewhere = self._lease.oldest_open_block
        self._lives = Lives(
            self._book,
            self._steps,
            self._errands,
            self._steering,
            self._backend,
            Caution(Breaker.closed(self._lease.width)),
            deadline_s=attempt_deadline_s(self._plan),
            patience_s=self._patience_s,
            rhythm=self._rhythm,
            tell=self._tell,
            note=self._note,
        )
        costs = purse if metered and purse.cap is not None else None
        self._recovery = Recovery(self._book, self._lives, self._steps, self._errands, costs)

    @property
    def tally(self) -> Tally:
        return self._book.tally

    def lease(self, lease: Lease) -> None:
        """From now on this holds. May be called from any thread."""
        self._leased = lease

    def report(self) -> Report:
        """How it stands, as of its last turn. May be called from any thread."""
        return self._report

    def run(self) -> Ending:
        """To the end. Raises `OperatorError` (superseded, store refuses), `StoreError` (store does not answer);
        then and always, no attempt of a backend that is not detachable is left running."""
        try:
            self._recover()
            while not self._over():
                self._turn()
            self._say(Activity.OVER)
            return self._steering.ending or self._natural_end()
        finally:
            self._errands.close()
            self._backend.close()

    def _recover(self) -> None:
        survey = self._ledger.survey()
        mine = {trial.id: trial for trial in self._trials}
        done = survey.done & mine.keys()
        self._begin(done)
        self._heed(self._steering.read())
        self._recovery.begin(done, [mine[trial] for trial in survey.open if trial in mine])

    def _turn(self) -> None:
        if self._driver.due:
            self._beat.go()
        if self._interrupt.asked and self._steering.ending is not Ending.INTERRUPTED:
            return self._wind_down()
        self._obey_lease()
        if self._steering.due:
            self._look.go()
        self._recovery.go_on()
        if self._steering.ending is not None:
            self._lives.withdraw()
        wait_s = self._launch_what_may()
        for finished in self._backend.poll(0 if self._errands.busy else min(self._rhythm.poll_s, wait_s)):
            self._lives.finished(finished)
        self._errands.apply(min(MOMENT_S, self._rhythm.poll_s))
        self._lives.look_at_watched(time.monotonic())
        self._say(Activity.DRAINING if self._steering.ending else Activity.DRIVING)
        return self._on_change(self.tally)

    def _over(self) -> bool:
        if self._left:
            return True
        if self._book.busy or self._errands.busy or self._recovery.under_way:
            return False
        return self._steering.ending is not None or self._book.queue.open == 0

    def _natural_end(self) -> Ending:
        total = self.tally.total()
        return Ending.COMPLETE if total.terminal >= total.planned else Ending.HALTED

    # --- starting -----------------------------------------------------------------------------------

    def _launch_what_may(self) -> float:
        """Start what may start; returns the seconds until more may, as far as the pace decides."""
        while self._may_start():
            now = time.monotonic()
            if (wait_s := self._pace.wait_s(now)) > 0:
                return wait_s
            opened = self._book.take()
            if opened is None:
                self._starve()
                break
            self._pace = self._pace.spent(now)
            self._lives.launch(opened)
        return self._rhythm.poll_s

    def _may_start(self) -> bool:
        """A launch may take as long as the cluster likes: some threads are kept for those that end."""
        launchers = self._errands.threads - self._errands.threads // 4
        return (
            self._steering.ending is None
            and self._recovery.may_start
            and self._book.count(At.LAUNCHING) < launchers
            and self._book.busy < min(self._lives.caution.breaker.width, self._backend.slots)
            and time.monotonic() >= self._lives.caution.not_before
        )

    @property
    def _starved(self) -> bool:
        """Whether only the money keeps it from going on."""
        idle = not self._book.busy and not self._errands.busy and not self._recovery.under_way
        return idle and self._book.broke

    def _starve(self) -> None:
        if self._starved and self._lease.oldest_open_block is None:
            self._steering.stop(Ending.OUT_OF_MONEY, "the campaign's cost cap is reached")

    # --- what others say ----------------------------------------------------------------------------

    def _heed(self, news: News) -> None:
        cancelled = self._steering.cancelled_now
        self._lives.halted(self._steering.heed(news))
        if self._steering.cancelled_now and not cancelled:
            self._lives.cancel_all()

    def _obey_lease(self) -> None:
        lease = self._leased
        if lease == self._lease:
            return
        if lease.width != self._lease.width:
            detail = {"width": lease.width, "money_usd": lease.money_usd}
            self._note(Event(time.time(), Kind.LEASED, detail=detail))
        before, self._lease = self._lease, lease
        self._lives.caution = self._lives.caution.resized(lease.width).heard(
            before.elsewhere, lease.elsewhere, in_flight=self._book.busy, now=time.monotonic()
        )
        self._book.purse = replace(self._book.purse, cap=lease.money_usd)
        self._book.queue.oldest_elsewhere = lease.oldest_open_block
        self._pace = self._pace.changed(lease.creates_per_s, burst=lease.creates_burst, now=time.monotonic())
        if lease.ending is not None:
            self._steering.stop(lease.ending, f"the campaign ends: {lease.ending}")

    def _say(self, activity: Activity) -> None:
        self._report = replace(
            self._book.report(),
            activity=Activity.RECOVERING if self._recovery.under_way else activity,
            ending=self._steering.ending,
            starved=self._starved,
            lease=self._lease,
            answers=self._lives.caution.answers,
        )

    # --- interruption -------------------------------------------------------------------------------

    def _wind_down(self) -> None:
        """Ctrl-C."""
        self._steering.ending, self._left = Ending.INTERRUPTED, True
        if self._backend.detachable:
            leave_running(self._errands, self._interrupt, patience_s=self._rhythm.wind_down_s)
            words = "`trialfleet resume` takes them up, `trialfleet cancel --now` stops them"
            return self._tell(f"{self._book.busy} attempts go on; {words}")
        self._tell("stopping; once more to stop at once")
        self._lives.stop(grace_s=self._patience_s)
        patience_s = self._patience_s + self._rhythm.wind_down_s
        return stop_children(
            self._lives, self._book, self._errands, self._backend, self._interrupt, patience_s=patience_s
        )
