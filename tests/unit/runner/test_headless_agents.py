"""How the agents copilot, opencode and gemini are started, and what is refused before anything is planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent_setup, mapped
from trialfleet_agents.gemini import agent as gemini
from trialfleet_agents.opencode import agent as opencode
from trialfleet_agents.pinned import pinned
from trialfleet_agents.protocol import Agent
from trialfleet_agents.registry import agent
from trialfleet_deliveries.texts import render
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_sandbox.protocol import Job

MODELS = {"copilot": "gpt-5.5", "opencode": "claude-sonnet-4-6", "gemini": "gemini-2.5-pro"}
SAYS = {"copilot": "GitHub Copilot CLI 9.8.7.", "opencode": "9.8.7", "gemini": "9.8.7"}
TOKEN = "tf-token"

Make = Callable[..., tuple[Agent, Job]]


def spec(kind: str, **fields: Any) -> AgentSpec:
    return AgentSpec.model_validate({"kind": kind, "model": MODELS[kind], "max_turns": 7, **fields})


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that answer `--version` as the agents do, and the others that they need."""
    folder = tmp_path / "package/bin"
    folder.mkdir(parents=True)
    (tmp_path / "package/package.json").write_text("{}")
    for kind, said in SAYS.items():
        path = folder / kind
        path.write_text(f'#!/bin/sh\necho "{said}"\n')
        path.chmod(0o755)
        monkeypatch.setenv(pinned()[kind].variable, str(path))
    (folder / "rg").symlink_to("/bin/true")
    (folder / "node").write_text("#!/bin/sh\necho v22.1.0\n")
    (folder / "node").chmod(0o755)
    monkeypatch.setattr(opencode, "SYSTEM_PATH", str(folder))
    monkeypatch.setattr(gemini, "SYSTEM_PATH", str(folder))
    return folder


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(kind: str, *, options: dict[str, Any] | None = None, **fields: Any) -> tuple[Agent, Job]:
        given = {"gateway_url": "http://127.0.0.1:8080", "gateway_token": TOKEN, "prompt": "the prompt", **fields}
        setup = agent_setup(tmp_path, spec(kind, options=options or {}), **given)
        job = agent(kind).job(setup, mapped(tmp_path))
        assert job is not None
        return agent(kind), job

    return made


