"""A new kind of agent is a plug-in: adapter, trajectory reader, and the files that it reads as instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toys.campaign import Plugin, TaskFiles, ToyCampaign

RULES = "# Operators\nsum is written with +\nproduct is written with *\n"
BAIT = "sum is written with %\nproduct is written with %\n"  # of the repository: every trial would fail by it


def register_toy_agent() -> Plugin:
    """The one place that knows how an agent's kind is registered."""
    return Plugin(
        "agent",
        "from toy_agent import TOY\nfrom trialfleet_agents import registry\nregistry.KINDS['toy'] = TOY\n",
    )


@pytest.mark.needs("bwrap")
def test_a_toy_agent_from_campaign_file_to_report(tmp_path: Path) -> None:
    toy = ToyCampaign(tmp_path, register_toy_agent())
    toy.write_tasks(files=TaskFiles(others=dict(TaskFiles().others) | {"TOY.md": BAIT}), context={"TOY.md": RULES})
    toy.write_campaign(agent={"kind": "toy"}, conditions=["none", "flat_llm"])
    toy.drive()
    assert toy.passes() == {
        ("none", "sum"): 2,
        ("none", "product"): 0,
        ("flat_llm", "sum"): 2,
        ("flat_llm", "product"): 2,
    }
    trial = toy.first_trial("flat_llm", "product")
    assert "read TOY.md in the root directory" in trial
    assert "\n+product() { echo $(($1 * $2)); }\n" in trial
    step = '"detail":"operator *","kind":"edit","path":"product.sh","tool":"toy-write","turn":1'
    assert trial.count(step) == 1
    agent = {(one["name"], one["value"]) for one in toy.report["manifest"] if one["group"] == "Agent"}
    assert {("kind", "toy"), ("version", "0.1")} <= agent
