"""An operator's Ctrl-C and a supervisor's SIGTERM: real controllers, runners and signals. What had begun is
finished or named, and a resume reaches what an undisturbed campaign reaches."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support import fake_campaign
from tests.support.audit import audit, records
from tests.support.fake_campaign import drive, fake_argv
from tests.support.plans import CAMPAIGN, make_plan
from tests.support.processes import survivors
from tests.support.waiting import wait_until
from trialfleet_controller.backends.local.process_backend import ProcessBackend
from trialfleet_controller.dispatch.epochs import HeartbeatConfig
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.attempt import End, Start
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import CredentialsRefused

CHECKOUT = Path(__file__).parents[2]
BOTH = "2 running trials"
NO_EPOCHS = HeartbeatConfig(enabled=False)  # of a controller that is this process, and lives
TWICE = (signal.SIGINT, signal.SIGINT)


class Terminal:
    """A controller's terminal, on one store. A block of the campaign is two trials, which run side by side."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.log = folder, folder / "store", folder / "log"
        self.plan = make_plan(tasks=1, reps=1)
        self.log.touch()

    def run(self, behaviour: str, *signals: int, begun: str = "execution", finish_s: float = 60) -> str:
        """What a controller prints that gets the signals once two trials have `begun`; each is sent after the one
        before was answered."""
        there = self.count(begun)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fake_campaign", str(self.root), f"{behaviour},log={self.log}",
             "--tasks", "1", "--reps", str(self.plan.reps), "--finish", str(finish_s)],
            cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        wait_until(lambda: self.count(begun) == there + 2, by=process)
        lines = list[str]()
        for number in signals:
            os.killpg(process.pid, number)  # as a terminal does: to everyone in the foreground
            while not lines or not lines[-1].startswith(("stopping", "killing")):
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            lines.append("")
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 130, (lines, rest)
        wait_until(lambda: not survivors(self.folder), within_s=30)
        return "".join([*lines, rest])

    def count(self, begun: str) -> int:
        if begun == "execution":
            return len(self.log.read_text().splitlines())
        return len(list(self.root.rglob(begun))) if self.root.exists() else 0

    def resume(self, behaviour: str = "sleep=0") -> list[Outcome]:
        """The outcomes that the next controller reaches."""
        backend = ProcessBackend(slots=2, runner=fake_argv(f"{behaviour},log={self.log}"))
        assert drive(self.root, self.plan, backend) in (Ending.COMPLETE, Ending.INCOMPLETE)
        return audit(self.root, self.plan, log=self.log)

    def losses(self) -> list[LossClass]:
        ends = [raw for key, raw in records(self.root, CAMPAIGN).items() if key.endswith("/end.json")]
        found = [End.model_validate_json(raw).loss for raw in ends]
        return [loss.loss for loss in found if loss is not None]


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    return Terminal(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """What a campaign measures that nobody interrupts."""
    quiet = Terminal(tmp_path_factory.mktemp("undisturbed"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIALFLEET_SCRATCH", str(quiet.folder / "scratch"))
        return [outcome.scored for outcome in quiet.resume()]


def test_once_running_trials_finish(terminal: Terminal, undisturbed: list[object]) -> None:
    terminal.plan = make_plan(tasks=1, reps=3)
    printed = terminal.run("sleep=1.5", signal.SIGINT)
    assert f"stopping: nothing more starts; {BOTH} may finish within 60 s. Ctrl-C again" in printed
    assert "the running trials have ended: nothing is thrown away" in printed
    assert (terminal.count("execution"), terminal.losses()) == (2, [])
    assert len(list((terminal.root / CAMPAIGN / "outcomes").iterdir())) == 2
    outcomes = terminal.resume()
    assert [outcome.scored for outcome in outcomes[:2]] == undisturbed
    assert all((outcome.attempts, outcome.losses) == (1, ()) for outcome in outcomes)


@pytest.mark.parametrize(
    ("signals", "finish_s", "sentence"),
    [
        ((signal.SIGINT,), 0.5, f"{BOTH} have not finished within 1 s: stopping"),
        (TWICE, 60, f"stopping {BOTH} at once"),
        ((signal.SIGTERM,), 60, f"stopping {BOTH} at once"),
        ((signal.SIGHUP,), 60, f"stopping {BOTH} at once"),
    ],
)
def test_what_is_thrown_away_is_named_and_runs_again(
    terminal: Terminal, undisturbed: list[object], signals: tuple[int, ...], finish_s: float, sentence: str
) -> None:
    printed = terminal.run("sleep=250", *signals, finish_s=finish_s)
    assert sentence in printed
    assert "interrupted by you: 2 (2 while the agent ran: its work is thrown away, and the trial runs" in printed
    assert terminal.losses() == [LossClass.INTERRUPTED] * 2
    outcomes = terminal.resume()
    assert [outcome.losses for outcome in outcomes] == [(LossClass.INTERRUPTED,)] * 2
    assert [outcome.scored for outcome in outcomes] == undisturbed


@pytest.mark.parametrize(("behaviour", "begun"), [("tests=250", "patch.json"), ("gap=250", "execution")])
def test_an_agent_that_has_ended_is_scored_and_never_drawn_again(
    terminal: Terminal, undisturbed: list[object], behaviour: str, begun: str
) -> None:
    """While its tests run, and before its patch was stored; also after more interruptions than an agent's run may
    have."""
    printed = terminal.run(behaviour, *TWICE, begun=begun)
    assert "interrupted by you: 2 (2 after the agent had ended: its patch is kept" in printed
    for _ in range(2):
        terminal.run("tests=250", signal.SIGTERM, begun="start.json")
    outcomes = terminal.resume()
    assert [outcome.losses for outcome in outcomes] == [(LossClass.INTERRUPTED,) * 3] * 2
    assert terminal.count("execution") == 2
    assert [outcome.scored for outcome in outcomes] == undisturbed


def test_the_third_interrupted_run_is_missing_data(terminal: Terminal) -> None:
    for _ in range(2):
        assert "and the trial runs again" in terminal.run("sleep=250", signal.SIGTERM)
    printed = terminal.run("sleep=250", signal.SIGTERM)
    assert (
        "interrupted by you: 2 (2 after 2 interruptions: the trial is not run again and has no result" in printed
    )
    outcomes = terminal.resume()
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.INTERRUPTED] * 2
    assert terminal.count("execution") == 6


def test_a_runner_that_does_not_stop_is_killed_when_asked_a_third_time(terminal: Terminal) -> None:
    terminal.run("sleep=250,deaf", *TWICE, signal.SIGINT)
    assert terminal.losses() == [LossClass.INTERRUPTED] * 2


class RefusingStore(DirectoryStore):
    """Refuses the controller's credentials from some moment on. Runners have grants of their own."""

    refuses = False

    def get(self, key: str) -> bytes | None:
        self._check()
        return super().get(key)

    def put(self, key: str, data: bytes) -> None:
        self._check()
        super().put(key, data)

    def _check(self) -> None:
        if RefusingStore.refuses:
            raise CredentialsRefused("the key is revoked", where="store", hint="give another key")


def test_ctrl_c_after_the_credentials_are_refused_is_an_interruption(
    terminal: Terminal, undisturbed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runners' ends cannot be stored; the next controller on this machine knows why there are none."""
    monkeypatch.setattr(fake_campaign, "DirectoryStore", RefusingStore)
    monkeypatch.setattr(RefusingStore, "refuses", False)
    interrupt, told = Interrupt(), list[str]()

    def revoke_and_press() -> None:
        wait_until(lambda: terminal.count("execution") == 2)
        RefusingStore.refuses = True
        wait_until(lambda: any("Agents that run finish (2)" in line for line in told))
        interrupt.ask()

    presses = threading.Thread(target=revoke_and_press)
    presses.start()
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=250,log={terminal.log}"))
    with pytest.raises(CredentialsRefused):
        drive(terminal.root, terminal.plan, backend, pulse=NO_EPOCHS, interrupt=interrupt, tell=told.append)
    presses.join()
    wait_until(lambda: not survivors(terminal.folder), within_s=30)
    RefusingStore.refuses = False
    assert terminal.losses() == []
    outcomes = terminal.resume()
    assert [outcome.losses for outcome in outcomes] == [(LossClass.INTERRUPTED,)] * 2
    assert [outcome.scored for outcome in outcomes] == undisturbed
    assert [path.name for path in terminal.folder.rglob("*.stopped")] == []


def test_a_closed_terminal_is_an_interruption(terminal: Terminal, undisturbed: list[object]) -> None:
    """Nothing can be printed any more, and what had begun is stopped and settled all the same."""
    argv = [
        sys.executable,
        "-m",
        "tests.support.fake_campaign",
        str(terminal.root),
        f"sleep=250,log={terminal.log}",
    ]
    child, master = os.forkpty()
    if child == 0:
        os.chdir(CHECKOUT)
        os.execv(argv[0], [*argv, "--tasks", "1", "--reps", "1"])
    wait_until(lambda: terminal.count("execution") == 2)
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    wait_until(lambda: not survivors(terminal.folder), within_s=30)
    assert terminal.losses() == [LossClass.INTERRUPTED] * 2
    assert [outcome.scored for outcome in terminal.resume()] == undisturbed


def test_a_signal_of_somebody_else_is_no_interruption(terminal: Terminal) -> None:
    """The controller is the witness: it has not asked this runner to stop."""

    def kill_one() -> None:
        wait_until(lambda: terminal.count("execution") == 2)
        start = next(raw for key, raw in records(terminal.root, CAMPAIGN).items() if key.endswith("/start.json"))
        os.kill(Start.model_validate_json(start).pid, signal.SIGTERM)

    killer = threading.Thread(target=kill_one)
    killer.start()
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=2,log={terminal.log}"))
    assert drive(terminal.root, terminal.plan, backend) is Ending.COMPLETE
    killer.join()
    assert terminal.losses() == [LossClass.TERMINATED]


@pytest.mark.parametrize(
    ("arguments", "code"), [(("view", "shop", "--no-open"), 0), (("status", "shop", "--watch"), 130)]
)
def test_ctrl_c_in_what_only_shows_prints_nothing(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    Ledger(DirectoryStore(tmp_path), "shop").freeze(make_plan(campaign="shop"))
    argv = [sys.executable, "-m", "trialfleet_runner.console", *arguments, "--store", str(tmp_path)]
    output = tmp_path / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    wait_until(output.read_bytes, by=process)
    wait_until(lambda: b"ends it" in output.read_bytes() or code, by=process)
    before = output.read_bytes()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == code
    assert output.read_bytes().removeprefix(before).strip() == b""
