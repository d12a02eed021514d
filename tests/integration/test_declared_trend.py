"""A campaign over doses of a text with a declared trend: from its file, by an agent that reads, to the report."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file, trialfleet
from trialfleet_analysis.commands.power import power
from trialfleet_analysis.commands.report import report
from trialfleet_controller.commands.plan import plan
from trialfleet_controller.commands.status import status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Repairs where it was told the last sentence of the text, which the short dose cuts off.
AGENT = r"""
case "$(cat)" in *'raises ValueError'*) sed -i 's|discount / 0|discount / 100|' shop/pricing/rules.py ;; esac
"""
TREND = {
    "trend": ["none", "preamble_60", "preamble_400"],
    "doses": [0, 60, 400],
    "effect": 0.5,
}
CONDITIONS = {"none": None, "preamble": {"inline": {"source": "nearest", "max_tokens": [60, 400]}}}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("doses")
    root.chmod(0o755)
    return Lab(root)


@pytest.fixture(scope="module")
def file(lab: Lab) -> Path:
    agent = {"kind": "command", "timeout_s": 60, "options": {"argv": ["/bin/sh", "-c", AGENT]}}
    path = campaign_file(lab, name="doses", agent=agent, store="runs", reps=3)
    spec = yaml.safe_load(path.read_text()) | {"conditions": CONDITIONS, "primary": TREND}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def shown(command: click.Command, *args: str) -> str:
    """What a command prints that starts no trial."""
    return CliRunner().invoke(command, args, catch_exceptions=False).output


def test_from_the_file_to_the_sentence(lab: Lab, file: Path) -> None:
    planned = shown(plan, str(file))
    assert "conditions  3: none, preamble_60, preamble_400" in planned
    assert "primary     trend over the doses none 0, preamble_60 60, preamble_400 400, α = 0.05" in planned
    trialfleet("run", "--no-ray", str(file), lab=lab)
    frozen = json.loads((lab.root / "runs/doses/campaign.json").read_text())
    assert (frozen["trend"]["doses"], frozen["primary"]) == ([0, 60, 400], None)
    assert [frozen["conditions"][name]["inline"]["max_tokens"] for name in TREND["trend"][1:]] == [60, 400]
    said = shown(report, str(file), "--out", str(lab.root / "out"))
    told = json.loads((lab.root / "out/report.json").read_text())
    sentence = (
        "On this one task, the pass rate rose with the dose (0, 60, 400): 0.0% (none) → 0.0% (preamble_60) → "
        "100.0% (preamble_400), "
    )
    assert told["answer"][0].startswith(sentence)
    assert told["decision"] == "more"
    all_at_the_top = 1 / math.comb(9, 3)  # of the ways in which 3 of the 9 trials pass; mid-p, so only once
    assert told["analysis"]["trend"]["test"]["p_value"] == pytest.approx(all_at_the_top)
    assert "the pass rate rose with the dose" in " ".join(said.split())
    assert "The declared trend" in (lab.root / "out/report.md").read_text()
    assert "complete" in shown(status, str(file))


def test_power_of_the_file(file: Path) -> None:
    said = json.loads(shown(power, str(file), "--simulations", "200", "--tasks", "8", "--json"))
    assert (said["question"], said["doses"], said["tasks"]) == ("trend", [0, 60, 400], 8)
    [row] = said["rows"]
    assert [one["effect"] for one in row["scenarios"]] == [0.0, 0.25, 0.5, 0.75][: len(row["scenarios"])]
    assert row["scenarios"][0]["power"] < 0.12
