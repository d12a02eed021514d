"""A campaign's cost in the report is the scripted server's own token counts times the price table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file, trialfleet
from tests.support.scripted_messages import Say, ScriptedMessages, Usage

MODEL, ASKED, TRIALS = "claude-sonnet-4-6", 3, 4
PRICES = {"input": 3, "output": 15, "cache_read": 0.30, "cache_write": 3.75}  # US dollars per million tokens
AGENT = f"""
import json, os, urllib.request
for _ in range({ASKED}):
    body = {{"model": os.environ["TRIALFLEET_MODEL"], "max_tokens": 99, "tools": [{{"name": "t"}}],
             "messages": [{{"role": "user", "content": "hi"}}]}}
    headers = {{"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}}
    address = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers)).read()
"""


@pytest.mark.needs("bwrap")
def test_the_reports_cost_is_the_servers_counts_times_the_prices(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    tmp_path.chmod(0o755)
    lab = Lab(tmp_path)
    usages = [
        Usage(input=1000 * n + 7, output=311 * n, cache_read=5003 * n, cache_write=211 * n)
        for n in range(1, 1 + ASKED * TRIALS)
    ]
    provider.play(*(Say("ok", (("t", {}),), usage) for usage in usages))
    options = {"argv": ["python", "-I", "-c", AGENT], "needs_model": True}
    agent = {"kind": "command", "model": MODEL, "timeout_s": 300, "options": options}
    file = campaign_file(lab, name="cost", agent=agent, store="out", conditions=("none", "flat_llm"), reps=2)
    env = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-x"}
    trialfleet("run", str(file), "--no-ray", "--no-report", lab=lab, env=env)
    report = json.loads(trialfleet("report", str(file), "--json", lab=lab))
    status = json.loads(trialfleet("status", str(file), "--json", lab=lab))
    spent = sum(getattr(usage, kind) * price for usage in usages for kind, price in PRICES.items()) / 1e6
    assert sum(one["cost"] for one in report["analysis"]["costs"]) == pytest.approx(spent, rel=1e-9)
    assert status["cost_usd"] == pytest.approx(spent, abs=5e-5)
