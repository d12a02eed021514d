"""`trialfleet status --watch`: where a campaign stands, again and again, from the store alone."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from trialfleet_controller.standing import Standing, read_standing
from trialfleet_runner.store.protocol import Store, StoreError

HOME_AND_CLEAR = "\x1b[H\x1b[J"
RESULTS = ("interim_passed", "interim_measured", "interim_rate")


@dataclass(frozen=True)
class Screen:
    """`redraws`: a terminal, on which each picture takes the place of the one before."""

    as_json: bool
    redraws: bool

    @staticmethod
    def here(*, as_json: bool) -> Screen:
        return Screen(as_json, redraws=not as_json and sys.stdout.isatty())

    def show(self, standing: Standing) -> None:
        if self.as_json:
            return click.echo(json.dumps(counts(standing)))
        from trialfleet_controller.commands.status import lines

        at = time.strftime("%H:%M:%S")
        return self.say("\n".join((at, *lines(standing, rates=False))))

    def say(self, text: str) -> None:
        click.echo(HOME_AND_CLEAR + text if self.redraws else text, color=self.redraws)


def watching(
    store: Store, campaign: str, screen: Screen, *, every_s: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Until every trial is over, or the campaign is cancelled with nothing left running. A store that does not
    answer is asked again. Raises `OperatorError` when there is no such campaign."""
    while True:
        try:
            standing = read_standing(store, campaign)
        except StoreError as error:
            click.echo(f"the store does not answer, trying again: {error}", err=True)
        else:
            screen.show(standing)
            if over(standing):
                return
        sleep(every_s)


def over(standing: Standing) -> bool:
    running = sum(condition.running for condition in standing.conditions.values())
    return standing.terminal >= standing.planned or (standing.cancelled is not None and running == 0)


def counts(standing: Standing) -> dict[str, object]:
    """Without what would be a look at the results."""
    found = standing.as_json()
    conditions = {
        name: {key: value for key, value in condition.items() if key not in RESULTS}
        for name, condition in found["conditions"].items()
    }
    return {**found, "conditions": conditions}
