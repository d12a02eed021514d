"""SIGTERM in every phase of a pod's attempt, and a store that refuses or does not answer: what is said then."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.attempts import LIMITS, TRIAL, Lab, shell
from tests.support.faulty_store import FaultyStore, faulty_store
from tests.support.local_pod import PodRun, inside, pod, supervisor
from tests.support.processes import processes_with, unique_seconds
from tests.support.waiting import wait_until
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.grants import GetGrant, Grants, PutGrant
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict

NUMBERS = count(1)
SOON = {"TRIALFLEET_STOP_S": "1"}
TERMINATED = 143


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("pods"))


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


def loss_of(lab: Lab, grants: Grants, running: PodRun) -> Loss:
    """Of a runner that was told to stop: its bundle is in the store, its end is for whoever knows why."""
    end = unwritten(running)
    assert running.said is not None
    assert running.said.state == "stopped"
    assert not record(lab, grants, "end.json").exists()
    assert end.bundle == sha256(record(lab, grants, "bundle.tar.zst").read_bytes())
    assert end.loss is not None
    return end.loss


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
        loss = loss_of(lab, grants, running)
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, False, False)


def test_while_the_agent_runs(lab: Lab, baked: Path) -> None:
    token = unique_seconds()
    grants = granted(lab, shell(f"trap '' TERM; touch begun; setsid sleep {token} & sleep {token}"))
    with pod(grants, baked=baked) as running:
        wait_until(lambda: len(processes_with(f"sleep\0{token}")) == 2, within_s=60)
        wait_until(lambda: inside(running.score), within_s=60)
        assert terminated(running) == (TERMINATED, 0, 0)
        loss = loss_of(lab, grants, running)
    assert processes_with(token) == []
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, True, False)


def test_while_the_patch_is_written(lab: Lab, baked: Path, faulty: FaultyStore) -> None:
    grants = at(granted(lab, shell("true")), "patch", faulty.url("stall", "patch.json"))
    with pod(grants, baked=baked, env=SOON) as running:
        assert faulty.asked.wait(60)
        assert terminated(running)[0] == TERMINATED
        loss = unwritten(running).loss
    assert loss is not None
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.TERMINATED, True, False)


def test_while_the_tests_run(lab: Lab, baked: Path) -> None:
    token = unique_seconds()
    sleeper = f'import subprocess; subprocess.run(["sleep", "{token}"])'
    grants = granted(lab, shell(f"echo '{sleeper}' >> shop/pricing/rules.py"))
    with pod(grants, baked=baked) as running:
        wait_until(lambda: len(processes_with(f"sleep\0{token}")) == 1, within_s=60)
        assert terminated(running) == (TERMINATED, 0, 0)
        loss = loss_of(lab, grants, running)
    assert processes_with(token) == []
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


def renewed(running: PodRun, grants: Grants) -> None:
    """What a kubelet does with the annotation."""
    (running.root / "renewed").mkdir(exist_ok=True)
    fresh = running.root / f"fresh-{grants.intent_nonce}.json"
    fresh.write_bytes(canonical_json(grants))
    written = running.root / "renewed" / "grants.new"
    written.write_text(fresh.as_uri())
    written.rename(running.root / "renewed" / "grants")


def test_a_patch_that_is_refused_is_kept_until_fresh_grants_come(
    lab: Lab, baked: Path, faulty: FaultyStore, tmp_path: Path
) -> None:
    """The agent has run once, and is not asked again."""
    ran = tmp_path / "ran"
    good = granted(lab, shell(f"echo once >>{ran}"))
    refused = at(good, "patch", faulty.url("refuse", "patch"))
    another = good.model_copy(update={"intent_nonce": "another's"})
    with pod(refused, baked=baked) as running:
        assert faulty.asked.wait(60)
        with pytest.raises(subprocess.TimeoutExpired):
            running.runner.wait(3)
        renewed(running, another)
        with pytest.raises(subprocess.TimeoutExpired):
            running.runner.wait(3)
        renewed(running, good)
        assert running.wait() == (0, 0, 0)
        said = running.said
    assert said is not None
    assert said.state == "committed"
    assert record(lab, good, "patch.json").exists()
    assert ran.read_text() == "once\n"


def test_a_patch_that_nobody_lets_in_is_named_when_time_is_up(lab: Lab, baked: Path, faulty: FaultyStore) -> None:
    grants = at(granted(lab, AgentSpec(kind="oracle")), "patch", faulty.url("refuse", "patch"))
    with pod(grants, baked=baked) as running:
        assert faulty.asked.wait(60)
        assert terminated(running)[0] == TERMINATED
        loss = unwritten(running).loss
    assert loss is not None
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.UNSAVED, True, False)
    assert loss.message.startswith("the agent had ended, and its patch could not be stored")


@pytest.mark.parametrize("key", ["start", "bundle", "end"])
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
    assert said.end.loss.patched


# --- supervisors alone --------------------------------------------------------------------------------------


def test_a_supervisor_whose_runner_never_comes_goes(tmp_path: Path) -> None:
    assert supervisor(tmp_path, "agent", {"TRIALFLEET_GATE_WAIT_S": "0.3"}).wait(60) == 4


def test_a_supervisor_that_waits_for_nobody_obeys_sigterm(tmp_path: Path) -> None:
    waiting = supervisor(tmp_path, "score")
    wait_until(lambda: b"supervise" in Path(f"/proc/{waiting.pid}/cmdline").read_bytes(), within_s=60)
    time.sleep(0.3)
    waiting.terminate()
    assert waiting.wait(60) in (TERMINATED, -signal.SIGTERM)
