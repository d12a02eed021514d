"""The real Claude Code with its model on Amazon Bedrock and on Vertex AI: it notices no difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.claude_code import DONE, MODEL, Rig
from tests.support.scripted_bedrock import KEY_ID, REGION, SECRET, SESSION, scripted_bedrock
from tests.support.scripted_messages import Fail, Say, Usage
from tests.support.scripted_vertex import BASE, scripted_vertex
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_runner.model_access import upstream

pytestmark = pytest.mark.needs("claude")
PROFILE = "eu.anthropic.claude-sonnet-4-6-v1:0"


def test_claude_code_on_bedrock(tmp_path: Path) -> None:
    options = {"provider": "bedrock", "model_ids": {MODEL: PROFILE, "claude-haiku-4-5-20251001": PROFILE}}
    with scripted_bedrock() as provider:
        environ = {
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": provider.url,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": SESSION,
        }
        rig = Rig(tmp_path, provider, upstream=upstream(AgentSpec(kind="claude-code", options=options), environ))
        ran = rig.run(
            Say("Looking.", (rig.read(),), Usage(100, 20, cache_read=1000, cache_write=300)),
            Fail(429, "ThrottlingException", "Too many tokens, please wait."),
            Say("Fixing.", (rig.edit(), rig.bash("env")), Usage(50, 30)),
            DONE,
        )
    assert (rig.ws / "src/a.py").read_text() == "x = 2\n"
    assert (ran.report.turns, ran.parsed.turns, ran.report.halt) == (3, 3, None)
    assert ran.report.error_count == 1
    assert ran.report.output_tokens == ran.parsed.output_tokens
    assert ran.parsed.cost_usd == pytest.approx(ran.report.cost_usd)
    assert {request.path.split("/")[-1] for request in provider.main} == {"invoke-with-response-stream"}
    said = json.dumps([request.body for request in provider.requests])
    assert "ANTHROPIC_AUTH_TOKEN" in said, "the agent saw its whole environment"
    for secret in (SECRET, SESSION, KEY_ID):
        assert secret not in said


def test_claude_code_on_vertex(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("ya29.first")
    with scripted_vertex() as provider:
        environ = {
            "GOOGLE_CLOUD_PROJECT": "my-project",
            "GOOGLE_CLOUD_LOCATION": "europe-west1",
            "VERTEX_BASE_URL": provider.url,
            "VERTEX_ACCESS_TOKEN_FILE": str(tmp_path / "token"),
        }
        spec = AgentSpec(kind="claude-code", options={"provider": "vertex"})
        rig = Rig(tmp_path, provider, upstream=upstream(spec, environ))
        ran = rig.run(Say("Looking.", (rig.read(),)), Say("Fixing.", (rig.edit(), rig.bash("env"))), DONE)
    assert (rig.ws / "src/a.py").read_text() == "x = 2\n"
    assert (ran.report.turns, ran.parsed.turns, ran.report.error_count) == (3, 3, 0)
    assert {request.path for request in provider.main} == {f"{BASE}/anthropic/models/{MODEL}:streamRawPredict"}
    assert "ya29" not in json.dumps([request.body for request in provider.requests])
