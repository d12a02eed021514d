"""The two campaigns that ship have the size that the README promises, and the demo's tasks their interpreters."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_runner.campaign import CampaignSpec
from trialfleet_runner.conditions import PRESETS
from trialfleet_runner.task import Status
from trialfleet_runner.taskfile import LoadedTask, campaign_tasks, load_all, tasks_of
from trialfleet_runner.yamlfile import Loaded, read

# The presets that deliver what authors wrote.
AUTHORED = {"none", "placebo", "flat_llm", "intent_layer", "intent_layer_preamble", "preamble_only"}
FOLDER = Path(__file__).parents[3] / "tasks" / "quickstart"


def campaign(name: str) -> Loaded[CampaignSpec]:
    return read(FOLDER / name, CampaignSpec)


def test_the_demo_is_large_enough_and_runs_without_key_or_server() -> None:
    loaded = campaign("demo.yaml")
    spec = loaded.value
    assert len(campaign_tasks(loaded)) >= 4
    assert (len(spec.conditions), spec.reps) == (4, 5)
    assert (spec.agent.kind, spec.backend) == ("search", "local")
    assert (FOLDER / spec.store_spec.url).resolve() == FOLDER.parents[1] / "runs"


def test_the_campaign_of_targets_has_the_arms_that_tell_names_from_confidence() -> None:
    spec = campaign("targets.yaml").value
    arms = {"placebo", "placebo_matched", "wrong_targets", "predicted_targets", "oracle_targets"}
    assert set(spec.conditions) == {"none", *arms}
    assert set(spec.conditions) <= set(PRESETS)
    assert spec.primary is not None
    assert (spec.primary.treatment, spec.primary.control) == ("predicted_targets", "placebo_matched")
    assert (spec.agent.kind, spec.backend) == ("search", "local")


@pytest.mark.parametrize("task", campaign_tasks(campaign("demo.yaml")), ids=lambda task: task.id)
def test_a_task_of_the_demo_runs_on_every_python_that_make_takes(task: LoadedTask) -> None:
    assert set(task.environment.python) >= {"3.11", "3.12", "3.13"}


def test_the_other_campaign_runs_every_task_under_every_preset() -> None:
    loaded = campaign("campaign.yaml")
    every = tasks_of(load_all(sorted((FOLDER / "tasks").glob("*.yaml"))))
    assert {task.id for task in campaign_tasks(loaded)} == {task.id for task in every}
    assert all(task.spec.status is Status.VALIDATED for task in every)
    assert set(loaded.value.conditions) >= AUTHORED
    assert loaded.value.reps == 25
