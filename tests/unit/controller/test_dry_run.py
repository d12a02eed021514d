"""Dry runs: every agent is replaced, no key is needed, and nothing mixes with the campaign itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.ledgers import plan, write_plan
from trialfleet_controller.campaigns import from_file
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_controller.planning.dry_run import DryRunAgent, dry_run_store, with_dry_run_agents
from trialfleet_controller.status.campaign_status import read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.trial_order import trials

KINDS: tuple[DryRunAgent, ...] = ("search", "oracle", "nop")
CAMPAIGN: dict[str, Any] = {
    "campaign": "shop",
    "seed": 1,
    "tasks": ["tasks.yaml"],
    "reps": 2,
    "agent": {"kind": "claude-code", "model": "claude-sonnet-4-6", "max_turns": 30, "timeout_s": 90},
    "conditions": {
        "none": None,
        "other_model": {"model": "claude-opus-4-1", "effort": "high", "settings": {"a": 1}},
        "other_agent": {"agent": {"kind": "codex", "model": "gpt-5", "max_turns": 7}, "files": "tree"},
        "version": {"agent_version": "2.0.0"},
        "extended": {"skills": ["skills/a"], "mcp": {"docs": {"command": ["cat"], "version": "1"}}},
    },
    "store": "runs",
}
IN_PODS = {
    "backend": "kubernetes",
    "kubernetes": {"image": "i:1", "model_secret": "keys", "model_base_url": "https://gateway"},
    "store": {"url": "s3://bucket/runs", "endpoint": "http://s3:9000"},
}


def write(folder: Path, **changed: Any) -> Path:
    (folder / "tasks.yaml").write_text("tasks: []\n")
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(CAMPAIGN | changed, sort_keys=False))
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [{}, IN_PODS], ids=["here", "in pods"])
def test_no_agent_of_the_campaign_is_left(tmp_path: Path, kind: DryRunAgent, place: dict[str, Any]) -> None:
    file = load_campaign(write(tmp_path, **place))
    dry = with_dry_run_agents(file, kind)
    bare = (kind, None, None, {})
    assert [(one.kind, one.model, one.version, one.options) for one in dry.agents.values()] == 5 * [bare]
    replaced = {name: one.dry_run_of for name, one in dry.agents.items()}
    assert replaced == dict.fromkeys(file.agents, "claude-code") | {"other_agent": "codex"}
    limits = {name: (one.max_turns, one.timeout_s) for name, one in dry.agents.items()}
    assert limits == dict.fromkeys(file.agents, (30, 90)) | {"other_agent": (7, 90)}
    assert dry.conditions["other_agent"].files == "tree", "the context stays"
    assert dry.conditions["extended"].skills, "what the agent cannot be given is left out later, and named"
    for condition in dry.conditions.values():
        assert (condition.model, condition.agent, condition.effort, condition.settings) == (None, None, None, {})
    assert dry.spec.backend == file.spec.backend
    if dry.spec.kubernetes is not None:
        assert (dry.spec.kubernetes.model_secret, dry.spec.kubernetes.model_base_url) == (None, None)
        assert dry.spec.kubernetes.image == "i:1"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("store", [None, "elsewhere"])
def test_its_store_is_its_own_and_no_campaigns_folder(
    tmp_path: Path, kind: DryRunAgent, store: str | None
) -> None:
    path = write(tmp_path)
    real, dry = from_file(path, store), from_file(path, store, kind)
    assert dry.store.url == dry_run_store(real.store.url, kind)
    assert dry.name == real.name
    assert real.origin is None
    assert dry.origin is not None
    assert dry.origin.url == real.store.url, "contexts that the file names by digest are read there"
    with pytest.raises(OperatorError):
        load_campaign(write(tmp_path, campaign=f"_dry-run-{kind}"))


def test_a_campaign_file_cannot_call_itself_a_dry_run(tmp_path: Path) -> None:
    path = write(tmp_path, agent={"kind": "search", "dry_run_of": "claude-code"})
    with pytest.raises(OperatorError, match="no dry run") as caught:
        load_campaign(path)
    assert "--agent search" in (caught.value.hint or "")


def test_its_trials_are_others_even_for_the_same_agent(tmp_path: Path) -> None:
    agent = AgentSpec(kind="search", version="1", max_turns=60, timeout_s=60)
    real, dry = plan(agent=agent), plan(agent=agent.model_copy(update={"dry_run_of": "search"}))
    assert {one.id for one in trials(real)}.isdisjoint(one.id for one in trials(dry))
    for first, second in ((real, dry), (dry, real)):
        store = write_plan(tmp_path / str(first.dry_run), first)
        with pytest.raises(OperatorError, match="a different campaign of this name is in the store"):
            Ledger(store, "demo").freeze(second)


def test_status_says_first_that_it_is_a_dry_run(tmp_path: Path) -> None:
    agent = AgentSpec(kind="nop", dry_run_of="codex")
    status = read_status(write_plan(tmp_path, plan(agent=agent)), "demo")
    assert lines(status)[0].startswith("Dry run of demo: ")
    assert status.as_json()["dry_run"] is True
    real = read_status(write_plan(tmp_path / "real", plan()), "demo")
    assert lines(real)[0].startswith("demo: ")
    assert real.as_json()["dry_run"] is False
