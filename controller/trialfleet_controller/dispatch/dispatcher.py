"""Drives one campaign, or one shard of it: launches trials in plan order, settles those that ended, and obeys the
ledger's directives and its lease.

One thread owns the table of open trials. A pool of threads does all I/O against ledger and backend, and its
results come back as values. There is no Ray and no cluster here: a `Backend` runs the attempts. `kill -9` may
interrupt any step; a new dispatcher rebuilds its state from the ledger.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import partial

from trialfleet_controller.backends.attempt_times import attempt_deadline_s
from trialfleet_controller.backends.protocol import Backend
from trialfleet_controller.dispatch.breaker import Breaker, ProviderHealth
from trialfleet_controller.dispatch.crash_watch import CrashWatch
from trialfleet_controller.dispatch.drive_options import DriveOptions
from trialfleet_controller.dispatch.epochs import Driver
from trialfleet_controller.dispatch.events import CampaignEvent, EventKind, Note, ignore
from trialfleet_controller.dispatch.io_pool import IoPool, PeriodicTask
from trialfleet_controller.dispatch.journal_check import check_ledger, note_outcomes
from trialfleet_controller.dispatch.launch_requests import Granter
from trialfleet_controller.dispatch.looks import LookNews, Looks, replanned
from trialfleet_controller.dispatch.rate_limit import RateLimit
from trialfleet_controller.dispatch.recovery import Recovery
from trialfleet_controller.dispatch.shards import Activity, DispatcherStatus, Ending, Lease
from trialfleet_controller.dispatch.shutdown import MOMENT_S, Shutdown
from trialfleet_controller.dispatch.stop_conditions import Interrupt, News, PollIntervals, StopConditions
from trialfleet_controller.dispatch.tally import CampaignTally
from trialfleet_controller.dispatch.trial_driver import TrialDriver
from trialfleet_controller.dispatch.trial_steps import TrialSteps
from trialfleet_controller.dispatch.trial_table import CampaignBudget, TrialState, TrialTable
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.spent_money import price_runs
from trialfleet_ledger.store.protocol import CredentialsRefused
from trialfleet_ledger.stored_journal import stand_in_outcome
from trialfleet_ledger.trial_order import Planned

LISTING_SHARE = 10  # listings of ends take at most a tenth of a thread's time
COMMIT_S = 5.0  # beyond the agent's grace: a runner that was told to stop must still commit its end


class Dispatcher:
    """Drives `trials` to their outcomes. `on_change` is called with the tally whenever it may have changed.
    `lease`: what this shard may use; None: the whole campaign's limits. `ends_at`: when the wall-clock limit is
    reached, in seconds since 1970. `looks`: None: these trials are the whole campaign."""

    def __init__(
        self,
        plan: Plan,
        trials: Sequence[Planned],
        ledger: Ledger,
        backend: Backend,
        driver: Driver,
        *,
        lease: Lease | None = None,
        ends_at: float | None = None,
        interrupt: Interrupt | None = None,
        on_change: Callable[[CampaignTally], None] = lambda _: None,
        tell: Callable[[str], None] = lambda _: None,
        note: Note = ignore,
        intervals: PollIntervals | None = None,
        looks: Looks | None = None,
    ) -> None:
        self._plan, self._trials, self._ledger = plan, trials, ledger
        self._backend, self._driver, self._ends_at = backend, driver, ends_at
        self._interrupt = interrupt or Interrupt()
        self._on_change, self._tell, self._note = on_change, tell, note
        self._intervals = intervals or PollIntervals()
        self._patience_s = plan.limits.stop_grace_s + COMMIT_S
        lease = lease or Lease.whole(DriveOptions.of(plan), plan.cost_usd_campaign)
        self._leased = self._lease = lease  # the latest one, and the one in force
        self._rate_limit = RateLimit.of(lease.creates_per_s, burst=lease.creates_burst, now=time.monotonic())
        self._io_pool = IoPool(backend.concurrency)
        self._looks = looks or Looks(plan, lambda: trials, ledger, epoch=driver.number)
        crashes = CrashWatch(ledger, self._looks.counted_trials)
        self._stop_conditions = StopConditions(ledger, crashes, tell, note, every_s=self._intervals.steer_s)
        self._directives = PeriodicTask(self._io_pool, self._stop_conditions.read, self._follow)
        self._heartbeat = PeriodicTask(self._io_pool, driver.beat, lambda _: None)
        self._look = PeriodicTask(self._io_pool, self._looks.read, self._follow_looks)
        self._journal = PeriodicTask(self._io_pool, ledger.journal.flush, lambda _: None)
        self._next_look = self._next_flush = 0.0
        metered = frozenset(name for name, own in plan.agents.items() if own.spec.model is not None)
        budget = CampaignBudget(lease.money_usd, plan.limits.cost_usd or 0.0)
        self._table = TrialTable(trials, blocks_ahead=plan.blocks_ahead, budget=budget, metered=metered)
        self._table.queue.oldest_elsewhere = lease.oldest_open_block
        self._replan(self._looks.news)
        steps = TrialSteps(ledger, backend, Granter(plan, ledger.store), plan.retries, driver.number)
        self._trial_driver = TrialDriver(
            self._table,
            steps,
            self._io_pool,
            self._stop_conditions,
            backend,
            ProviderHealth(Breaker.closed(lease.width)),
            deadline_s=attempt_deadline_s(plan),
            patience_s=self._patience_s,
            intervals=self._intervals,
            tell=tell,
            note=note,
        )
        costs = budget if metered and budget.cap is not None else None
        read_ends = partial(steps.unreported_ends, age_s=self._intervals.ends_age_s)
        self._ends = PeriodicTask(self._io_pool, read_ends, self._follow_ends)
        self._ends_read_at = time.monotonic()
        self._next_ends = self._ends_read_at + self._intervals.ends_s
        self._recovery = Recovery(self._table, self._trial_driver, steps, self._io_pool, costs)
        self._shutdown = Shutdown(
            self._interrupt,
            self._table,
            self._trial_driver,
            self._io_pool,
            backend,
            self._intervals,
            tell,
            patience_s=self._patience_s,
            deadline_s=attempt_deadline_s(plan),
        )
        self._left = False  # interrupted: open trials wait for the next controller
        self._report = DispatcherStatus(open=len(trials))

    def lease(self, lease: Lease) -> None:
        """From now on this lease holds. May be called from any thread."""
        self._leased = lease

    def report(self) -> DispatcherStatus:
        """The status at the end of the last turn. May be called from any thread."""
        return self._report

    def run(self) -> Ending:
        """Run to the end. Raises `OperatorError` (another controller drives the campaign, the store refuses) and
        `StoreError` (the store does not answer). When it returns or raises, no attempt of a backend that is not
        detachable is left running."""
        try:
            self._recover()
            while not self._over():
                self._turn()
            self._read_last_directives()
            self._take_last_look()
            if self._interrupt.level < 2:  # the next controller names what this one leaves
                self._ledger.journal.flush()
            self._publish(Activity.OVER)
            return self._ending()
        except CredentialsRefused:
            self._let_finish()
            raise
        finally:
            self._io_pool.close()
            self._backend.close()

    def _recover(self) -> None:
        """Take up what earlier controllers left."""
        checked = check_ledger(self._ledger)
        survey = checked.listing
        for sentence in checked.sentences():
            self._tell(sentence)
        mine = {trial.id: trial for trial in self._trials}
        done = [trial for trial in self._trials if trial.id in survey.done]
        begun = [mine[trial] for trial in survey.open if trial in mine and trial not in checked.tampered]
        left_out = [mine[trial] for trial in checked.tampered if trial in mine]
        note_outcomes(self._ledger, checked.journal, [trial.id for trial in done])
        self._table.resume([*done, *left_out], begun)
        budget = self._table.budget
        for trial in left_out:  # what it has cost is not known
            self._table.earlier(stand_in_outcome(trial.record()), price_runs(1, None, budget.trial))
        self._looks.left_out = frozenset(checked.tampered)
        self._follow(self._stop_conditions.read())
        self._follow_looks(self._looks.read())
        self._recovery.begin(done, begun)

    def _turn(self) -> None:
        if self._driver.due:
            self._heartbeat.go()
        if self._interrupt.asked:
            self._stop_conditions.ending = Ending.INTERRUPTED
            if self._shutdown.advance():
                self._left = True
                return None
        self._obey_lease()
        self._stop_if_out_of_time()
        self._flush_journal_if_due()
        if self._stop_conditions.due:
            self._directives.go()
        self._read_ends_if_due()
        if not self._interrupt.asked:
            self._look_if_due()
            self._recovery.continue_reading()
        wait_s = self._launch_what_may()
        self._collect(wait_s)
        self._trial_driver.look_at_watched(time.monotonic())
        self._publish(Activity.DRAINING if self._stop_conditions.ending else Activity.DRIVING)
        return self._on_change(self._table.tally)

    def _flush_journal_if_due(self) -> None:
        now = time.monotonic()
        if now >= self._next_flush:
            self._next_flush = now + self._intervals.journal_s
            self._journal.go()

    def _over(self) -> bool:
        if self._interrupt.asked:
            return self._left
        if self._working:
            return False
        return self._stop_conditions.ending is not None or self._table.queue.open == 0

    @property
    def _working(self) -> bool:
        """Whether attempts, I/O or the recovery are under way."""
        return bool(self._table.busy or self._io_pool.busy or self._recovery.under_way)

    def _ending(self) -> Ending:
        """A campaign whose running trials were let finish, whose time was up, that was cancelled, or that its last
        look decided may be complete."""
        total, ending = self._table.tally.total(), self._stop_conditions.ending
        done = total.terminal >= total.planned
        if ending in (Ending.CANCELLED, Ending.DECIDED) and total.measured >= total.planned:
            return Ending.COMPLETE
        if ending is not None and not (done and self._let_finish_all):
            return ending
        if not done:
            return Ending.HALTED
        return Ending.INCOMPLETE if total.abandoned else Ending.COMPLETE

    @property
    def _may_conclude(self) -> bool:
        """Whether what the last trials decide is still written: nothing ended the campaign, or a stop that let
        the last trials finish."""
        total = self._table.tally.total()
        return self._stop_conditions.ending is None or (self._let_finish_all and total.terminal >= total.planned)

    @property
    def _let_finish_all(self) -> bool:
        """Whether the campaign's end let all running trials finish."""
        ending = self._stop_conditions.ending
        return ending is Ending.OUT_OF_TIME or (ending is Ending.INTERRUPTED and self._interrupt.level == 1)

    def _read_last_directives(self) -> None:
        """The last trials to end may have been the first of their condition."""
        if self._may_conclude and self._stop_conditions.crash_watch.due:
            self._follow(self._stop_conditions.read())

    # --- declared looks -----------------------------------------------------------------------------

    def _look_if_due(self) -> None:
        """A look waits for the slowest trial of its blocks, which may be another shard's."""
        now = time.monotonic()
        if now >= self._next_look and self._looks.due(self._table.queue.oldest):
            self._next_look = now + self._intervals.steer_s
            self._look.go()

    def _take_last_look(self) -> None:
        """Of a campaign that ran to its end; the last shard to end finds all blocks over."""
        if self._may_conclude and self._looks.next_at is not None:
            self._follow_looks(self._looks.read())

    def _follow_looks(self, news: LookNews) -> None:
        decision = self._looks.follow(news)
        self._table.queue.barrier = self._looks.barrier
        self._replan(news)
        if decision is not None:
            self._stop_conditions.stop(Ending.DECIDED, self._looks.describe(decision))

    def _replan(self, news: LookNews) -> None:
        """A look may change what later blocks hold: the barrier has kept all of it from starting until now."""
        if news.planned is None:
            return
        self._table.tally.left_out = news.planned.left_out(self._plan.cell_names)
        if self._table.plan(news.planned) and (why := replanned(news)):
            self._tell(why)

    # --- launching and collecting -------------------------------------------------------------------

    def _launch_what_may(self) -> float:
        """Launch what may start; returns the seconds to wait until more may, as far as the rate limit decides."""
        if self._stop_conditions.ending is not None:
            self._trial_driver.withdraw()
        while self._may_start():
            now = time.monotonic()
            if (wait_s := self._rate_limit.wait_s(now)) > 0:
                return wait_s
            opened = self._table.take()
            if opened is None:
                self._stop_if_out_of_money()
                break
            self._rate_limit = self._rate_limit.spent(now)
            self._trial_driver.launch(opened)
        return self._intervals.poll_s

    def _may_start(self) -> bool:
        """A launch may take as long as the cluster likes, so some threads are kept for attempts that end."""
        launchers = self._io_pool.threads - self._io_pool.threads // 4
        health = self._trial_driver.provider_health
        return (
            self._stop_conditions.ending is None
            and self._recovery.may_start
            and self._table.count(TrialState.LAUNCHING) < launchers
            and self._table.busy < min(health.breaker.width, self._backend.slots)
            and time.monotonic() >= health.not_before
        )

    def _collect(self, wait_s: float) -> None:
        """Take what the backend and the pool have finished; wait for the first if nothing is under way here."""
        for finished in self._backend.poll(0 if self._io_pool.busy else min(self._intervals.poll_s, wait_s)):
            self._trial_driver.finished(finished)
        self._io_pool.apply(min(MOMENT_S, self._intervals.poll_s))

    def _read_ends_if_due(self) -> None:
        """A dead kubelet or a broken watch reports nothing. A local runner is a child of this process, which
        notices its end."""
        now = time.monotonic()
        if self._backend.detachable and now >= self._next_ends and self._table.count(TrialState.RUNNING):
            self._ends_read_at, self._next_ends = now, math.inf
            self._ends.go()

    def _follow_ends(self, ends: Set[tuple[str, int]]) -> None:
        """The listing of a large campaign takes longer, and is made less often."""
        now = time.monotonic()
        pause_s = max(self._intervals.ends_s, LISTING_SHARE * (now - self._ends_read_at))
        self._next_ends = now + pause_s
        self._trial_driver.follow_ends(ends)

    # --- why nothing more starts --------------------------------------------------------------------

    @property
    def _starved(self) -> bool:
        """Whether only the budget keeps trials from starting."""
        return not self._working and self._table.broke

    def _stop_if_out_of_money(self) -> None:
        if self._starved and self._lease.oldest_open_block is None:
            self._stop_conditions.stop(Ending.OUT_OF_MONEY, "the campaign's cost cap is reached")

    def _stop_if_out_of_time(self) -> None:
        if self._ends_at is not None and time.time() >= self._ends_at:
            why = "the campaign's wall-clock limit is reached: nothing more starts"
            self._stop_conditions.stop(Ending.OUT_OF_TIME, why)

    def _follow(self, news: News) -> None:
        """Obey what others have written to the ledger."""
        cancelled = self._stop_conditions.cancelled_now
        self._trial_driver.halted(self._stop_conditions.follow(news))
        if self._stop_conditions.cancelled_now and not cancelled:
            self._trial_driver.cancel_all()

    def _obey_lease(self) -> None:
        lease, before = self._leased, self._lease
        if lease == before:
            return
        self._lease = lease
        now = time.monotonic()
        if lease.width != before.width:
            detail = {"width": lease.width, "money_usd": lease.money_usd}
            self._note(CampaignEvent(time.time(), EventKind.LEASED, detail=detail))
        health = self._trial_driver.provider_health.resized(lease.width)
        self._trial_driver.provider_health = health.heard(
            before.elsewhere, lease.elsewhere, in_flight=self._table.busy, now=now
        )
        self._table.budget = replace(self._table.budget, cap=lease.money_usd)
        self._table.queue.oldest_elsewhere = lease.oldest_open_block
        self._rate_limit = self._rate_limit.changed(lease.creates_per_s, burst=lease.creates_burst, now=now)
        if lease.ending is not None:
            self._stop_conditions.stop(lease.ending, f"the campaign ends: {lease.ending}")

    def _publish(self, activity: Activity) -> None:
        self._table.tally.draining = activity.starts_nothing
        self._report = replace(
            self._table.report(self._backend.waiting()),
            activity=Activity.RECOVERING if self._recovery.under_way else activity,
            ending=self._stop_conditions.ending,
            starved=self._starved,
            lease=self._lease,
            answers=self._trial_driver.provider_health.answers,
        )

    def _let_finish(self) -> None:
        """The store refuses the credentials, so nothing more starts. Pods continue without this process. Runners
        of this machine are waited for: they keep their patches here, and a stop would lose what they have cost."""
        if self._backend.detachable or not self._backend.working:
            return
        self._tell(
            f"the store refuses the credentials: nothing more starts. Agents that run finish "
            f"({self._backend.working}), and their patches are kept on this machine for `trialfleet resume`; "
            "Ctrl-C stops them at once and throws away what has not finished"
        )
        until, requests = time.monotonic() + attempt_deadline_s(self._plan), self._interrupt.requests
        intents = {opened.id: opened.last.intent for opened in self._table.in_state(TrialState.RUNNING)}
        running = set(intents)
        while self._backend.working and self._interrupt.requests == requests and time.monotonic() < until:
            for finished in self._backend.poll(self._intervals.poll_s):
                running.discard(finished.id)
        if self._interrupt.requests != requests:
            for attempt in running:
                self._backend.keep_stop(intents[attempt])
