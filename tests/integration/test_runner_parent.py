"""A runner that a process started does not outlive it, with no code between fork and exec."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.attempts import Lab
from tests.support.processes import alive
from tests.support.waiting import wait_until
from trialfleet_controller.backends.local import processes
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.local_launch import PARENT
from trialfleet_ledger.records.agent import AgentSpec

STARTER = """
import sys
from pathlib import Path
from trialfleet_controller.backends.local import processes
grants, log, *command = sys.argv[1:]
runner = processes.create_launcher(command or None, Path(log).parent).start(Path(grants), Path(log))
print(runner.pid, flush=True)
processes.wait_any([runner.pidfd], 250)
"""
EXECUTED = (sys.executable, "-m", "trialfleet_runner.attempt")


NOBODY = 65534
OPENAT = b"257 " if os.uname().machine == "x86_64" else b"56 "  # as /proc names it
# As a runner of NOBODY: setuid hides a process, too, so that is undone.
WAITING = """
import os, sys
from pathlib import Path
from trialfleet_runner.attempt import local_runner as runner
from trialfleet_sandbox.supervisor import PR_SET_DUMPABLE, prctl
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
prctl(PR_SET_DUMPABLE, 1)
readable, _ = os.pipe()
print(readable, flush=True)
runner.main(Path(sys.argv[2])) if sys.argv[3] == "runner" else Path(sys.argv[2]).read_bytes()
"""


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def granted(lab: Lab, script: str) -> Path:
    agent = AgentSpec(kind="command", options={"argv": ["/bin/sh", "-c", script]})
    path = lab.root / "grants.json"
    path.write_bytes(canonical_json(lab.grants(agent)))
    return path


@pytest.mark.parametrize("command", [(), EXECUTED], ids=["forked", "executed"])
def test_a_runner_dies_with_a_starter_that_is_killed(lab: Lab, command: tuple[str, ...]) -> None:
    grants, log = granted(lab, "touch here; sleep 250"), lab.root / "log"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(grants), str(log), *command],
        env={**os.environ, "TRIALFLEET_SCRATCH": str(lab.scratch)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    runner = int(starter.stdout.readline())
    wait_until(lambda: list(lab.attempts.glob("*/workspace/here")), log.read_text)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    wait_until(lambda: not alive(runner), "the runner ends after its starter")


def test_a_runner_whose_starter_died_before_it_was_ready_claims_nothing(lab: Lab) -> None:
    dead = subprocess.Popen(["/bin/true"])
    dead.wait()
    ran = subprocess.run(
        [*EXECUTED, str(granted(lab, "true"))],
        env={**os.environ, "TRIALFLEET_SCRATCH": str(lab.scratch), PARENT: str(dead.pid)},
        check=False,
        timeout=100,
    )
    assert ran.returncode == 1
    assert not list(lab.store.list("lab/attempts"))


def test_nothing_runs_between_fork_and_exec() -> None:
    assert "preexec_fn" not in inspect.getsource(processes)


@pytest.mark.needs("root")
@pytest.mark.parametrize(("role", "opens"), [("runner", False), ("control", True)])
def test_no_process_of_its_user_opens_a_runners_pipe_or_reads_its_environment(
    role: str, opens: bool, tmp_path: Path
) -> None:
    grants = tmp_path / "grants"  # no writer comes, so the runner waits
    os.mkfifo(grants)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    grants.chmod(0o644)
    argv = [sys.executable, "-c", WAITING, str(NOBODY), str(grants), role]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as runner:
        try:
            assert runner.stdout is not None
            pipe = f"/proc/{runner.pid}/fd/{int(runner.stdout.readline())}"
            syscall = Path(f"/proc/{runner.pid}/syscall")
            wait_until(lambda: syscall.read_bytes().startswith(OPENAT), "it opens its grants")
            for attack in (["sh", "-c", f"exec 3<{pipe}"], ["cat", f"/proc/{runner.pid}/environ"]):
                made = subprocess.run(attack, user=NOBODY, group=NOBODY, capture_output=True, check=False)
                assert (made.returncode == 0) is opens, (attack, made.stderr)
        finally:
            runner.kill()