def settings(tmp_path: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((tmp_path / "home" / name).read_text())
    return read


@pytest.mark.parametrize("kind", MODELS)
def test_identity_names_version_and_model_and_follows_the_options(kind: str) -> None:
    found = agent(kind).identify(spec(kind))
    assert (found.kind, found.version, found.model, found.needs_model) == (kind, "9.8.7", MODELS[kind], True)
    assert agent(kind).identify(spec(kind, model="another-1")).digest != found.digest
    kinds = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    prices = {"x": dict.fromkeys(kinds, 1)}
    assert agent(kind).identify(spec(kind, options={"prices": prices})).digest == found.digest


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"options": {"provider": "nobody"}}, "agent.options.provider"),
        ({"options": {"wires": "x"}}, "agent.options.wires"),
        ({"options": {"prices": {"m": {"input": -1}}}}, "agent.options.prices"),
        ({"model": None}, "agent: model"),
        ({"version": "1.0.0"}, "agent: version"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(kind: str, fields: dict[str, Any], where: str) -> None:
    with pytest.raises(OperatorError) as caught:
        agent(kind).identify(spec(kind, **fields))
    assert (caught.value.where or "").startswith(where)
    assert caught.value.hint


@pytest.mark.parametrize(("kind", "missing"), [("opencode", "rg"), ("gemini", "node")])
def test_a_program_that_the_agent_needs_is_asked_for(programs: Path, kind: str, missing: str) -> None:
    (programs / missing).unlink()
    with pytest.raises(OperatorError, match=r"ripgrep|Node\.js") as caught:
        agent(kind).identify(spec(kind))
    assert "install" in (caught.value.hint or "")


@pytest.mark.parametrize(("version", "refused"), [("v18.20.4", True), ("v20.0.0", False), ("v9.11.2", True)])
def test_a_node_that_is_too_old_for_gemini_is_named_with_its_version(
    programs: Path, version: str, refused: bool
) -> None:
    (programs / "node").write_text(f"#!/bin/sh\necho {version}\n")
    if not refused:
        assert agent("gemini").identify(spec("gemini")).version == "9.8.7"
        return
    with pytest.raises(OperatorError, match=r"needs Node\.js 20 or newer") as caught:
        agent("gemini").identify(spec("gemini"))
    assert version.removeprefix("v") in caught.value.message
    assert "install such a Node.js in" in (caught.value.hint or "")


def test_gemini_may_not_choose_the_model() -> None:
    for model in ("auto-gemini-3", "pro", "flash", "gemini-3-pro-preview"):  # it asks for 3.1 instead of the last
        with pytest.raises(OperatorError, match="lets Gemini CLI choose"):
            agent("gemini").identify(spec("gemini", model=model))


@pytest.mark.parametrize("kind", MODELS)
def test_the_prompt_is_in_no_process_list_and_the_token_in_no_argument(make: Make, kind: str) -> None:
    _, job = make(kind, system="the system text")
    assert job.stdin == b"the prompt"
    assert not any(word in part for part in job.argv for word in ("the prompt", "the system text", TOKEN))
    assert TOKEN in job.env.values()
    assert (job.cwd, job.env["HOME"]) == ("/workspace", "/home/agent")


@pytest.mark.parametrize("kind", MODELS)
def test_nothing_of_the_runners_environment_gets_in(
    make: Make, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY", "GH_TOKEN"):
        monkeypatch.setenv(name, "sk-real")
    monkeypatch.setenv("COPILOT_ALLOW_ALL", "true")
    _, job = make(kind)
    assert "sk-real" not in job.env.values()
    assert "COPILOT_ALLOW_ALL" not in job.env


@pytest.mark.parametrize("kind", MODELS)
def test_without_a_gateway_nothing_is_started(make: Make, kind: str) -> None:
    with pytest.raises(ValueError, match="behind the gateway only"):
        make(kind, gateway_token=None)


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ({}, ("http://127.0.0.1:8080/v1", "openai", "responses")),
        ({"wire": "completions"}, ("http://127.0.0.1:8080/v1", "openai", "completions")),
        ({"provider": "anthropic"}, ("http://127.0.0.1:8080", "anthropic", "responses")),
    ],
)
def test_copilot_is_offline_and_has_one_provider(
    make: Make, options: dict[str, Any], variables: tuple[str, ...]
) -> None:
    _, job = make("copilot", options=options)
    names = ("COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_WIRE_API")
    assert tuple(job.env[name] for name in names) == variables
    assert job.env["COPILOT_OFFLINE"] == "true"
    assert job.env["COPILOT_HOME"] == "/home/agent/.copilot"


def test_copilots_hooks_answer_in_its_own_form(make: Make, tmp_path: Path) -> None:
    make("copilot", hook_context=tmp_path / "context", fail_fast_log=tmp_path / "home/f.jsonl", system="Text.")
    hooks = settings(tmp_path, ".copilot/hooks/trialfleet.json")["hooks"]
    assert {name: [entry["matcher"] for entry in entries] for name, entries in hooks.items()} == {
        "PostToolUse": ["Read|Edit|Write|Grep|Glob", "Bash|Edit|Write"],
        "PreToolUse": ["Bash"],
    }
    command = hooks["PostToolUse"][0]["hooks"][0]["command"]
    assert "translate_hook.py --workspace /workspace --dialect copilot -- /env/bin/python -I" in command
    assert (tmp_path / "home/.copilot/copilot-instructions.md").read_text() == "Text."


