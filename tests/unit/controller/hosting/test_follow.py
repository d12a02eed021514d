"""What the command line does while dispatchers drive."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.dispatch.epochs import Driver, HeartbeatConfig
from trialfleet_controller.dispatch.events import ignore
from trialfleet_controller.dispatch.shards import Activity, DispatcherStatus, Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt
from trialfleet_controller.dispatch.tally import CampaignTally
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import DispatcherFailure, ShardReport, Summary, SupervisorReply
from trialfleet_controller.hosting.monitor import LAST_WORDS_S, monitor
from trialfleet_controller.hosting.supervisor import CampaignSupervisor
from trialfleet_controller.status.progress import view
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.store.directory import DirectoryStore

FAILED = ShardReport(
    0,
    None,
    DispatcherStatus(activity=Activity.OVER),
    Ending.INTERRUPTED,
    DispatcherFailure("operator", "no such namespace", "ns", "make it"),
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
        self.campaign = CampaignSupervisor(Pool(width=2), 2, clock=self.clock)
        self.campaign.exchange(FAILED)

    def exchange(self, said: ShardReport) -> SupervisorReply:
        return self.campaign.exchange(said)

    def summary(self, interrupts: int) -> Summary:
        if self.at is not None and self.clock.now >= self.at:
            self.campaign.exchange(
                ShardReport(1, None, DispatcherStatus(activity=Activity.OVER), Ending.INTERRUPTED)
            )
        return self.campaign.summary(interrupts)


@pytest.mark.parametrize(("other_ends_at", "raised_at"), [(None, LAST_WORDS_S), (10.0, 10.0)])
def test_a_failure_waits_for_the_others_and_not_for_ever(
    tmp_path: Path, other_ends_at: float | None, raised_at: float
) -> None:
    clock = Clock()
    driver = Driver(DirectoryStore(tmp_path), "campaign", 0, HeartbeatConfig(enabled=False))
    with view(as_json=False, terminal=False) as shown, pytest.raises(OperatorError, match="no such namespace"):
        monitor(
            Watched(clock, other_ends_at),
            driver,
            Interrupt(),
            shown,
            ignore,
            empty=CampaignTally({}),
            limits=Limits(),
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

    def exchange(self, said: ShardReport) -> SupervisorReply:
        raise AssertionError("the command line only listens")

    def summary(self, interrupts: int) -> Summary:
        self.asked.append(self.clock.now)
        return Summary(DispatcherStatus(running=9), ending=Ending.INTERRUPTED if interrupts else None)


def test_while_nothing_changes_it_asks_seldom_and_passes_an_interruption_on_at_once(tmp_path: Path) -> None:
    clock, interrupt = Clock(), Interrupt()
    calm, driver = Calm(clock), Driver(DirectoryStore(tmp_path), "campaign", 0, HeartbeatConfig(enabled=False))

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        interrupt.receive(int(clock.now >= 102.5))

    with view(as_json=False, terminal=False) as shown:
        ending = monitor(
            calm,
            driver,
            interrupt,
            shown,
            ignore,
            empty=CampaignTally({}),
            limits=Limits(),
            every_s=0.5,
            sleep=sleep,
            clock=clock,
        )
    assert ending is Ending.INTERRUPTED
    assert clock.now == 102.5
    assert 45 < len(calm.asked) < 60


@dataclass
class Crowded(Calm):
    """Of four attempts one has a place, until a node comes."""

    def summary(self, interrupts: int) -> Summary:
        del interrupts
        pending = {Wait.NO_CPU: 3} if self.clock.now < 60 else dict[Wait, int]()
        ending = Ending.COMPLETE if self.clock.now > 90 else None
        return Summary(DispatcherStatus(activity=Activity.DRIVING, running=4, pending=pending), ending=ending)


def test_attempts_without_a_place_are_said_once_and_again_when_they_have_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    driver = Driver(DirectoryStore(tmp_path), "campaign", 0, HeartbeatConfig(enabled=False))
    with view(as_json=False, terminal=False) as shown:
        monitor(
            Crowded(clock),
            driver,
            Interrupt(),
            shown,
            ignore,
            empty=CampaignTally({}),
            limits=Limits(cpu=1),
            every_s=1.0,
            sleep=clock.sleep,
            clock=clock,
        )
    told = [line for line in capsys.readouterr().out.splitlines() if " trials, " not in line]
    assert [line.partition(":")[0] for line in told] == [
        "3 attempts wait because no node has the CPU",
        "no launched attempt waits for a node any more",
    ]
    assert "would with limits.cpu: 0.23" in told[0]
