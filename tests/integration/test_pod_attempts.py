"""Whole attempts in a pod's three containers, as processes: the real runner, real supervisors, real sockets."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.integration.lab import TRIAL, Lab, Left
from tests.integration.rig_pod import PodRun, bake, inside, pod
from tests.integration.test_sandbox_contract import seconds_token, tokens_alive, until
from trialfleet_runner.canonical import sha256
from trialfleet_runner.contract import AgentSpec, Grants, HaltScope, Limits, LossClass, Stop, Verdict

LIMITS = Limits(memory_bytes=2**30, disk_bytes=2**28, stop_grace_s=0.2)
NUMBERS = count(1)
FIX = "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py"
SLOW_TESTS = "echo 'import time; time.sleep(60)' >> shop/pricing/rules.py"


def shell(script: str, timeout_s: float = 60) -> AgentSpec:
    return AgentSpec(kind="command", timeout_s=timeout_s, options={"argv": ["/bin/sh", "-c", script]})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("pods"))


@pytest.fixture(scope="module")
def baked(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bake(lab, tmp_path_factory.mktemp("image"))


def granted(lab: Lab, agent: AgentSpec, limits: Limits = LIMITS, condition: str = "none") -> Grants:
    return lab.grants(agent, condition, attempt=next(NUMBERS), limits=limits)


def left(lab: Lab, grants: Grants, code: int) -> Left:
    return Left(lab, grants.attempt, code, "")


def record(lab: Lab, grants: Grants, name: str) -> Path:
    return lab.root / "store/lab/attempts" / TRIAL / str(grants.attempt) / name


def comes(there: Callable[[], bool]) -> None:
    assert until(there, 60)


# --- ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "condition", "verdict"),
    [
        (AgentSpec(kind="nop"), "none", Verdict.FAILED),
        (AgentSpec(kind="oracle"), "flat_llm", Verdict.PASSED),
        (shell(FIX), "intent_layer_preamble", Verdict.PASSED),
        (AgentSpec(kind="search"), "intent_layer", None),
    ],
    ids=lambda value: value.kind if isinstance(value, AgentSpec) else None,
)
def test_each_agent_is_scored(
    lab: Lab, baked: Path, agent: AgentSpec, condition: str, verdict: Verdict | None
) -> None:
    grants = granted(lab, agent, condition=condition)
    with pod(grants, baked=baked) as running:
        assert running.wait() == (0, 0, 0)
        said = running.said
    found = left(lab, grants, 0)
    assert found.end.scored is not None, found.end
    assert found.end.scored.stop in (Stop.FINISHED, Stop.MAX_TURNS)
    assert verdict in (None, found.end.scored.verdict)
    assert (found.end.scored.metrics.overhead_core_s or 0) > 0.1  # ours alone: the other containers have their own
    assert found.bundle.manifest.isolation == "container"
    assert found.bundle.manifest.warnings == ()
    assert found.start is not None
    assert (found.start.pod, found.start.node, found.start.image) == ("pod-uid", "node-1", "runner@sha256:0")
    assert said is not None
    assert (said.state, said.end) == ("committed", None)
    assert said.end_sha256 == sha256(record(lab, grants, "end.json").read_bytes())


def test_an_open_network_is_a_warning_in_the_bundle(lab: Lab, baked: Path) -> None:
    grants = granted(lab, AgentSpec(kind="nop"))
    with pod(grants, baked=baked, env={"TRIALFLEET_NETWORK": "unenforced"}) as running:
        assert running.wait()[0] == 0
    assert [words.partition(":")[0] for words in left(lab, grants, 0).bundle.manifest.warnings] == [
        "the network was not cut"
    ]


def test_an_attempt_of_another_runner_is_left_alone(lab: Lab, baked: Path) -> None:
    grants = granted(lab, AgentSpec(kind="nop"))
    with pod(grants, baked=baked) as running:
        running.wait()
    with pod(grants, baked=baked) as again:
        assert again.wait() == (3, 0, 0)
        assert again.said is not None
        assert again.said.state == "another"


def test_a_late_agent_is_stopped_and_scored(lab: Lab, baked: Path) -> None:
    token = seconds_token()
    grants = granted(lab, shell(f"{FIX}; setsid sleep {token} & trap '' TERM; sleep {token}", timeout_s=5))
    with pod(grants, baked=baked) as running:
        assert running.wait()[0] == 0
    scored = left(lab, grants, 0).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop, scored.tests_passed) == (Verdict.TIMED_OUT, Stop.TIMEOUT, True)
    assert tokens_alive(token) == []


def test_an_agent_that_fills_its_volume_is_exhausted_before_the_kubelet_evicts_it(lab: Lab, baked: Path) -> None:
    script = "head -c 45000000 /dev/urandom > big; sync big; sleep 60"  # 86 % of the volume
    grants = granted(lab, shell(script), LIMITS.model_copy(update={"disk_bytes": 50 * 2**20}))
    with pod(grants, baked=baked) as running:
        assert running.wait()[0] == 0
    scored = left(lab, grants, 0).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop) == (Verdict.EXHAUSTED, Stop.DISK)


def test_an_environment_that_the_image_lacks_halts_its_task(lab: Lab, baked: Path, tmp_path: Path) -> None:
    del baked
    grants = granted(lab, AgentSpec(kind="nop"))
    with pod(grants, baked=tmp_path) as running:
        assert running.wait()[0] == 0
    loss = left(lab, grants, 0).end.loss
    assert loss is not None
    assert (loss.loss, loss.halt, loss.agent_started) == (LossClass.SETUP, HaltScope.TASK, False)
    assert "trialfleet image build" in loss.message


# --- containers that are killed -----------------------------------------------------------------------------


def begun(lab: Lab, grants: Grants, running: PodRun) -> None:
    """Until the agent runs."""
    comes(lambda: (running.root / "agent/workspace/begun").exists())


def test_a_killed_agent_container_was_out_of_memory(lab: Lab, baked: Path) -> None:
    grants = granted(lab, shell("touch begun; exec sleep 60", timeout_s=120))
    with pod(grants, baked=baked) as running:
        begun(lab, grants, running)
        running.agent.kill()
        assert running.wait() == (0, -signal.SIGKILL, 0)
    scored = left(lab, grants, 0).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop) == (Verdict.EXHAUSTED, Stop.MEMORY)
    assert scored.metrics.agent_core_s is None


def test_a_killed_scoring_container_is_no_verdict(lab: Lab, baked: Path) -> None:
    grants = granted(lab, shell(SLOW_TESTS))
    with pod(grants, baked=baked) as running:
        comes(lambda: (running.root / "runner/tests/stdout").exists())
        time.sleep(0.5)
        running.score.kill()
        assert running.wait() == (0, 0, -signal.SIGKILL)
    loss = left(lab, grants, 0).end.loss
    assert loss is not None
    assert (loss.loss, loss.patched, loss.halt) == (LossClass.SCORING, True, HaltScope.NONE)


def test_a_killed_runner_leaves_nobody(lab: Lab, baked: Path) -> None:
    token = seconds_token()
    grants = granted(lab, shell(f"touch begun; setsid sleep {token} & sleep {token}"))
    with pod(grants, baked=baked) as running:
        begun(lab, grants, running)
        comes(lambda: len(tokens_alive(f"sleep\0{token}")) == 2)
        running.runner.kill()
        assert running.wait(60) == (-signal.SIGKILL, 0, 0)
        assert running.said is None
    assert tokens_alive(token) == []
    assert not record(lab, grants, "end.json").exists()


# --- what an agent tries ------------------------------------------------------------------------------------

SECRET = "sk-planted-0123456789abcdef"
THEFT = """
for name in shop/leak.txt CLAUDE.md .leak README; do ln -sf /proc/self/environ $name; done
ln -sf /proc/self/environ $HOME/hook.jsonl
"""


def test_a_planted_link_to_the_runners_environment_leaks_nothing(lab: Lab, baked: Path) -> None:
    grants = granted(lab, shell(THEFT))
    with pod(grants, baked=baked, env={"ANTHROPIC_API_KEY": SECRET}) as running:
        assert running.wait()[0] == 0
    found = left(lab, grants, 0)
    assert found.end.scored is not None
    said = found.said()
    assert SECRET not in said
    assert "TRIALFLEET_GRANTS_URL" not in said
    assert found.patch is not None
    assert found.patch.diff == ""
    left_out = {words.partition(" ")[0] for words in found.patch.excluded}
    assert left_out == {".leak", "CLAUDE.md", "README", "shop/leak.txt"}


THEFT_BY_TESTS = """
import os, pathlib
for folder in pathlib.Path.cwd().parent.iterdir():
    for name in ("stdout", "stderr", "junit.xml"):
        if folder.is_dir():
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to("/proc/self/environ")
os._exit(1)
"""


def test_a_link_planted_by_the_tests_leaks_nothing(lab: Lab, baked: Path) -> None:
    """Patched code writes the scoring container's volume while the runner gathers what the tests say."""
    grants = granted(lab, shell(f"cat >> shop/pricing/rules.py <<'EOF'\n{THEFT_BY_TESTS}EOF"))
    with pod(grants, baked=baked, env={"ANTHROPIC_API_KEY": SECRET}) as running:
        assert running.wait()[0] == 0
    found = left(lab, grants, 0)
    assert found.patch is not None
    assert "symlink_to" in found.patch.diff
    assert found.end.scored is not None
    assert found.end.scored.verdict is Verdict.FAILED
    assert SECRET not in found.said()