def test_copilot_is_shown_what_was_unpacked_when_it_was_installed(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "copilot/node_modules/@github/copilot-linux-x64/copilot"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'GitHub Copilot CLI 9.8.7.'\n")
    program.chmod(0o755)
    monkeypatch.setenv("TRIALFLEET_COPILOT", str(program))
    assert "COPILOT_PKG_CACHE_HOME" not in make("copilot")[1].env
    (tmp_path / "copilot/unpacked/pkg").mkdir(parents=True)
    job = make("copilot")[1]
    folder = tmp_path / "copilot/unpacked"
    assert job.env["COPILOT_PKG_CACHE_HOME"] == str(folder)
    assert [mount.writable for mount in job.mounts if mount.source == folder] == [False]


@pytest.mark.parametrize(
    ("options", "name", "base"),
    [
        ({}, "anthropic", "http://127.0.0.1:8080/v1"),
        ({"provider": "openai"}, "openai", "http://127.0.0.1:8080/v1"),
        ({"provider": "openai", "wire": "completions"}, "trialfleet", "http://127.0.0.1:8080/v1"),
        ({"provider": "google"}, "google", "http://127.0.0.1:8080/v1beta"),
    ],
)
def test_opencode_has_one_provider(
    make: Make, tmp_path: Path, options: dict[str, Any], name: str, base: str
) -> None:
    _, job = make("opencode", options=options)
    told = settings(tmp_path, ".config/opencode/opencode.json")
    assert told["enabled_providers"] == [name]
    assert told["provider"][name]["options"]["baseURL"] == base
    assert told["agent"]["build"]["steps"] == 7
    assert job.argv[job.argv.index("--model") + 1] == f"{name}/claude-sonnet-4-6"
    assert not (tmp_path / "home/.config/opencode/plugins").exists()


def test_opencode_reads_one_root_file_and_the_system_text(make: Make, tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/CLAUDE.md").write_text("x")
    make("opencode")
    assert settings(tmp_path, ".config/opencode/opencode.json")["instructions"] == ["/workspace/CLAUDE.md"]
    (tmp_path / "ws/AGENTS.md").write_text("x")
    make("opencode", system="Text.")
    assert settings(tmp_path, ".config/opencode/opencode.json")["instructions"] == [
        "/workspace/AGENTS.md",
        "/home/agent/trialfleet/system.md",
    ]


def test_opencodes_plugin_calls_the_hooks(make: Make, tmp_path: Path) -> None:
    make("opencode", hook_context=tmp_path / "context", fail_fast_log=tmp_path / "home/f.jsonl")
    commands = settings(tmp_path, ".config/opencode/trialfleet-hooks.json")
    assert ["fail_fast.py" in command for command in commands["before"]] == [True]
    assert [("push_on_read.py" in command) for command in commands["after"]] == [True, False]
    assert (tmp_path / "home/.config/opencode/plugins/trialfleet.js").is_file()


def test_geminis_settings_are_its_own(make: Make, tmp_path: Path, programs: Path) -> None:
    _, job = make("gemini", hook_context=tmp_path / "context", fail_fast_log=tmp_path / "home/f.jsonl", system="T")
    told = settings(tmp_path, ".gemini/settings.json")
    assert told["model"]["maxSessionTurns"] == 7
    assert told["advanced"] == {"ignoreLocalEnv": True}
    assert told["tools"]["exclude"] == ["google_web_search", "web_fetch"]
    (before,) = told["hooks"]["BeforeTool"]
    assert before["hooks"][0]["timeout"] == 10_000
    assert "--dialect gemini --" in before["hooks"][0]["command"]
    assert render("fail_fast").split()[0] in before["hooks"][0]["command"]
    assert len(told["hooks"]["AfterTool"]) == 2
    assert (tmp_path / "home/.gemini/GEMINI.md").read_text() == "T"
    assert job.argv[0] == str(programs / "node")
