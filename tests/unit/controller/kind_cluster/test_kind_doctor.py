"""`trialfleet doctor --kind`, with an empty PATH."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialfleet_controller.commands.doctor import doctor
from trialfleet_ledger.errors import OperatorError


@pytest.fixture(autouse=True)
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_each_missing_thing_has_its_remedy() -> None:
    done = CliRunner().invoke(doctor, ["--kind"])
    assert done.exit_code == 2
    lines = done.output.splitlines()[1:]
    assert [line.split(":")[0] for line in lines[::2]] == [
        f"MISSING  {name}" for name in ("docker", "kind", "kubectl")
    ]
    assert all(line.startswith("         fix: ") for line in lines[1::2])


def test_as_json() -> None:
    done = CliRunner().invoke(doctor, ["--kind", "--json"], env={"KIND_CLUSTER": "../x"})
    assert done.exit_code == 2
    assert [check["name"] for check in json.loads(done.output)] == ["docker", "kind", "kubectl", "cluster"]


def test_a_campaign_is_another_question() -> None:
    done = CliRunner().invoke(doctor, ["campaign.yaml", "--kind"])
    assert isinstance(done.exception, OperatorError)
