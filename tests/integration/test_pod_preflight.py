"""A pod whose agent looks before its turn: two jobs in one container, which lets nobody in between."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.support.attempts import LIMITS, Lab, Left, Told
from tests.support.local_pod import gate_in, pod, supervisor
from tests.support.processes import processes_with, unique_seconds
from tests.support.waiting import wait_until
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import PreflightResult
from trialfleet_ledger.records.verdicts import Scored, Stop, Verdict
from trialfleet_sandbox.container import ContainerSandbox
from trialfleet_sandbox.protocol import Exit, Job, SandboxError

NUMBERS = count(1)
FIXED = "shop/pricing/rules.py"
FIX = f"sed -i 's,/ 0$,/ 100,' {FIXED}"
LOOKS = 'grep -q "Do not carry out the task" "$TRIALFLEET_PROMPT"'  # the pre-flight's words


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("pods-that-look"))


def granted(lab: Lab, agent: AgentSpec) -> Grants:
    told = Told(targets=(FIXED,))
    return lab.grants(agent, "preflight", attempt=next(NUMBERS), limits=LIMITS, told=told)


def shell(look: str, turn: str, timeout_s: float = 60) -> AgentSpec:
    """No plan gives a pre-flight to a program of kind command, which is not kept from writing; here one plays the
    agent that breaks every rule."""
    script = f"if {LOOKS}; then {look}\nelse {turn}\nfi"
    return AgentSpec(kind="command", timeout_s=timeout_s, options={"argv": ["/bin/sh", "-c", script]})


def scored(lab: Lab, grants: Grants) -> tuple[Scored, Left]:
    found = Left(lab, grants.attempt, 0, "")
    assert found.end.scored is not None, found.end
    return found.end.scored, found


def test_the_look_and_the_turn_run_in_one_container_and_are_told_apart(lab: Lab, baked: Path) -> None:
    grants = granted(lab, AgentSpec(kind="search", max_turns=30, timeout_s=60))
    with pod(grants, baked=baked) as running:
        assert running.wait() == (0, 0, 0)
    end, found = scored(lab, grants)
    assert end.delivery.preflight is PreflightResult.FOUND
    assert json.loads(found.bundle.files["preflight/result.json"])["findings"][0]["file"] == FIXED
    assert found.bundle.files["preflight/stdout.log"] != found.bundle.files["agent/stdout.log"]
    assert f"- `{FIXED}`" in found.bundle.files["prompt.txt"].decode()
    metrics = end.metrics
    assert 0 < (metrics.preflight_turns or 0) < (metrics.turns or 0)
    assert 0 < (metrics.preflight_s or 0) < (metrics.agent_s or 0)


KNOCK = """python -c '
import socket
try:
    socket.socket(socket.AF_UNIX).connect("../../agent-gate/gate.sock")
    print("open")
except OSError as error:
    print(type(error).__name__)
'"""


def test_nothing_that_the_look_does_is_there_when_the_turn_begins(lab: Lab, baked: Path) -> None:
    token = unique_seconds()
    look = f"""
        setsid sleep {token} &
        echo 'raise SystemExit' > shop/__init__.py; touch planted; mkdir more; echo x > $HOME/planted
        chmod 0 more; {KNOCK}"""
    turn = f"""
        cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '|' | grep -q '[s]leep|{token}' && echo ALIVE
        ls planted more $HOME/planted 2>/dev/null; git status --porcelain; {KNOCK}; {FIX}"""
    grants = granted(lab, shell(look, turn))
    with pod(grants, baked=baked) as running:
        assert running.wait() == (0, 0, 0)
    end, found = scored(lab, grants)
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED)
    assert end.delivery.preflight is PreflightResult.UNCERTAIN
    assert found.bundle.files["preflight/stdout.log"].split() == [b"ConnectionRefusedError"]
    assert found.bundle.files["agent/stdout.log"].split() == [b"ConnectionRefusedError"]
    assert found.patch is not None
    assert "planted" not in found.patch.diff
    assert processes_with(token) == []


