"""SIGTERM in every phase of a pod's attempt, and a store that refuses or does not answer: what is said then."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.integration.faulty_store import FaultyStore, faulty_store
from tests.integration.lab import TRIAL, Lab, Left
from tests.integration.rig_pod import PodRun, bake, inside, pod, supervisor
from tests.integration.test_sandbox_contract import seconds_token, tokens_alive, until
from trialfleet_runner.canonical import sha256
from trialfleet_runner.contract import (
    AgentSpec,
    End,
    GetGrant,
    Grants,
    Limits,
    Loss,
    LossClass,
    PutGrant,
    Verdict,
)

LIMITS = Limits(memory_bytes=2**30, disk_bytes=2**28, stop_grace_s=0.2)
NUMBERS = count(1)
SOON = {"TRIALFLEET_STOP_S": "1"}
TERMINATED = 143


def shell(script: str) -> AgentSpec:
    return AgentSpec(kind="command", timeout_s=60, options={"argv": ["/bin/sh", "-c", script]})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("pods"))


@pytest.fixture(scope="module")
def baked(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bake(lab, tmp_path_factory.mktemp("image"))


@pytest.fixture
def faulty() -> Iterator[FaultyStore]:
    with faulty_store() as store:
        yield store


def granted(lab: Lab, agent: AgentSpec) -> Grants:
    return lab.grants(agent, attempt=next(NUMBERS), limits=LIMITS)


def at(grants: Grants, key: str, url: str) -> Grants:
    return grants.model_copy(update={key: PutGrant(url=url)})


def record(lab: Lab, grants: Grants, name: str) -> Path:
    return lab.root / "store/lab/attempts" / TRIAL / str(grants.attempt) / name


def terminated(running: PodRun) -> tuple[int, int, int]:
    """As a kubelet does it: every container is told."""
    for process in running.containers:
        process.send_signal(signal.SIGTERM)
    return running.wait(100)


def unwritten(running: PodRun) -> End:
    """The end that the runner could not write, as the controller may."""
    assert running.said is not None
    assert running.said.end is not None
    return running.said.end


def loss_of(lab: Lab, grants: Grants) -> Loss:
    loss = Left(lab, grants.attempt, TERMINATED, "").end.loss
    assert loss is not None
    return loss


# --- SIGTERM ------------------------------------------------------------------------------------------------


def test_before_the_claim(faulty: FaultyStore, tmp_path: Path) -> None:
    with pod(faulty.url("stall", "grants.json"), baked=tmp_path) as running:
        assert faulty.asked.wait(60)
        runner, *_ = terminated(running)
        said = running.said
    assert runner == TERMINATED
    assert said is not None
    assert (said.state, said.end) == ("stopped", None)


def test_during_the_set_up(lab: Lab, baked: Path, faulty: FaultyStore) -> None:
    grants = granted(lab, shell("true"))
    missing = GetGrant(url=faulty.url("stall", "workspace"))
    grants = grants.model_copy(update={"objects": {**grants.objects, grants.task.workspace: missing}})
    with pod(grants, baked=baked) as running:
        assert faulty.asked.wait(60)
        assert terminated(running)[0] == TERMINATED
    loss = loss_of(lab, grants)
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, False, False)


def test_while_the_agent_runs(lab: Lab, baked: Path) -> None:
    token = seconds_token()
    grants = granted(lab, shell(f"trap '' TERM; touch begun; setsid sleep {token} & sleep {token}"))
    with pod(grants, baked=baked) as running:
        assert until(lambda: len(tokens_alive(f"sleep\0{token}")) == 2, 60)
        assert until(lambda: inside(running.score), 60)
        assert terminated(running) == (TERMINATED, 0, 0)
        said = running.said
    assert tokens_alive(token) == []
    loss = loss_of(lab, grants)
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, True, False)
    assert said is not None
    assert (said.state, said.end) == ("committed", None)


def test_while_the_patch_is_written(lab: Lab, baked: Path, faulty: FaultyStore) -> None:
    grants = at(granted(lab, shell("true")), "patch", faulty.url("stall", "patch.json"))
    with pod(grants, baked=baked, env=SOON) as running:
        assert faulty.asked.wait(60)
        assert terminated(running)[0] == TERMINATED
        loss = unwritten(running).loss
    assert loss is not None
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, True, False)


def test_while_the_tests_run(lab: Lab, baked: Path) -> None:
    token = seconds_token()
    sleeper = f'import subprocess; subprocess.run(["sleep", "{token}"])'
    grants = granted(lab, shell(f"echo '{sleeper}' >> shop/pricing/rules.py"))
    with pod(grants, baked=baked) as running:
        assert until(lambda: len(tokens_alive(f"sleep\0{token}")) == 1, 60)
        assert terminated(running) == (TERMINATED, 0, 0)
    assert tokens_alive(token) == []
    loss = loss_of(lab, grants)
    assert (loss.loss, loss.patched) == (LossClass.TERMINATED, True)


def test_while_the_end_is_written_the_verdict_is_left_for_the_controller(
    lab: Lab, baked: Path, faulty: FaultyStore
) -> None:
    grants = at(granted(lab, AgentSpec(kind="oracle")), "end", faulty.url("stall", "end"))
    with pod(grants, baked=baked, env=SOON) as running:
        assert faulty.asked.wait(60)
        assert terminated(running)[0] == TERMINATED
        end = unwritten(running)
    assert end.scored is not None
    assert (end.scored.verdict, end.by) == (Verdict.PASSED, "runner")
    assert end.bundle == sha256(record(lab, grants, "bundle.tar.zst").read_bytes())
    assert not record(lab, grants, "end.json").exists()


def test_while_the_bundle_is_written_the_patch_is_left_to_be_scored_again(
    lab: Lab, baked: Path, faulty: FaultyStore
) -> None:
    grants = at(granted(lab, AgentSpec(kind="oracle")), "bundle", faulty.url("stall", "bundle"))
    with pod(grants, baked=baked, env=SOON) as running:
        assert faulty.asked.wait(60)
        assert terminated(running)[0] == TERMINATED
        loss = unwritten(running).loss
    assert loss is not None
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, True, True)
    assert record(lab, grants, "patch.json").exists()


# --- grants that do not hold --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["start", "patch", "bundle", "end"])
def test_a_store_that_refuses_hears_of_it_otherwise(lab: Lab, baked: Path, faulty: FaultyStore, key: str) -> None:
    grants = at(granted(lab, AgentSpec(kind="oracle")), key, faulty.url("refuse", key))
    with pod(grants, baked=baked) as running:
        assert running.wait() == (75, 0, 0)
        said = running.said
    assert said is not None
    assert said.state == "refused"
    assert faulty.address in said.message
    if key == "start":
        assert said.end is None
        return
    assert said.end is not None
    if key == "end":
        assert said.end.scored is not None
        assert said.end.scored.verdict is Verdict.PASSED
        assert said.end.bundle is not None
        return
    assert said.end.loss is not None
    assert (said.end.loss.loss, said.end.loss.agent_started) == (LossClass.STORE, True)
    assert said.end.loss.patched == (key == "bundle")


# --- supervisors alone --------------------------------------------------------------------------------------


def test_a_supervisor_whose_runner_never_comes_goes(tmp_path: Path) -> None:
    assert supervisor(tmp_path, "agent", {"TRIALFLEET_GATE_WAIT_S": "0.3"}).wait(60) == 4


def test_a_supervisor_that_waits_for_nobody_obeys_sigterm(tmp_path: Path) -> None:
    waiting = supervisor(tmp_path, "score")
    assert until(lambda: b"supervise" in Path(f"/proc/{waiting.pid}/cmdline").read_bytes(), 60)
    time.sleep(0.3)
    waiting.terminate()
    assert waiting.wait(60) in (TERMINATED, -signal.SIGTERM)
