"""The two agents whose solve rates are known beforehand, and the registry that names all of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.agents import agent_setup, unmapped
from trialfleet_agents.registry import KINDS, agent
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_sandbox.protocol import Exit, Job

FIX = b"""diff --git "a/sp ace.py" "b/sp ace.py"
--- "a/sp ace.py"
+++ "b/sp ace.py"
@@ -1 +1 @@
-x = 1
+x = 2
"""


def oracle_job(tmp_path: Path, fix: bytes | None) -> Job:
    setup = agent_setup(tmp_path, AgentSpec(kind="oracle"), fix=fix)
    (tmp_path / "ws/sp ace.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", tmp_path / "ws"], check=True)
    job = agent("oracle").job(setup, unmapped(tmp_path))
    assert job is not None
    return job


def play(job: Job) -> Exit:
    with job.stdout.open("wb") as out, job.stderr.open("wb") as err:
        ran = subprocess.run(
            job.argv, env=job.env, cwd=job.cwd, input=job.stdin, stdout=out, stderr=err, check=False
        )
    return Exit(ran.returncode, "itself", 0.1, None)


def test_oracle_applies_the_fix_and_says_what_it_changed(tmp_path: Path) -> None:
    ended = play(oracle_job(tmp_path, FIX))
    parsed = agent("oracle").parse(tmp_path / "record", ended, tmp_path / "ws")
    assert (tmp_path / "ws/sp ace.py").read_text() == "x = 2\n"
    assert [(step.kind, step.path) for step in parsed.steps] == [("edit", "sp ace.py")]
    assert (parsed.turns, parsed.stop) == (1, Stop.FINISHED)


def test_a_fix_that_does_not_apply_changes_nothing_and_is_a_crash(tmp_path: Path) -> None:
    ended = play(oracle_job(tmp_path, FIX.replace(b"-x = 1", b"-x = 9")))
    parsed = agent("oracle").parse(tmp_path / "record", ended, tmp_path / "ws")
    assert (tmp_path / "ws/sp ace.py").read_text() == "x = 1\n"
    assert (parsed.steps, parsed.stop) == ((), Stop.ERROR)


def test_oracle_without_a_fix_is_the_operators_to_mend(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no fix"):
        oracle_job(tmp_path, None)


def test_nop_runs_nothing(tmp_path: Path) -> None:
    parsed = agent("nop").parse(tmp_path, None, tmp_path)
    assert (parsed.steps, parsed.turns, parsed.tool_calls, parsed.stop) == ((), 0, 0, Stop.FINISHED)


def test_an_unknown_kind_is_answered_with_the_list() -> None:
    with pytest.raises(OperatorError) as caught:
        agent("codex-cli")
    assert all(kind in str(caught.value) for kind in KINDS)


def test_every_agent_without_a_model_is_the_same_on_every_machine() -> None:
    for kind in ("nop", "oracle"):
        first, second = (agent(kind).identify(AgentSpec(kind=kind)) for _ in range(2))
        assert first == second
        assert first.needs_model is False
