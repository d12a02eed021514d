"""`kill -9` of the controller at every step of the ledger: resuming loses, doubles and re-rolls nothing, and no
process outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.support.audit import audit, records
from tests.support.command_forks import run_command
from tests.support.fake_campaign import FIVE, drive, fake_argv
from tests.support.plans import CAMPAIGN, make_plan
from tests.support.processes import survivors
from tests.support.waiting import wait_until
from trialfleet_controller.backends.local.process_backend import ProcessBackend
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.hosting import ray_reaper
from trialfleet_controller.hosting.private_ray import RAY_FOLDER, RAY_PARENT
from trialfleet_controller.hosting.ray_reaper import members
from trialfleet_designs.monitoring import look_result
from trialfleet_ledger.amendments import effective_reps
from trialfleet_ledger.designs.halving import HalvingResult
from trialfleet_ledger.kill_points import VARIABLE
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.owned_folder import mark_folder
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials

CHECKOUT = Path(__file__).parents[2]
PLAN = make_plan(tasks=1, reps=2)
STARTING = 300.0  # for a Ray, on a machine that starts several
GOING = 60.0  # seconds that processes may take to go once their parent is dead, on a machine with much to do
PATIENCE = ("--grace", "100")  # whatever needs less has not waited for it

STEPS = ["plan", "epoch", "intent", "grants", "launch", "outcome", "journal"]
PLACES = [f"{step}.{when}:1" for step in STEPS for when in ("before", "after")]
PLACES += ["beat.before:1", "beat.before:2", "finish.before:1", "finish.before:3"]
PLACES += ["intent.after:3", "launch.after:2", "launch.after:4", "outcome.before:4", "outcome.after:4"]


PROGRAM, STEERING = "tests.support.fake_campaign", "tests.support.steering"


class Controller:
    """Controllers as processes, on one store; everything they start carries `folder` in its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.log = folder, folder / "store", folder / "log"
        self.log.touch()

    def start(self, behaviour: str = "sleep=0.05", *options: str, crash: str = "") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *self._words(behaviour, *options)],
            cwd=CHECKOUT,
            env={**os.environ, VARIABLE: crash},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, behaviour: str = "sleep=0.05", *options: str, crash: str = "") -> tuple[int, str]:
        """Forked, not executed: a controller that is killed has lived a shorter time than its imports take."""
        words = self._words(behaviour, *options)
        env = {VARIABLE: crash}
        ended = run_command(*words, cwd=CHECKOUT, env=env, module=PROGRAM, timeout_s=100, new_session=True)
        return ended.returncode, ended.stdout + ended.stderr

    def _words(self, behaviour: str, *options: str) -> tuple[str, ...]:
        return (str(self.root), f"{behaviour},log={self.log}", "--reps", "2", "--tasks", "1", *options)

    def resume(self, behaviour: str = "sleep=0.05") -> Ending:
        """The next controller, in this process: one that is not killed needs no process of its own."""
        backend = ProcessBackend(slots=2, runner=fake_argv(f"{behaviour},log={self.log}"))
        return drive(self.root, PLAN, backend)

    def write(self, step: str, *, crash: str = "") -> tuple[int, str]:
        """One of `tests.support.steering`."""
        words = (step, str(self.root), CAMPAIGN)
        ended = run_command(*words, cwd=CHECKOUT, env={VARIABLE: crash}, module=STEERING, timeout_s=100)
        return ended.returncode, ended.stderr

    def nobody_left(self) -> None:
        wait_until(lambda: not survivors(self.folder), within_s=GOING)


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    return Controller(tmp_path)


@pytest.mark.parametrize("place", PLACES)
def test_killed_at_a_step_and_resumed(controller: Controller, place: str) -> None:
    # Runners that would go on for long: those that are gone have been killed.
    behaviour = "sleep=600" if place in ("launch.after:1", "launch.after:2") else "sleep=0.05"
    code, output = controller.run(behaviour, crash=place)
    assert code == -signal.SIGKILL, f"{place} was not reached: {output}"
    controller.nobody_left()
    before = records(controller.root, CAMPAIGN) if controller.root.exists() else {}
    assert controller.resume() is Ending.COMPLETE
    outcomes = audit(controller.root, PLAN, log=controller.log, before=before)
    assert all(outcome.scored is not None for outcome in outcomes)
    controller.nobody_left()


