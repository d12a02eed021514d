"""What the command line does while dispatchers drive: it writes heartbeats, passes Ctrl-C on, shows progress."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from trialfleet_controller.dispatch.epochs import Driver
from trialfleet_controller.dispatch.events import CampaignEvent, EventKind, Note
from trialfleet_controller.dispatch.shards import DispatcherStatus, Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt
from trialfleet_controller.dispatch.tally import CampaignTally
from trialfleet_controller.dispatch.unplaced_attempts import PlacementNotice
from trialfleet_controller.hosting.messages import PollBackoff, Summary, Supervisor, Unanswered
from trialfleet_controller.status.progress import View
from trialfleet_ledger.records.agent import Limits

EVERY_S = 0.5
LAST_WORDS_S = 60.0  # for the other dispatchers, once one has failed


def monitor(
    supervisor: Supervisor,
    driver: Driver,
    interrupt: Interrupt,
    view: View,
    note: Note,
    *,
    empty: CampaignTally,
    limits: Limits,
    every_s: float = EVERY_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Until every dispatcher has ended, or one has failed and the others have had `LAST_WORDS_S` to end.
    `empty`: the campaign's tally before anything is known; `limits`: of its attempts. Raises `OperatorError`,
    `StoreError` and, with the traceback of a bug, `RuntimeError`."""
    silent: tuple[int, ...] = ()
    failed_at: float | None = None
    placement = PlacementNotice(limits)
    backoff, last = PollBackoff.of(every_s), Summary(DispatcherStatus())
    while True:
        driver.beat(last.report.pending)
        interrupts = interrupt.requests
        try:
            summary = supervisor.summary(interrupts)
        except Unanswered:
            sleep(every_s)
            continue
        _log(summary, view, note)
        view.show(_tally(empty, summary.report))
        waiting = summary.report.pending
        if (news := placement.news(waiting, summary.report.running - sum(waiting.values()), clock())) is not None:
            view.tell(news)
        if summary.silent != silent:
            silent = summary.silent
            view.tell(_of_silence(silent))
        if summary.failure is not None:
            failed_at = clock() if failed_at is None else failed_at
            if summary.ending is not None or clock() - failed_at >= LAST_WORDS_S:
                raise summary.failure.raised()
        elif summary.ending is not None:
            return summary.ending
        still = summary == last and summary.report.running > 0 and failed_at is None
        backoff, last = backoff.after(news=not still), summary
        slept = 0.0
        while slept < backoff.wait_s and interrupts == interrupt.requests:  # Ctrl-C is passed on at once
            sleep(every_s)
            slept += every_s
            driver.beat(last.report.pending)


def _log(summary: Summary, view: View, note: Note) -> None:
    for event in summary.events:
        note(event)
        if event.kind is EventKind.MESSAGE:
            view.tell(str(event.detail["message"]))
    if summary.missed:
        note(
            CampaignEvent(
                time.time(), EventKind.MESSAGE, detail={"message": f"{summary.missed} events were dropped"}
            )
        )


def _tally(empty: CampaignTally, report: DispatcherStatus) -> CampaignTally:
    return replace(
        empty,
        conditions={**empty.conditions, **report.conditions},
        losses=Counter(report.losses),
        before=report.before,
        left_out=report.left_out if report.conditions else empty.left_out,
        pending=report.pending,
        draining=report.activity.starts_nothing,
    )


def _of_silence(shards: tuple[int, ...]) -> str:
    if not shards:
        return "every dispatcher responds again"
    named = ", ".join(map(str, shards))
    return f"the dispatcher of shard {named} is not responding (it is restarting or cannot be scheduled)"
