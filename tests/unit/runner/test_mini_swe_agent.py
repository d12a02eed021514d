"""How mini-swe-agent is started, and what is read from its trajectory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent_setup, mapped
from trialfleet_agents.mini_swe_agent.agent import MiniSweAgent
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_sandbox.protocol import Exit

ITSELF = Exit(0, "itself", 1.0, None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment that holds it, by all that is looked at."""
    made = tmp_path / "venv"
    (made / "lib/python3.11/site-packages/mini_swe_agent-2.4.6.dist-info").mkdir(parents=True)
    (made / "lib/python3.11/site-packages/minisweagent/config").mkdir(parents=True)
    (made / "lib/python3.11/site-packages/minisweagent/config/mini.yaml").touch()
    (made / "bin").mkdir()
    for name in ("mini", "python"):
        (made / "bin" / name).write_text("#!/bin/sh\necho Python 3.11.7\n")
        (made / "bin" / name).chmod(0o755)
    monkeypatch.setenv("TRIALFLEET_MINI", str(made / "bin/mini"))
    return made


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec.model_validate({"kind": "mini-swe-agent", "model": "gpt-5.5", **fields})


def test_the_gateway_is_its_only_way_and_the_prompt_is_no_argument(tmp_path: Path, home: Path) -> None:
    given = {"gateway_url": "http://127.0.0.1:8080", "gateway_token": "tf-token", "prompt": "{{ mend }} it"}
    made = MiniSweAgent().job(agent_setup(tmp_path, spec(max_turns=7), **given), mapped(tmp_path))
    assert made is not None
    config = json.loads((tmp_path / "home/trialfleet/config.yaml").read_text())
    assert config["run"] == {"task": "{{ mend }} it"}
    assert config["agent"]["step_limit"] == 7
    assert config["model"]["model_name"] == "openai/gpt-5.5"
    assert config["model"]["model_kwargs"]["api_base"] == "http://127.0.0.1:8080/v1"
    assert made.env["OPENAI_API_KEY"] == "tf-token"
    assert "tf-token" not in " ".join(made.argv)
    assert "mend" not in " ".join(made.argv)
    assert f"{home}/bin/python" in made.argv
    assert f"{home}/lib/python3.11/site-packages/minisweagent/config/mini.yaml" in made.argv


def test_what_cannot_be_planned_is_refused(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = MiniSweAgent().identify(spec())
    assert (found.version, found.reach.root_in_prompt, found.reach.hook_after) == ("2.4.6", True, False)
    with pytest.raises(OperatorError, match="no model is named"):
        MiniSweAgent().identify(AgentSpec(kind="mini-swe-agent"))
    with pytest.raises(OperatorError, match=r"here is 2\.4\.6, the campaign names 2\.0\.0"):
        MiniSweAgent().identify(spec(version="2.0.0"))
    monkeypatch.setenv("TRIALFLEET_MINI", "/bin/sh")
    with pytest.raises(OperatorError, match="is not a virtual environment with mini-swe-agent") as caught:
        MiniSweAgent().identify(spec())
    assert "mini-swe-agent==2.4.6" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("version", "words"), [("3.9.2", "is 3.9"), ("3.10.0", None), ("3.14.1", None), (None, "is gone")]
)
def test_a_python_that_is_too_old_or_gone_is_named(home: Path, version: str | None, words: str | None) -> None:
    python = home / "bin/python"
    python.unlink()
    if version is None:
        python.symlink_to(home / "no/such/python3")  # the system's was upgraded
    else:
        python.write_text(f"#!/bin/sh\necho Python {version}\n")
        python.chmod(0o755)
    if words is None:
        assert MiniSweAgent().identify(spec()).version == "2.4.6"
        return
    with pytest.raises(OperatorError, match=rf"needs Python 3\.10 or newer, and {python} {words}") as caught:
        MiniSweAgent().identify(spec())
    assert "PIPX_DEFAULT_PYTHON=python3.12 pipx install mini-swe-agent==2.4.6" in (caught.value.hint or "")


def answer(sent: int, cached: int) -> dict[str, Any]:
    details = {"cached_tokens": cached}
    usage = {"prompt_tokens": sent, "completion_tokens": 5, "prompt_tokens_details": details}
    return {"role": "assistant", "extra": {"response": {"usage": usage}, "actions": [{"command": "ls"}]}}


@pytest.mark.parametrize(
    ("status", "stop"),
    [("Submitted", Stop.FINISHED), ("LimitsExceeded", Stop.MAX_TURNS), ("RuntimeError", Stop.ERROR)],
)
def test_counts_and_the_stop_come_from_its_trajectory(tmp_path: Path, status: str, stop: Stop) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "extra": {}},
        answer(10, 4),
        {"role": "tool"},
        answer(20, 0),
    ]
    document: dict[str, Any] = {"info": {"exit_status": status, "submission": "Mended."}, "messages": messages}
    (tmp_path / "stdout").write_text(json.dumps(document))
    found = MiniSweAgent().parse(tmp_path, ITSELF, tmp_path)
    assert (found.turns, found.tool_calls, found.stop, found.answer) == (2, 2, stop, "Mended.")
    assert (found.input_tokens, found.cache_read_tokens, found.output_tokens) == (26, 4, 10)


@pytest.mark.parametrize("left", ["", "{", "[]", '{"info": 3, "messages": {"a": 1}}'])
def test_a_trajectory_that_is_none_does_no_harm(tmp_path: Path, left: str) -> None:
    (tmp_path / "stdout").write_text(left)
    found = MiniSweAgent().parse(tmp_path, Exit(-9, "timeout", 1.0, None), tmp_path)
    assert (found.stop, found.steps, found.answer) == (Stop.TIMEOUT, (), None)