@pytest.mark.parametrize(
    "place", ["decision.before:1", "decision.after:1", "decision.before:2", "decision.after:2"]
)
def test_killed_at_a_look(controller: Controller, place: str) -> None:
    """The next controller decides the same, from the same trials, and once."""
    code, output = controller.run("sleep=0.05", "--looks", "2", crash=place)
    assert code == -signal.SIGKILL, f"{place} was not reached: {output}"
    controller.nobody_left()
    plan = Ledger(DirectoryStore(controller.root), CAMPAIGN).plan()
    before = records(controller.root, CAMPAIGN)
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=0.05,log={controller.log}"))
    assert drive(controller.root, plan, backend) in (Ending.COMPLETE, Ending.DECIDED)
    after = records(controller.root, CAMPAIGN)
    decisions = sorted(key for key in after if "/decisions/" in key)
    assert decisions[-1].endswith("2.json") or '"verdict":"continue"' not in str(after[decisions[-1]])
    assert all(after[key] == value for key, value in before.items() if "/decisions/" in key)
    audit(controller.root, plan, log=controller.log, before=before)


@pytest.mark.parametrize("place", ["decision.before:1", "decision.after:1", "intent.after:9", "decision.before:2"])
def test_killed_where_saturated_tasks_are_left_out(controller: Controller, place: str) -> None:
    """The next controller leaves out the same tasks, and starts no trial of theirs."""
    options = ("--looks", "drop", "--tasks", "4")
    code, output = controller.run("sleep=0.05", *options, crash=place)
    assert code == -signal.SIGKILL, f"{place} was not reached: {output}"
    controller.nobody_left()
    ledger = Ledger(DirectoryStore(controller.root), CAMPAIGN)
    plan, before = ledger.plan(), records(controller.root, CAMPAIGN)
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=0.05,log={controller.log}"))
    assert drive(controller.root, plan, backend) is Ending.COMPLETE
    first, second = ledger.directives.decisions()
    seen = defaultdict[str, set[bool]](set)
    for trial in trials(plan, 1):
        seen[trial.task].add(trial.seed % 2 == 0)  # what feigned runners make of it
    assert first.dropped == tuple(sorted(task for task, passed in seen.items() if len(passed) == 1))
    assert 0 < len(first.dropped) < 4
    assert second.dropped == ()
    outcomes = audit(controller.root, plan, log=controller.log, before=before)
    assert len(outcomes) == 8 + 2 * (4 - len(first.dropped))


@pytest.mark.parametrize(
    "place", ["decision.before:1", "decision.after:1", "decision.before:2", "decision.after:3", "outcome.after:3"]
)
def test_killed_at_a_block_of_a_campaign_without_a_fixed_end(controller: Controller, place: str) -> None:
    """The next controller settles every block once, in order, and none again."""
    code, output = controller.run("sleep=0.05", "--looks", "bets", "--reps", "3", crash=place)
    assert code == -signal.SIGKILL, f"{place} was not reached: {output}"
    controller.nobody_left()
    ledger = Ledger(DirectoryStore(controller.root), CAMPAIGN)
    plan, before = ledger.plan(), records(controller.root, CAMPAIGN)
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=0.05,log={controller.log}"))
    assert drive(controller.root, plan, backend) is Ending.COMPLETE
    decisions = ledger.directives.decisions()
    assert [decision.blocks for decision in decisions] == [1, 2, 3]
    audit(controller.root, plan, log=controller.log, before=before)
    assert plan.primary is not None
    for number, decision in enumerate(decisions):
        assert decision.result == look_result(plan.primary, plan.reps, decisions[:number], decision.stage)


