"""What the command line does while dispatchers drive."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trialfleet_controller.epochs import Driver, Pulse
from trialfleet_controller.events import ignore
from trialfleet_controller.hosting.follow import LAST_WORDS_S, follow
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import Failure, Reply, Said, Summary
from trialfleet_controller.hosting.supervisor import Campaign
from trialfleet_controller.progress import view
from trialfleet_controller.shards import Activity, Ending, Report
from trialfleet_controller.steering import Interrupt
from trialfleet_controller.tally import Tally
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.directory import DirectoryStore

FAILED = Said(
    0,
    None,
    Report(activity=Activity.OVER),
    Ending.INTERRUPTED,
    Failure("operator", "no such namespace", "ns", "make it"),
)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Watched:
    """A supervisor that has heard of one dispatcher's failure; the other speaks `at`, or never."""

    clock: Clock
    at: float | None

    def __post_init__(self) -> None:
        self.campaign = Campaign(Pool(width=2), 2, clock=self.clock)
        self.campaign.exchange(FAILED)

    def exchange(self, said: Said) -> Reply:
        return self.campaign.exchange(said)

    def summary(self, interrupts: int) -> Summary:
        if self.at is not None and self.clock.now >= self.at:
            self.campaign.exchange(Said(1, None, Report(activity=Activity.OVER), Ending.INTERRUPTED))
        return self.campaign.summary(interrupts)


@pytest.mark.parametrize(("other_ends_at", "raised_at"), [(None, LAST_WORDS_S), (10.0, 10.0)])
def test_a_failure_waits_for_the_others_and_not_for_ever(
    tmp_path: Path, other_ends_at: float | None, raised_at: float
) -> None:
    clock = Clock()
    driver = Driver(DirectoryStore(tmp_path), "campaign", 0, Pulse(enabled=False))
    with view(as_json=False, terminal=False) as shown, pytest.raises(OperatorError, match="no such namespace"):
        follow(
            Watched(clock, other_ends_at),
            driver,
            Interrupt(),
            shown,
            ignore,
            empty=Tally({}),
            every_s=1.0,
            sleep=clock.sleep,
            clock=clock,
        )
    assert clock.now == raised_at


@dataclass
class Calm:
    """A supervisor of attempts that go on, until it is told to stop. `asked`: when it was."""

    clock: Clock
    asked: list[float] = field(default_factory=list[float])

    def exchange(self, said: Said) -> Reply:
        raise AssertionError("the command line only listens")

    def summary(self, interrupts: int) -> Summary:
        self.asked.append(self.clock.now)
        return Summary(Report(running=9), ending=Ending.INTERRUPTED if interrupts else None)


def test_while_nothing_changes_it_asks_seldom_and_passes_an_interruption_on_at_once(tmp_path: Path) -> None:
    clock, interrupt = Clock(), Interrupt()
    calm, driver = Calm(clock), Driver(DirectoryStore(tmp_path), "campaign", 0, Pulse(enabled=False))

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        interrupt.asked = clock.now >= 102.5

    with view(as_json=False, terminal=False) as shown:
        ending = follow(
            calm, driver, interrupt, shown, ignore, empty=Tally({}), every_s=0.5, sleep=sleep, clock=clock
        )
    assert ending is Ending.INTERRUPTED
    assert clock.now == 102.5
    assert 45 < len(calm.asked) < 60
