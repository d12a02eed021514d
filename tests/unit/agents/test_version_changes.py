"""What `agents check --version` says of two measurements, and which versions it installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, DeliveryMatrix, declared
from trialfleet_agents.agent_check.version_changes import list_changes
from trialfleet_agents.pinned import pinned
from trialfleet_agents.program import checked_version
from trialfleet_agents.registry import agent
from trialfleet_agents.version_install import install_version
from trialfleet_ledger.errors import OperatorError
from trialfleet_runner.agent_check.canary_run import spec_of

MATRIX = DeliveryMatrix(
    kind="codex",
    version="1.0",
    model="m",
    digest="0" * 64,
    root_files=("AGENTS.md", "NOTES.md"),
    reached=declared(agent("codex").reach),
    also_differ={CheckedDelivery.SYSTEM: ("a sentence",), CheckedDelivery.MCP: ()},
    control=("a clock",),
)


def test_versions_that_measure_the_same_changed_nothing() -> None:
    assert list_changes(MATRIX, MATRIX.model_copy(update={"version": "2.0", "digest": "1" * 64})) == []


def test_each_change_is_said_in_its_direction() -> None:
    reached = {**MATRIX.reached, CheckedDelivery.ROOT_FILE: False, CheckedDelivery.PARENT: True}
    differ = {CheckedDelivery.SYSTEM: ("another",), CheckedDelivery.MCP: (), CheckedDelivery.SKILLS: ("a list",)}
    after = MATRIX.model_copy(
        update={"root_files": ("AGENTS.md", "LATER.md"), "reached": reached, "also_differ": differ, "control": ()}
        | {"cut": {CheckedDelivery.ROOT_FILE: 32_000}}
    )
    forth = [
        "no longer sends NOTES.md of the workspace's root",
        "now sends LATER.md of the workspace's root",
        "root file: of a long one, 32,000 characters are sent, no longer all",
        "root file: no longer reaches the model",
        "file in a parent folder: now reaches the model",
        "with system channel, the first request now also differs in another",
        "with system channel, the first request no longer differs in a sentence",
        "two runs that are given the same no longer differ in a clock",
    ]
    assert list_changes(MATRIX, after) == forth
    back = list_changes(after, MATRIX)
    assert len(back) == len(forth)
    assert not {*back} & {*forth}


@pytest.mark.parametrize("version", ["latest", "", "../1.0", "1.0/../..", "-g", "1.0 --force", "٣"])
def test_what_is_no_version_is_refused_before_anything_runs(version: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="is no version"):
        install_version("codex", version, tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_kind_without_a_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no package"):
        install_version("oracle", "1.0", tmp_path)


def test_an_index_without_the_version_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no matching version >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(OperatorError, match="no matching version") as caught:
        install_version("codex", "99.0.0", tmp_path)
    assert "@openai/codex" in str(caught.value.hint)


def test_a_range_is_no_version_of_the_program_that_it_installs() -> None:
    """npm takes `2.x` for its newest: what was installed has another version than was asked for."""
    spec = spec_of("codex", version="0.x")
    with pytest.raises(OperatorError, match=r"names 0\.x"):
        checked_version(spec, pinned()["codex"].version)