def test_two_controllers_settle_the_bets_of_a_block_once(controller: Controller) -> None:
    options = ("--looks", "bets", "--reps", "4", "--no-beat")
    both = [controller.start("sleep=0.05", *options) for _ in range(2)]
    outputs = [process.communicate(timeout=100)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    ledger = Ledger(DirectoryStore(controller.root), CAMPAIGN)
    decisions = ledger.directives.decisions()
    assert [decision.blocks for decision in decisions] == [1, 2, 3, 4]
    assert all(one.treatment_valid == one.control_valid == 1 for decision in decisions for one in decision.stage)
    audit(controller.root, ledger.plan(), log=controller.log)
    controller.nobody_left()


@pytest.mark.parametrize("place", ["decision.before:1", "decision.after:1", "intent.after:9"])
def test_killed_where_reps_are_re_estimated(controller: Controller, place: str) -> None:
    """The next controller goes on to the same reps."""
    code, output = controller.run("sleep=0.05", "--looks", "grow", "--tasks", "3", crash=place)
    assert code == -signal.SIGKILL, f"{place} was not reached: {output}"
    controller.nobody_left()
    ledger = Ledger(DirectoryStore(controller.root), CAMPAIGN)
    plan, before = ledger.plan(), records(controller.root, CAMPAIGN)
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=0.05,log={controller.log}"))
    assert drive(controller.root, plan, backend) is Ending.COMPLETE
    assert [decision.blocks for decision in ledger.directives.decisions()] == [1, 3]
    assert len(audit(controller.root, plan, log=controller.log, before=before, reps=3)) == 3 * 2 * 3


@pytest.mark.parametrize("place", ["decision.before:1", "decision.after:1", "intent.after:12"])
def test_killed_where_treatments_are_halved(controller: Controller, place: str) -> None:
    """The next controller leaves out the same two, and starts no later trial of theirs."""
    options = ("--looks", "halve", "--tasks", "2", "--reps", "3")
    code, output = controller.run("sleep=0.05", *options, crash=place)
    assert code == -signal.SIGKILL, f"{place} was not reached: {output}"
    controller.nobody_left()
    ledger = Ledger(DirectoryStore(controller.root), CAMPAIGN)
    plan, before = ledger.plan(), records(controller.root, CAMPAIGN)
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=0.05,log={controller.log}"))
    assert drive(controller.root, plan, backend) is Ending.COMPLETE
    [decision] = ledger.directives.decisions()
    assert isinstance(decision.result, HalvingResult)
    passed = Counter(trial.condition for trial in trials(plan, 1) if trial.seed % 2 == 0)  # as feigned runners do
    assert {one.condition: one.passed for one in decision.result.counts} == {n: passed[n] for n in FIVE}
    best = max(FIVE[2:], key=lambda name: passed[name])
    assert set(decision.result.left_out) == set(FIVE[2:]) - {best}
    outcomes = audit(controller.root, plan, log=controller.log, before=before)
    assert len(outcomes) == 2 * (5 + 2 * 3)


def test_killed_before_a_halt_was_written(controller: Controller) -> None:
    """The next controller writes it; once lifted, the same loss halts no more."""
    broken = "loss=setup:1,halt=task"
    code, output = controller.run(broken, "--slots", "1", crash="halt.before:1")
    assert code == -signal.SIGKILL, output
    ledger = Ledger(DirectoryStore(controller.root), CAMPAIGN)
    assert ledger.directives.halts() == ()
    assert controller.resume() is Ending.HALTED
    (halt,) = ledger.directives.halts()
    assert halt.task == "task-0"
    ledger.directives.amend(reps=None, after_look=False, lifts=(halt.number,))
    assert controller.resume() is Ending.COMPLETE


@pytest.mark.parametrize(
    ("place", "behaviour"),
    [
        ("end.before:1", "kill=start:1"),
        ("end.after:1", "kill=start:1"),
        ("intent.after:5", "kill=start:1"),
        ("launch.after:5", "kill=patch:1"),
        ("end.after:2", "kill=patch:2"),
    ],
)
def test_killed_around_a_retry(controller: Controller, place: str, behaviour: str) -> None:
    code, output = controller.run(behaviour, crash=place)
    assert code == -signal.SIGKILL, output
    controller.nobody_left()
    before = records(controller.root, CAMPAIGN)
    assert controller.resume(behaviour) is Ending.COMPLETE
    outcomes = audit(controller.root, PLAN, log=controller.log, before=before)
    assert all(outcome.scored is not None for outcome in outcomes)
    assert all(outcome.attempts >= 2 for outcome in outcomes)
    if "patch" in behaviour:
        executions = controller.log.read_text().split("\n")
        assert len(executions) - 1 <= len(outcomes) + 2  # a patch that is there is never asked for again


@pytest.mark.parametrize("place", ["quarantine.before:1", "quarantine.after:1", "outcome.before:1"])
@pytest.mark.parametrize("beside", ["", ",slow=600"], ids=["", "another-under-way"])
def test_killed_around_a_quarantine(controller: Controller, place: str, beside: str) -> None:
    assert controller.run(f"torn{beside}", crash=place)[0] == -signal.SIGKILL
    before = records(controller.root, CAMPAIGN)
    assert controller.resume("torn") is Ending.INCOMPLETE
    outcomes = audit(controller.root, PLAN, log=controller.log, before=before)
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.QUARANTINED] * 4
    # Beside the attempt that was found torn another may have been under way: it died with its controller.
    executions = [line.replace(" ", "/") for line in controller.log.read_text().splitlines()]
    cut_short = [
        each for each in executions if not (controller.root / CAMPAIGN / "attempts" / each / "patch.json").exists()
    ]
    assert len(executions) - len(cut_short) == 4, "a measurement that was made is not made again"
    assert all(f"{CAMPAIGN}/attempts/{each}/start.json" in before for each in cut_short)
    assert not any(f"{CAMPAIGN}/attempts/{each}/end.json" in before for each in cut_short)
    assert len(cut_short) == 1 or not beside