def test_a_look_that_never_ends_leaves_the_rest_of_the_time_to_the_turn(lab: Lab, baked: Path) -> None:
    grants = granted(lab, shell("trap '' TERM; sleep 60", FIX, timeout_s=12))
    with pod(grants, baked=baked) as running:
        assert running.wait() == (0, 0, 0)
    end, _ = scored(lab, grants)
    assert (end.verdict, end.stop) == (Verdict.PASSED, Stop.FINISHED)
    assert 4 <= (end.metrics.preflight_s or 0) < 12


def test_an_agent_container_killed_during_the_look_was_out_of_memory(lab: Lab, baked: Path) -> None:
    grants = granted(lab, shell("touch begun; exec sleep 60", f"{FIX}; touch turned"))
    with pod(grants, baked=baked) as running:
        wait_until(lambda: (running.root / "agent/workspace/begun").exists(), within_s=60)
        running.agent.kill()
        assert running.wait() == (0, -signal.SIGKILL, 0)
    end, found = scored(lab, grants)
    assert (end.verdict, end.stop) == (Verdict.EXHAUSTED, Stop.MEMORY)
    assert found.patch is not None
    assert found.patch.diff == ""


def test_a_runner_killed_during_the_look_leaves_nobody(lab: Lab, baked: Path) -> None:
    token = unique_seconds()
    grants = granted(lab, shell(f"touch begun; setsid sleep {token} & sleep {token}", FIX))
    with pod(grants, baked=baked) as running:
        wait_until(lambda: (running.root / "agent/workspace/begun").exists(), within_s=60)
        running.runner.kill()
        assert running.wait(60) == (-signal.SIGKILL, 0, 0)
    assert processes_with(token) == []


# --- the container by itself --------------------------------------------------------------------------------


def job(root: Path, script: str, name: str, *, followed: bool = False) -> Job:
    return Job(
        argv=("/bin/sh", "-c", script),
        env={"PATH": "/usr/bin:/bin"},
        cwd=str(root),
        mounts=(),
        stdout=root / f"{name}.out",
        stderr=root / f"{name}.err",
        timeout_s=30,
        followed=followed,
    )


def test_each_job_has_its_own_input_output_and_account() -> None:
    burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; read line; echo first $line"
    with gate_in("agent") as (root, gate):
        process = supervisor(root, "agent")
        sandbox = ContainerSandbox(gate, root, gone_is_memory=True)
        first = sandbox.run(replace(job(root, burn, "a", followed=True), stdin=b"one\n"))
        assert process.poll() is None
        second = sandbox.run(replace(job(root, "read line; echo second $line; exit 7", "b"), stdin=b"two\n"))
        assert process.wait(60) == 0
        said = [(root / name).read_text() for name in ("a.out", "b.out")]
    assert said == ["first one\n", "second two\n"]
    assert (first.code, second.code, first.cause, second.cause) == (0, 7, "itself", "itself")
    assert (first.core_s or 0) > 0.05
    assert (second.core_s or 0) < (first.core_s or 0) / 2


def test_a_container_whose_job_is_not_followed_takes_no_second() -> None:
    with gate_in("agent") as (root, gate):
        process = supervisor(root, "agent")
        sandbox = ContainerSandbox(gate, root, gone_is_memory=True)
        ended: Exit = sandbox.run(job(root, "true", "a"))
        assert (ended.code, process.wait(60)) == (0, 0)
        with pytest.raises(SandboxError, match="used before"):
            sandbox.run(job(root, "true", "b"))


def test_a_supervisor_that_waits_for_a_second_job_goes_with_its_runner() -> None:
    with gate_in("agent") as (root, gate):
        process = supervisor(root, "agent")
        ContainerSandbox(gate, root, gone_is_memory=True).run(job(root, "true", "a", followed=True))
        assert process.poll() is None
        gate.close()
        assert process.wait(60) == 0
