"""A whole campaign whose agent ignores a delivery: an A/A check that only its requests show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file, trialfleet
from tests.support.scripted_messages import ScriptedMessages

# Sends a title request, then its prompt with what such programs add: an id, the time, its folder, the seed. It
# does not read $TRIALFLEET_SYSTEM.
AGENT = """
import json, os, time, urllib.request, uuid
def ask(**more):
    text = open(os.environ["TRIALFLEET_PROMPT"]).read()
    system = f"Session {uuid.uuid4()}, {time.strftime('%Y-%m-%dT%H:%M:%SZ')}, in {os.getcwd()}."
    body = {"model": os.environ["TRIALFLEET_MODEL"], "max_tokens": 99, "system": system,
            "messages": [{"role": "user", "content": text}], **more}
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
    address = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers)).read()
ask(temperature=int(os.environ["TRIALFLEET_SEED"]) % 2)
ask(tools=[{"name": "t"}])
ask(tools=[{"name": "t"}], temperature=int(os.environ["TRIALFLEET_SEED"]) % 2)
"""
SAID = (
    "ignored and none sent the model the same first request in all 2 complete blocks that they share. Unless what "
    "they differ in (inline) acts later in a run, any difference between them is chance (an A/A check)."
)


@pytest.mark.needs("bwrap")
def test_a_text_that_the_agent_ignores_makes_an_a_a_check(tmp_path: Path, provider: ScriptedMessages) -> None:
    tmp_path.chmod(0o755)
    lab = Lab(tmp_path)
    provider.play()
    options = {"argv": ["python", "-I", "-c", AGENT], "needs_model": True}
    file = campaign_file(
        lab,
        name="arms",
        agent={"kind": "command", "model": "claude-sonnet-4-6", "timeout_s": 300, "options": options},
        store="out",
        conditions={
            "none": None,
            "ignored": {"inline": {"source": "nearest", "channel": "system"}},
            "heard": {"inline": {"source": "nearest"}},
        },
        reps=2,
        primary={"treatment": "ignored", "control": "none"},
    )
    env = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-x"}
    trialfleet("run", str(file), "--no-ray", "--no-report", lab=lab, env=env)
    report = json.loads(trialfleet("report", str(file), "--json", lab=lab))
    assert [one["conditions"] for one in report["equal_arms"]] == [["ignored", "none"]]
    assert f"Careful: {SAID}" in report["answer"]
    assert SAID in trialfleet("status", str(file), lab=lab).splitlines()
