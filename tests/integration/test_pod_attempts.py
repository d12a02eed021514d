"""Whole attempts in a pod's three containers, as processes: the real runner, real supervisors, real sockets."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.support.attempts import LIMITS, SIGNALS, TRIAL, Lab, Left, shell
from tests.support.forged_modules import ATTACKS, SETTINGS, WRITE
from tests.support.local_pod import PodRun, inside, pod
from tests.support.processes import processes_with, unique_seconds
from tests.support.waiting import wait_until
from trialfleet_controller.backends.runner_termination import RunnerTermination, classify, exhausted_patch
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.attempt import Intent, LastWords
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Stop, Verdict

NUMBERS = count(1)
FIX = "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py"
FIX_BYTES = LIMITS.memory_bytes // 2  # that the tests took with the fix
SLOW_TESTS = "echo 'import time; time.sleep(60)' >> shop/pricing/rules.py"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("pods"))


def granted(lab: Lab, agent: AgentSpec, limits: Limits = LIMITS, condition: str = "none") -> Grants:
    return lab.grants(agent, condition, attempt=next(NUMBERS), limits=limits)


def left(lab: Lab, grants: Grants, code: int) -> Left:
    return Left(lab, grants.attempt, code, "")


def record(lab: Lab, grants: Grants, name: str) -> Path:
    return lab.root / "store/lab/attempts" / TRIAL / str(grants.attempt) / name


def comes(there: Callable[[], bool]) -> None:
    wait_until(there, within_s=60)


# --- ends ---------------------------------------------------------------------------------------------------


def test_grants_of_another_version_end_as_the_operators_error_which_halts_the_campaign(tmp_path: Path) -> None:
    grants = tmp_path / "grants.json"
    grants.write_text('{"schema_version": 1, "since": "a later version"}')
    with pod(grants.as_uri(), baked=tmp_path) as running:
        code = running.containers[0].wait(60)
        said = running.said
    assert said is not None
    assert (code, said.state) == (RunnerExit.REFUSED, "misconfigured")
    loss = classify(RunnerTermination(code=code, words=said.message), started=False, patched=False)
    assert (loss.loss, loss.halt) == (LossClass.SETUP, HaltScope.CAMPAIGN)
    assert "build the image again" in loss.message


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


def test_signals_to_the_supervisors_change_nothing(lab: Lab, baked: Path) -> None:
    """By the agent, and by the code that it leaves while the tests run."""
    script = f"{SIGNALS}\nwith open('shop/pricing/rules.py', 'a') as file: file.write({SIGNALS!r})"
    grants = granted(lab, AgentSpec(kind="command", options={"argv": ["python", "-c", script]}))
    with pod(grants, baked=baked) as running:
        assert running.wait() == (0, 0, 0)
    found = left(lab, grants, 0)
    assert found.end.scored is not None, found.end
    assert (found.end.scored.verdict, found.end.scored.stop) == (Verdict.FAILED, Stop.FINISHED)


def test_no_module_that_an_agent_adds_is_imported_by_the_tests(
    tmp_path_factory: pytest.TempPathFactory, baked: Path
) -> None:
    """Also not from a folder that pytest's settings put on the path: there the scoring interpreter is guarded."""
    lab = Lab(tmp_path_factory.mktemp("forged"), files={"pyproject.toml": SETTINGS, "helpers/tools.py": ""})
    files = {path: text for attack in ATTACKS.values() for path, text in attack.items()}
    argv = ["python", "-I", "-c", WRITE, json.dumps(files)]
    grants = granted(lab, AgentSpec(kind="command", options={"argv": argv}))
    with pod(grants, baked=baked) as running:
        assert running.wait() == (0, 0, 0)
    found = left(lab, grants, 0)
    assert found.end.scored is not None, found.end
    assert found.end.scored.verdict is Verdict.FAILED
    assert found.patch is not None
    assert "helpers/pdb.py" in found.patch.diff
    assert b"ZeroDivisionError" in found.bundle.files["tests/output.log"], "the tests ran to their end"


def test_an_open_network_is_a_warning_in_the_bundle(lab: Lab, baked: Path) -> None:
    grants = granted(lab, AgentSpec(kind="nop"))
    with pod(grants, baked=baked, env={"TRIALFLEET_NETWORK": "unenforced"}) as running:
        assert running.wait()[0] == 0
    assert [words.partition(":")[0] for words in left(lab, grants, 0).bundle.manifest.warnings] == [
        "the network was not cut"
    ]


@contextmanager
def answering() -> Generator[tuple[str, socket.socket]]:
    """An address that connects until its socket is closed, and that nobody else gets."""
    server = socket.create_server(("127.0.0.1", 0), reuse_port=True)
    with server, socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        silent.bind(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}", server


