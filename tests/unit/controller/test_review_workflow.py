"""The workflow that the how-to shows: valid YAML, few permissions, and commands that know the options it gives."""

from __future__ import annotations

import re
import shlex
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/how-to/review-a-context-change-in-ci.md"


def text() -> str:
    (found,) = re.findall(r"^```yaml\n(name: .*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found)


def workflow() -> dict[Any, Any]:
    return dict(yaml.safe_load(text()))


def steps() -> list[dict[str, Any]]:
    return list(workflow()["jobs"]["compare"]["steps"])


def commands() -> list[list[str]]:
    lines = [line.strip() for step in steps() for line in step.get("run", "").splitlines()]
    return [shlex.split(re.split(r" \|\| | >", line)[0]) for line in lines if line.startswith("trialfleet ")]


def test_it_runs_for_pull_requests_of_this_repository_with_few_rights() -> None:
    found = workflow()
    assert list(found[True]) == ["pull_request"], "YAML reads the key `on` as true"
    assert found["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert "head.repo.full_name == github.repository" in found["jobs"]["compare"]["if"]


def test_the_key_is_in_the_step_that_runs_the_agent_alone() -> None:
    holders = [step["name"] for step in steps() if "secrets." in str(step)]
    assert holders == ["Compare"]
    assert "secrets." not in str(workflow()["jobs"]["compare"]["env"])


def test_nothing_of_the_pull_request_is_pasted_into_a_script() -> None:
    assert [step["run"] for step in steps() if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words[:2]))
def test_its_commands_exist_and_know_their_options(words: list[str]) -> None:
    (point,) = metadata.entry_points(group="trialfleet.commands", name=words[1])
    command = point.load()
    assert isinstance(command, click.Command)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def linted(path: Path, workflow: str) -> tuple[int, str]:
    """Exit code and what actionlint finds; scripts are checked too, where shellcheck is installed."""
    path.write_text(workflow, encoding="utf-8")
    ran = subprocess.run(("actionlint", "-no-color", str(path)), capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.needs("actionlint")
def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    assert linted(tmp_path / "context.yaml", text()) == (0, "")


@pytest.mark.needs("actionlint")
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("steps.report.outputs", "steps.rapport.outputs", 'property "rapport" is not defined'),
        ("pull-requests: write", "pull-requests: all", 'available values are "read", "write", "none"'),
        ("fetch-depth: 0", "fetch-dept: 0", 'input "fetch-dept" is not defined in action "actions/checkout@v4"'),
    ],
)
def test_actionlint_would_find_a_mistake(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    code, found = linted(tmp_path / "context.yaml", text().replace(right, wrong))
    assert code == 1
    assert said in found
