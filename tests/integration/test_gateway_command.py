"""A program of the user's own as an agent: in a sandbox, told by variables and files, with a model."""

from __future__ import annotations

import subprocess
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.agents import agent_setup
from tests.support.attempts import Lab
from tests.support.scripted_messages import ScriptedMessages, Usage
from trialfleet_agents.command import Command
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_repository.testrun import mounts_of
from trialfleet_runner.gateway import Gateway, Upstream, url_at
from trialfleet_sandbox.choose import choose

PORT = 8080

AGENT = """
import json, os, pathlib, sys, urllib.request

prompt = sys.stdin.read()
assert prompt == pathlib.Path(os.environ["TRIALFLEET_PROMPT"]).read_text()
assert os.getcwd() == os.environ["TRIALFLEET_WORKSPACE"]
assert pathlib.Path(os.environ["HOME"], ".config/agent.toml").read_text() == "x = 1"
body = {
    "model": os.environ["TRIALFLEET_MODEL"],
    "max_tokens": 50,
    "messages": [{"role": "user", "content": prompt}],
}
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    json.dumps(body).encode(),
    {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"},
)
text = json.load(urllib.request.urlopen(request))["content"][0]["text"]
pathlib.Path("answer.txt").write_text(text)
print("talking to myself")
print(json.dumps({"turn": 1, "kind": "edit", "path": os.path.abspath("answer.txt")}))
"""


@pytest.mark.needs("bwrap")
def test_a_program_gets_all_that_the_documentation_promises(tmp_path: Path, provider: ScriptedMessages) -> None:
    tool = tmp_path / "tool"
    for folder in (tool, tmp_path / "ws", tmp_path / "home/tmp", tmp_path / "record"):
        folder.mkdir(parents=True)
    (tool / "main.py").write_text(AGENT)
    venv.create(tmp_path / "env", symlinks=True)
    subprocess.run(["git", "init", "-q", tmp_path / "ws"], check=True)
    spec = AgentSpec(
        kind="command",
        model="claude-sonnet-4-6",
        timeout_s=30,
        options={
            "argv": ["python", str(tool / "main.py")],
            "mounts": [str(tool)],
            "files": {".config/agent.toml": "x = 1"},
            "needs_model": True,
        },
    )
    identity = Command().identify(spec)
    assert (identity.needs_model, identity.model) == (True, spec.model)
    provider.play()
    with Gateway(
        Upstream(provider.url, "sk-key"),
        record=tmp_path / "record",
        listen=tmp_path / "gateway.sock",
        model=spec.model,
    ) as gateway:
        setup = agent_setup(tmp_path, spec, gateway_url=url_at(PORT), gateway_token=gateway.token)
        sandbox = choose("bubblewrap")
        mounts = mounts_of(tmp_path / "env", tmp_path / "ws", tmp_path / "home", sandbox)
        job = Command().job(setup, mounts)
        assert job is not None
        job = replace(job, gateway=gateway.socket, gateway_port=PORT)
        ended = sandbox.run(job)
    assert ended.code == 0, job.stderr.read_text()
    parsed = Command().parse(tmp_path / "record", ended, tmp_path / "ws")
    assert (tmp_path / "ws/answer.txt").read_text() == "Side."
    assert [(step.kind, step.path) for step in parsed.steps] == [("edit", "answer.txt")]
    assert parsed.stop is Stop.FINISHED
    report = gateway.report()
    assert (report.turns, report.output_tokens) == (1, Usage().output)  # without tools, a request is a turn
    assert provider.requests[0].headers["x-api-key"] == "sk-key"


OTHER_MODEL = """
import json, os, urllib.request

body = {"model": "claude-haiku-4-5", "max_tokens": 50, "tools": [{"name": "t"}], "messages": []}
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
address = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers)).read()
"""


@pytest.mark.needs("bwrap")
def test_a_program_that_asks_another_model_never_began(tmp_path: Path, provider: ScriptedMessages) -> None:
    tmp_path.chmod(0o755)
    lab = Lab(tmp_path)
    options = {"argv": ["python", "-I", "-c", OTHER_MODEL], "needs_model": True}
    spec = AgentSpec(kind="command", model="claude-sonnet-4-6", timeout_s=60, options=options)
    provider.play()
    env = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-key"}
    ran = lab.run(lab.grants(spec), env=env)
    assert ran.end.scored is not None
    assert ran.end.scored.stop is Stop.CRASHED
    assert provider.requests == []
    words = (
        "the agent asked for claude-haiku-4-5, but the plan has claude-sonnet-4-6: such requests are answered 404"
    )
    assert words in ran.bundle.manifest.warnings
    permitted = spec.model_copy(update={"options": {**options, "side_models": ("claude-haiku-*",)}})
    lab.run(lab.grants(permitted, attempt=2), env=env)
    assert len(provider.requests) == 1, "the control"


REQUEST = """
import os, sys, urllib.error, urllib.request
path, body = sys.argv[1:]
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
try:
    urllib.request.urlopen(urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + path, body.encode(), headers))
except urllib.error.HTTPError as error:
    print(error.code)
sys.exit(3)
"""


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize(
    ("argv", "timeout_s", "stop"),
    [
        (["/bin/sh", "-c", "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py"], 60, Stop.CRASHED),  # without its model
        (["sleep", "300"], 1, Stop.CRASHED),
        (["python", "-I", "-c", "import no_such_module"], 60, Stop.CRASHED),
        (["python", "-I", "-c", REQUEST, "/v1/models/x", "{}"], 60, Stop.CRASHED),  # no request for a model
        (["python", "-I", "-c", REQUEST, "/v1/messages", "no JSON"], 60, Stop.ERROR),  # refused by the gateway
    ],
    ids=["exits 0", "time limit", "import error", "other path", "refused request"],
)
def test_a_program_that_sends_no_request_to_its_model_has_crashed(
    tmp_path: Path, provider: ScriptedMessages, argv: list[str], timeout_s: int, stop: Stop
) -> None:
    tmp_path.chmod(0o755)
    lab = Lab(tmp_path)
    options = {"argv": argv, "needs_model": True}
    spec = AgentSpec(kind="command", model="claude-sonnet-4-6", timeout_s=timeout_s, options=options)
    provider.play()
    env = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-key"}
    scored = lab.run(lab.grants(spec), env=env).end.scored
    assert scored is not None
    assert (scored.verdict, scored.stop) == (Verdict.FAILED, stop)