def test_nothing_starts_before_the_policy_holds(lab: Lab, baked: Path, tmp_path: Path) -> None:
    grants = granted(
        lab, AgentSpec(kind="command", options={"argv": ["sh", "-c", f"date +%s.%N > {tmp_path}/at"]})
    )
    with answering() as (address, server):
        env = {"TRIALFLEET_FORBIDDEN": address, "TRIALFLEET_FORBIDDEN_S": "60"}
        with pod(grants, baked=baked, env=env) as running:
            server.accept()[0].close()
            time.sleep(3)
            assert not (tmp_path / "at").exists()
            closed_at = time.time()
            server.close()
            assert running.wait() == (0, 0, 0)
    assert float((tmp_path / "at").read_text()) > closed_at
    assert left(lab, grants, 0).end.scored is not None


def test_a_policy_that_does_not_take_effect_is_a_loss_before_the_agent(
    lab: Lab, baked: Path, tmp_path: Path
) -> None:
    grants = granted(lab, AgentSpec(kind="command", options={"argv": ["touch", f"{tmp_path}/ran"]}))
    with answering() as (address, _):
        env = {"TRIALFLEET_FORBIDDEN": f"127.0.0.1:1 {address}", "TRIALFLEET_FORBIDDEN_S": "1"}
        with pod(grants, baked=baked, env=env) as running:
            assert running.wait()[0] == 0
    loss = left(lab, grants, 0).end.loss
    assert loss is not None
    assert (loss.loss, loss.agent_started, loss.halt) == (LossClass.SETUP, False, HaltScope.NONE)
    assert loss.message.startswith(
        f"the namespace's NetworkPolicy has not taken effect within 1 s: this pod still reaches {address}, so "
        "nothing of the task was started. Check the policies (kubectl get networkpolicy) and the network plug-in "
        "of node node-1. In a campaign of another name, kubernetes.graces.open_network_s gives it more time"
    )
    assert not (tmp_path / "ran").exists()


def test_an_attempt_of_another_runner_is_left_alone(lab: Lab, baked: Path) -> None:
    grants = granted(lab, AgentSpec(kind="nop"))
    with pod(grants, baked=baked) as running:
        running.wait()
    with pod(grants, baked=baked) as again:
        assert again.wait() == (3, 0, 0)
        assert again.said is not None
        assert again.said.state == "another"


def test_a_late_agent_is_stopped_and_scored(lab: Lab, baked: Path) -> None:
    token = unique_seconds()
    grants = granted(lab, shell(f"{FIX}; setsid sleep {token} & trap '' TERM; sleep {token}", timeout_s=5))
    with pod(grants, baked=baked) as running:
        assert running.wait()[0] == 0
    scored = left(lab, grants, 0).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop, scored.tests_passed) == (Verdict.TIMED_OUT, Stop.TIMEOUT, True)
    assert processes_with(token) == []


FULL = "head -c 45000000 /dev/urandom > big; sync big"  # 86 % of the volume
FILES = "mkdir n && cd n && python -c 'for i in range(600): open(str(i), \"x\")'"
SMALL = {"disk_bytes": 50 * 2**20, "inodes": 500}


@pytest.mark.parametrize("script", [FULL, FILES], ids=["bytes", "inodes"])
def test_an_agent_that_fills_its_volume_is_exhausted_before_the_kubelet_evicts_it(
    lab: Lab, baked: Path, script: str
) -> None:
    grants = granted(lab, shell(f"{script}; sleep 60"), LIMITS.model_copy(update=SMALL))
    with pod(grants, baked=baked) as running:
        assert running.wait()[0] == 0
    scored = left(lab, grants, 0).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop) == (Verdict.EXHAUSTED, Stop.DISK)


def test_tests_that_use_up_inodes_are_exhausted(lab: Lab, baked: Path) -> None:
    files = "import os, time; os.mkdir('n'); [open(f'n/{i}', 'x') for i in range(600)]; time.sleep(60)"
    grants = granted(lab, shell(f'echo "{files}" >> shop/pricing/rules.py'), LIMITS.model_copy(update=SMALL))
    with pod(grants, baked=baked) as running:
        assert running.wait()[0] == 0
    scored = left(lab, grants, 0).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop) == (Verdict.TESTS_EXHAUSTED, Stop.FINISHED)


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


def with_killed_tests(lab: Lab, grants: Grants, baked: Path) -> Left:
    """What an attempt leaves whose tests' container is killed while they run."""
    with pod(grants, baked=baked) as running:
        comes(lambda: (running.root / "runner/tests/stdout").exists())
        time.sleep(0.5)
        running.score.kill()
        assert running.wait() == (0, 0, -signal.SIGKILL)
    return left(lab, grants, 0)


@pytest.fixture(scope="module")
def killed_once(lab: Lab, baked: Path) -> Left:
    """A right fix whose tests' container was killed."""
    slow_fix = f"{FIX}; echo 'import time; time.sleep(3)' >> shop/pricing/rules.py"
    return with_killed_tests(lab, granted(lab, shell(slow_fix)), baked)


