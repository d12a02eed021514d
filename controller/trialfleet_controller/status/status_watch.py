"""`trialfleet status --watch`: shows the status repeatedly, from the store alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from trialfleet_controller.status.campaign_status import CampaignStatus, State, read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.store.protocol import Store, StoreError

RESULTS = ("interim_passed", "interim_measured", "interim_rate")


@dataclass(frozen=True)
class StatusScreen:
    """`redraws`: on a terminal, each status replaces the one before."""

    as_json: bool
    redraws: bool

    @staticmethod
    def here(*, as_json: bool) -> StatusScreen:
        return StatusScreen(as_json, redraws=not as_json and sys.stdout.isatty())

    def show(self, status: CampaignStatus) -> None:
        if self.as_json:
            return click.echo(printable_json(counts(status)))
        at = time.strftime("%H:%M:%S")
        return self.say("\n".join((at, *lines(status, rates=False))))

    def say(self, text: str) -> None:
        if self.redraws:
            from rich.control import Control

            from trialfleet_ledger.screen import Screen

            Screen().control(Control.home(), Control.clear())
        click.echo(text)


def watch_until_over(store: Store, campaign: str, screen: StatusScreen, *, every_s: float) -> None:
    """`watch_status` of a command, whose exit code says whether it saw the end. Ctrl-C ends it without a word."""
    try:
        watch_status(store, campaign, screen, every_s=every_s)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(CommandExit.INTERRUPTED) from None


def watch_status(
    store: Store,
    campaign: str,
    screen: StatusScreen,
    *,
    every_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show the status until every trial is over, or the campaign is cancelled or decided and nothing runs. A store
    that does not answer is asked again. Raises `OperatorError` if there is no such campaign."""
    while True:
        try:
            status = read_status(store, campaign)
        except StoreError as error:
            click.echo(f"the store does not answer, trying again: {error}", err=True)
        else:
            screen.show(status)
            if over(status):
                return
        sleep(every_s)


def over(status: CampaignStatus) -> bool:
    running = sum(condition.running + condition.pending for condition in status.conditions.values())
    ended = status.cancelled is not None or status.state is State.DECIDED
    return status.terminal >= status.planned or (ended and running == 0)


def counts(status: CampaignStatus) -> dict[str, object]:
    """Without rates, which would be a look at the results."""
    found = status.as_json()
    conditions = {
        name: {key: value for key, value in condition.items() if key not in RESULTS}
        for name, condition in found["conditions"].items()
    }
    return {**found, "conditions": conditions}
