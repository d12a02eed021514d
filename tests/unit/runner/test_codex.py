"""How Codex is started, and what is read from its own output. What it does is measured in tests/integration."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent_setup, mapped
from trialfleet_agents.codex.agent import Codex
from trialfleet_agents.toml import toml
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_sandbox.protocol import Exit, Job

ITSELF = Exit(0, "itself", 1.0, None)


SAYS = """#!/bin/sh
if [ "$1" = debug ]; then echo '{{"models": [{{"slug": "gpt-5.5"}}]}}'; else echo "{}"; fi
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin/codex"
    path.parent.mkdir()
    path.write_text(SAYS.format("codex-cli 0.169.0"))
    path.chmod(0o755)
    monkeypatch.setenv("TRIALFLEET_CODEX", str(path))
    return path


def test_a_codex_that_lists_no_model_is_refused_with_the_pinned_version(tmp_path: Path, program: Path) -> None:
    program.write_text('#!/bin/sh\necho "codex-cli 0.169.0"\n', encoding="utf-8")
    with pytest.raises(OperatorError, match="lists no model") as raised:
        job(tmp_path, spec())
    assert "npm install -g @openai/codex@" in (raised.value.hint or "")


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec.model_validate({"kind": "codex", "model": "gpt-5.5", **fields})


def job(tmp_path: Path, of: AgentSpec, **fields: Any) -> Job:
    given = {"gateway_url": "http://127.0.0.1:8080", "gateway_token": "tf-token", **fields}
    made = Codex().job(agent_setup(tmp_path, of, **given), mapped(tmp_path))
    assert made is not None
    return made


def settings(tmp_path: Path) -> dict[str, Any]:
    return tomllib.loads((tmp_path / "home/.codex/config.toml").read_text())


def test_the_gateway_is_the_only_way_to_a_model(tmp_path: Path, program: Path) -> None:
    made = job(tmp_path, spec())
    written = settings(tmp_path)
    provider = written["model_providers"][written["model_provider"]]
    assert (provider["base_url"], provider["wire_api"]) == ("http://127.0.0.1:8080/v1", "responses")
    assert made.env[provider["env_key"]] == "tf-token"
    assert "tf-token" not in " ".join(made.argv)
    assert provider["env_key"] in written["shell_environment_policy"]["exclude"]
    assert written["web_search"] == "disabled"
    assert not any(written["features"].values())
    assert written["model_catalog_json"] == "/home/agent/.codex/trialfleet-models.json", "servers or none"
    assert (made.stdin, made.env["CODEX_HOME"]) == (b"Mend it.\n", "/home/agent/.codex")


def test_a_system_text_with_every_kind_of_quote_arrives_as_it_is(tmp_path: Path, program: Path) -> None:
    said = "a \"quoted\"\n''' text\\ with \x1b and é\u2028"
    job(tmp_path, spec(), system=said)
    assert settings(tmp_path)["developer_instructions"] == said


def test_hooks_are_there_when_the_condition_has_them(tmp_path: Path, program: Path) -> None:
    job(tmp_path, spec())
    assert json.loads((tmp_path / "home/.codex/hooks.json").read_text()) == {"hooks": {}}
    job(tmp_path, spec(), hook_context=tmp_path / "context", fail_fast_log=tmp_path / "home/fast.jsonl")
    hooks = json.loads((tmp_path / "home/.codex/hooks.json").read_text())["hooks"]
    assert sorted(hooks) == ["PostToolUse", "PreToolUse"]
    assert len(hooks["PostToolUse"]) == 2


def test_the_program_of_the_npm_package_is_the_one_that_needs_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "node_modules/@openai"
    places = ("codex/bin/codex.js", "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
    for place in places:
        (packages / place).parent.mkdir(parents=True)
        (packages / place).write_text(SAYS.format("codex-cli 1.0.0"))
        (packages / place).chmod(0o755)
    (packages / places[1]).parents[1].joinpath("codex-package.json").write_text("{}")
    monkeypatch.setenv("TRIALFLEET_CODEX", str(packages / places[0]))
    made = job(tmp_path, spec())
    assert made.argv[0] == str(packages / places[1])
    assert str((packages / places[1]).parents[1]) in [str(mount.source) for mount in made.mounts]


def test_what_cannot_be_planned_is_refused(program: Path) -> None:
    assert Codex().identify(spec()).version == "0.169.0"
    with pytest.raises(OperatorError, match="no model is named"):
        Codex().identify(AgentSpec(kind="codex"))
    with pytest.raises(OperatorError, match=r"codex here is 0\.169\.0, the campaign names 0\.1"):
        Codex().identify(spec(version="0.1"))
    with pytest.raises(OperatorError) as caught:
        Codex().identify(spec(options={"efort": "high"}))
    assert caught.value.where == "agent.options.efort"


def test_the_options_are_part_of_the_digest_and_prices_are_not(program: Path) -> None:
    plain = Codex().identify(spec()).digest
    assert Codex().identify(spec(options={"effort": "high"})).digest != plain
    kinds = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    prices = {"gpt-5.5": dict.fromkeys(kinds, 1)}
    assert Codex().identify(spec(options={"prices": prices})).digest == plain


def parsed(tmp_path: Path, *events: object, ended: Exit = ITSELF) -> Any:
    (tmp_path / "stdout").write_text("".join(f"{json.dumps(event)}\n" for event in events) + '{"type": "item.com')
    return Codex().parse(tmp_path, ended, tmp_path)


def test_counts_and_the_last_words_come_from_its_output(tmp_path: Path) -> None:
    usage = {"input_tokens": 515, "cached_input_tokens": 200, "output_tokens": 35, "reasoning_output_tokens": 10}
    found = parsed(
        tmp_path,
        {"type": "item.completed", "item": {"type": "error", "message": "a warning"}},
        {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}},
        {"type": "item.completed", "item": {"type": "file_change", "changes": []}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "\x1b[1mDone."}},
        {"type": "turn.completed", "usage": usage},
    )
    assert (found.input_tokens, found.cache_read_tokens, found.output_tokens) == (315, 200, 35)
    assert (found.tool_calls, found.answer, found.stop, found.malformed_lines) == (2, "Done.", Stop.FINISHED, 1)


@pytest.mark.parametrize(
    ("events", "ended", "stop"),
    [
        ([{"type": "turn.failed", "error": {"message": "m"}}], Exit(1, "itself", 1.0, None), Stop.ERROR),
        ([{"type": "turn.started"}], ITSELF, Stop.ERROR),
        ([{"type": "turn.started"}], Exit(-9, "timeout", 1.0, None), Stop.TIMEOUT),
        ([], Exit(-9, "memory", 1.0, None), Stop.MEMORY),
    ],
)
def test_why_it_stopped(tmp_path: Path, events: list[object], ended: Exit, stop: Stop) -> None:
    found = parsed(tmp_path, *events, ended=ended)
    assert (found.stop, found.input_tokens) == (stop, None)


def test_toml_of_names_that_are_nested() -> None:
    nested = {"a": {"b": {"c": [1, "x"]}, "d": True}, "e": "f"}
    assert tomllib.loads(toml(nested)) == nested