@pytest.mark.parametrize("place", ["halt.before:1", "halt.after:1"])
def test_killed_around_a_halt(controller: Controller, place: str) -> None:
    behaviour = "loss=setup:9,halt=task"
    assert controller.run(behaviour, crash=place)[0] == -signal.SIGKILL
    assert controller.resume(behaviour) is Ending.HALTED
    halts = [key for key in records(controller.root, CAMPAIGN) if "/halts/" in key]
    assert 1 <= len(halts) <= 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("step", "killed_at", "ending"),
    [
        ("amendment", "outcome.after:3", Ending.COMPLETE),
        ("cancel", "intent.after:2", Ending.CANCELLED),  # two of the four trials have not begun
        ("look", "outcome.after:3", Ending.COMPLETE),
    ],
)
def test_killed_while_it_writes_what_steers(
    controller: Controller, step: str, killed_at: str, ending: Ending, when: str
) -> None:
    """The record is there or not, never half; asked for again, it is there once, and holds."""
    assert controller.run(crash=killed_at)[0] == -signal.SIGKILL
    controller.nobody_left()
    before = records(controller.root, CAMPAIGN)
    assert controller.write(step, crash=f"{step}.{when}:1")[0] == -signal.SIGKILL
    written = records(controller.root, CAMPAIGN).keys() - before.keys()
    assert len(written) == (when == "after")
    code, output = controller.write(step)
    assert code == 0 or "the campaign has 3 reps already" in output, output
    now = records(controller.root, CAMPAIGN)
    assert before.items() <= now.items()
    assert len([key for key in now.keys() - before.keys() if "/journal/" not in key]) == 1
    ledger = Ledger(DirectoryStore(controller.root), CAMPAIGN)
    assert (effective_reps(PLAN, ledger.directives.amendments(), ()), len(ledger.directives.looks())) == (
        2 + (step == "amendment"),
        step == "look",
    )
    assert controller.resume() is ending
    controller.nobody_left()


def test_killed_again_and_again(controller: Controller) -> None:
    """Every second intent kills it: progress is made all the same."""
    deaths = 0
    while (code := controller.run(crash="intent.after:2")[0]) != 0:
        assert code == -signal.SIGKILL
        deaths += 1
        assert deaths < 12
    controller.nobody_left()
    audit(controller.root, PLAN, log=controller.log)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(3 * STARTING)
@pytest.mark.parametrize("place", ["launch.after:2", "finish.before:1"])
def test_killed_under_ray_nothing_survives(controller: Controller, place: str) -> None:
    process = controller.start("sleep=2", "--ray", crash=place)
    output, _ = process.communicate(timeout=STARTING)
    assert process.returncode == -signal.SIGKILL, output

    def left() -> list[int]:
        return [*survivors(controller.folder), *ray_of(process.pid)]

    def shown() -> str:
        return subprocess.getoutput(f"ps -fww {' '.join(map(str, left()))}")

    wait_until(lambda: not left(), shown, within_s=GOING)
    assert not list(RAY_PARENT.glob(f"{RAY_FOLDER}{process.pid}-*"))
    before = records(controller.root, CAMPAIGN)
    resumed = controller.start("sleep=0", "--ray")
    resumed.communicate(timeout=STARTING)
    assert resumed.returncode == 0
    audit(controller.root, PLAN, log=controller.log, before=before)
    assert not survivors(controller.folder)
    assert not ray_of(resumed.pid)


