"""What the command line does while dispatchers drive: beat, pass on Ctrl-C, show."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from trialfleet_controller.epochs import Driver
from trialfleet_controller.events import Event, Kind, Note
from trialfleet_controller.hosting.cadence import Cadence
from trialfleet_controller.hosting.messages import Summary, Supervisor, Unanswered
from trialfleet_controller.progress import View
from trialfleet_controller.shards import Ending, Report
from trialfleet_controller.steering import Interrupt
from trialfleet_controller.tally import Tally

EVERY_S = 0.5
LAST_WORDS_S = 60.0  # for the other dispatchers, once one has failed


def follow(
    supervisor: Supervisor,
    driver: Driver,
    interrupt: Interrupt,
    view: View,
    note: Note,
    *,
    empty: Tally,
    every_s: float = EVERY_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """To the end of every dispatcher, or until one has failed and the others have had `LAST_WORDS_S` to end.
    `empty`: the campaign's tally before anything is known. Raises `OperatorError`, `StoreError` and, with the
    traceback of a bug, `RuntimeError`."""
    silent: tuple[int, ...] = ()
    failed_at: float | None = None
    cadence, last = Cadence.of(every_s), Summary(Report())
    while True:
        driver.beat()
        interrupts = interrupt.asked + interrupt.now
        try:
            summary = supervisor.summary(interrupts)
        except Unanswered:
            sleep(every_s)
            continue
        _log(summary, view, note)
        view.show(_tally(empty, summary.report))
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
        cadence, last = cadence.after(news=not still), summary
        slept = 0.0
        while slept < cadence.wait_s and interrupts == interrupt.asked + interrupt.now:  # a Ctrl-C goes on at once
            sleep(every_s)
            slept += every_s
            driver.beat()


def _log(summary: Summary, view: View, note: Note) -> None:
    for event in summary.events:
        note(event)
        if event.kind is Kind.MESSAGE:
            view.tell(str(event.detail["message"]))
    if summary.missed:
        note(Event(time.time(), Kind.MESSAGE, detail={"message": f"{summary.missed} events were not kept"}))


def _tally(empty: Tally, report: Report) -> Tally:
    return replace(
        empty,
        conditions={**empty.conditions, **report.conditions},
        losses=Counter(report.losses),
        before=report.before,
    )


def _of_silence(shards: tuple[int, ...]) -> str:
    if not shards:
        return "every dispatcher answers again"
    named = ", ".join(map(str, shards))
    return f"no word from the dispatcher of shard {named}: it is being restarted, or there is no node for it"