KNOCK = """import os, socket, sys
for role in ("agent", "score"):
    door = socket.socket(socket.AF_UNIX)
    try:
        door.connect(f"{os.environ['ROOT']}/{role}-gate/gate.sock")
        print(role, "open")
    except OSError as error:
        print(role, type(error).__name__)
"""


def test_nobody_comes_in_through_a_gate_twice(lab: Lab, baked: Path, tmp_path: Path) -> None:
    """Within the agent's own container the score's gate cannot even be seen; here it can, and is still waiting."""
    script = tmp_path / "knock.py"
    script.write_text(KNOCK)
    wait = f"until [ -e {tmp_path}/knock ]; do sleep 0.1; done"
    agent = AgentSpec(
        kind="command",
        timeout_s=60,
        options={"argv": ["/bin/sh", "-c", f"{wait}; ROOT=$(cd ../..; pwd) python {script}"]},
    )
    grants = granted(lab, agent)
    with pod(grants, baked=baked) as running:
        comes(lambda: inside(running.score))  # else it is the agent who comes in
        (tmp_path / "knock").touch()
        assert running.wait()[0] == 0
    found = left(lab, grants, 0)
    assert found.end.scored is not None
    assert found.bundle.files["agent/stdout.log"].splitlines()[0] == b"agent ConnectionRefusedError"