@pytest.mark.parametrize("holds", ["TRIALFLEET_RAY_FOLDER={0} exec sleep 600", "exec sleep 600 7>{0}/log"])
def test_what_the_guard_knows_a_process_of_its_ray_by(tmp_path: Path, holds: str) -> None:
    """Some of Ray's daemons write over their environment and their command line, and their output is a pipe."""
    folder = tmp_path / "ray"
    folder.mkdir()
    mark_folder(folder, "ray")
    daemon = subprocess.Popen(
        ["/bin/sh", "-c", holds.format(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    (folder / "raylet.out").touch()
    with (folder / "raylet.out").open() as logs:
        reader = subprocess.Popen(["sleep", "600"], stdin=logs)
    wait_until(lambda: members(str(folder)) == [daemon.pid])
    own = (folder / "core-driver.log").open("w")  # as a controller's that goes on
    subprocess.run(
        [sys.executable, "-I", "-S", ray_reaper.__file__, str(folder)], input=b"", check=True, timeout=100
    )
    assert daemon.wait(timeout=GOING) == -signal.SIGKILL  # it has given up its files before it can be waited for
    assert reader.poll() is None
    reader.kill()
    own.close()
    assert not folder.exists()


def ray_of(pid: int) -> list[int]:
    """Processes of the Ray that controller `pid` started."""
    return members(str(RAY_PARENT / f"{RAY_FOLDER}{pid}-"))


@pytest.mark.parametrize("behaviour", ["sleep=0.2", "ponder=0.5"])
def test_two_controllers_at_once_are_harmless(controller: Controller, behaviour: str) -> None:
    """Without epochs and heartbeats: the contended keys alone keep them apart."""
    both = [controller.start(behaviour, "--no-beat", "--reps", "4") for _ in range(2)]
    outputs = [process.communicate(timeout=100)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    outcomes = audit(controller.root, make_plan(tasks=1, reps=4), log=controller.log)
    assert len(controller.log.read_text().splitlines()) == len(outcomes), "an agent that ran was taken for dead"
    assert all(outcome.attempts == 1 for outcome in outcomes)
    controller.nobody_left()


def test_two_controllers_and_dying_runners_are_harmless(controller: Controller) -> None:
    both = [controller.start("kill=start:1", "--no-beat", "--reps", "3") for _ in range(2)]
    outputs = [process.communicate(timeout=100)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    audit(controller.root, make_plan(tasks=1, reps=3), log=controller.log)


def test_a_second_controller_is_refused_while_the_first_lives(controller: Controller) -> None:
    first = controller.start("sleep=250")
    wait_until(lambda: (controller.root / CAMPAIGN / "epochs" / "1.beat").exists())
    code, output = controller.run("sleep=0")
    assert code != 0
    assert f"another controller drives this campaign: process {first.pid}" in output
    first.kill()
    first.communicate()
    controller.nobody_left()
    assert controller.run("sleep=0")[0] == 0  # at once: its process is gone
    audit(controller.root, PLAN, log=controller.log)


@pytest.mark.timeout(3 * STARTING)
@pytest.mark.ray
@pytest.mark.slow
def test_ctrl_c_with_ray_stops_the_children_and_can_be_resumed(controller: Controller) -> None:
    """Without Ray: test_interrupt.py."""
    process = controller.start("sleep=250", *PATIENCE, "--ray")
    wait_until(lambda: len(controller.log.read_text().splitlines()) == 2, within_s=STARTING)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everyone in the foreground
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=90)
    assert (process.returncode, output.split()[-1]) == (130, "interrupted"), output
    controller.nobody_left()
    ends = [raw for key, raw in records(controller.root, CAMPAIGN).items() if key.endswith("/end.json")]
    assert len(ends) == 2
    assert all(b'"by":"runner"' in raw and b'"loss":"interrupted"' in raw for raw in ends)
    assert controller.run("sleep=0", *PATIENCE)[0] == 0
    audit(controller.root, PLAN, log=controller.log)


@pytest.mark.needs("root")
def test_a_full_disk_loses_nothing(controller: Controller) -> None:
    controller.root.mkdir()
    size = "160k"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(controller.root)]).returncode:
        assert os.environ.get("TRIALFLEET_CI") != "1", "under TRIALFLEET_CI=1 root must be able to mount"
        pytest.skip("mounting is not allowed here")
    try:
        code, output = controller.run("sleep=0", "--reps", "6")
        assert code != 0
        assert "the disk is full" in output
        controller.nobody_left()
        before = records(controller.root, CAMPAIGN)
        subprocess.run(["mount", "-o", "remount,size=50m", str(controller.root)], check=True)
        assert controller.run("sleep=0", "--reps", "6")[0] == 0
        outcomes = audit(controller.root, make_plan(tasks=1, reps=6), log=controller.log, before=before)
        assert all(outcome.scored is not None for outcome in outcomes)
    finally:
        subprocess.run(["umount", str(controller.root)], check=True)