def scored_again(lab: Lab, first: Left, deaths: int, fix_bytes: int | None = FIX_BYTES) -> Grants:
    """Of the attempt that scores the patch of `first`, whose tests have died `deaths` times."""
    grants = lab.grants(shell("true"), attempt=next(NUMBERS), limits=LIMITS, score_patch_of=first.attempt)
    task = grants.task.model_copy(update={"fix_bytes": fix_bytes})
    return grants.model_copy(update={"tests_died": deaths, "task": task})


def test_a_killed_scoring_container_is_no_verdict(killed_once: Left) -> None:
    loss = killed_once.end.loss
    assert loss is not None
    assert (loss.loss, loss.patched, loss.halt) == (LossClass.SCORING, True, HaltScope.NONE)
    assert loss.by_patch
    assert "no verdict" not in loss.message


def test_a_patch_that_kills_its_tests_three_times_has_failed(lab: Lab, baked: Path, killed_once: Left) -> None:
    found = with_killed_tests(lab, scored_again(lab, killed_once, 2), baked)
    assert found.end.scored is not None, found.end
    assert (found.end.scored.verdict, found.end.scored.tests_passed) == (Verdict.TESTS_EXHAUSTED, False)
    assert any(one.startswith("the tests gave no result too often") for one in found.bundle.manifest.warnings)


def test_without_the_memory_of_the_fix_the_third_death_is_a_loss_that_says_why(
    lab: Lab, baked: Path, killed_once: Left
) -> None:
    loss = with_killed_tests(lab, scored_again(lab, killed_once, 2, fix_bytes=None), baked).end.loss
    assert loss is not None
    assert (loss.loss, loss.by_patch) == (LossClass.SCORING, True)
    why = "; no verdict: the memory of the fix's own run is unknown (`trialfleet validate --fresh`)"
    assert loss.message.endswith(why)


@pytest.mark.parametrize(("deaths", "verdict"), [(1, Verdict.PASSED), (3, Verdict.TESTS_EXHAUSTED)])
def test_a_patch_whose_tests_died_before(
    lab: Lab, baked: Path, killed_once: Left, deaths: int, verdict: Verdict
) -> None:
    """Once: the tests run again, and decide. Three times, with the runners of evicted pods: they do not run."""
    grants = scored_again(lab, killed_once, deaths)
    with pod(grants, baked=baked) as running:
        assert running.wait()[0] == 0
    found = left(lab, grants, 0)
    assert found.end.scored is not None, found.end
    assert found.end.scored.verdict is verdict
    assert ("tests/output.log" in found.bundle.files) is (deaths == 1)


def test_the_last_sample_of_the_agent_is_there_for_a_kubelet_that_kills_the_pod(lab: Lab, baked: Path) -> None:
    """The control: an agent within its limits."""
    for script, over in ((FULL, True), (FILES, True), ("true", False)):
        grants = granted(lab, shell(f"{script}; exec sleep 60"), LIMITS.model_copy(update=SMALL))
        stalled = grants.model_copy(
            update={"patch": grants.patch.model_copy(update={"url": "http://10.255.255.1/"})}
        )
        with pod(stalled, baked=baked) as running:
            comes(lambda: running.said is not None and running.said.over_limits is over)  # noqa: B023 - at once
            said = running.said
            running.runner.kill()
            running.wait()
        assert said is not None
        assert (said.state, said.program) == ("running", "agent")


def test_an_exhausted_agents_patch_is_scored_with_what_was_planned_to_reach_it(lab: Lab, baked: Path) -> None:
    evicted = granted(lab, AgentSpec(kind="nop"), condition="intent_layer_preamble")
    intent = Intent(trial=TRIAL, attempt=evicted.attempt, nonce="n", epoch=1, at=0, previous_end="0" * 64)
    lab.store.create(
        f"lab/attempts/{TRIAL}/{evicted.attempt}/patch.json", canonical_json(exhausted_patch(intent, 1.0))
    )
    grants = lab.grants(
        shell("true"),
        "intent_layer_preamble",
        attempt=next(NUMBERS),
        limits=LIMITS,
        score_patch_of=evicted.attempt,
    )
    with pod(grants, baked=baked) as running:
        assert running.wait()[0] == 0
    scored = left(lab, grants, 0).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop) == (Verdict.EXHAUSTED, Stop.DISK)
    assert scored.metrics.turns is None
    assert scored.delivery.inline_tokens
    assert not any((scored.delivery.reached_model or {}).values())


def test_a_killed_runner_leaves_nobody(lab: Lab, baked: Path) -> None:
    token = unique_seconds()
    grants = granted(lab, shell(f"touch begun; setsid sleep {token} & sleep {token}"))
    with pod(grants, baked=baked) as running:
        begun(lab, grants, running)
        comes(lambda: len(processes_with(f"sleep\0{token}")) == 2)
        running.runner.kill()
        assert running.wait(60) == (-signal.SIGKILL, 0, 0)
        assert running.said == LastWords(state="running", program="agent")
    assert processes_with(token) == []
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
