"""The campaigns that ship, and that pages show: what they declare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import StopRule

ROOT = Path(__file__).parents[3]
FILES = sorted([*(ROOT / "examples/shop").glob("*.yaml"), *(ROOT / "tasks/quickstart").glob("*.yaml")])
PLACEBO = "placebo.yaml"  # it has a fixed end, after which the margin is tested
CAMPAIGNS = [
    file for file in FILES if re.search(r"^campaign:", file.read_text(), re.MULTILINE) and file.name != PLACEBO
]
PAGES = ("README.md", "docs/reference/campaign-file.md", "docs/how-to/compare-two-agents-md.md")


def test_there_are_campaigns() -> None:
    assert len(CAMPAIGNS) == 5


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_campaigns_declare_looks_spending_and_futility(file: Path) -> None:
    primary = load_campaign(file).spec.primary
    assert primary is not None
    assert primary.stop is not None
    assert primary.stop == StopRule()
    assert primary.stop.model_fields_set == {"looks", "spending", "futility"}, "each is written out"


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_them(page: str) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    shown = next(block for block in blocks if "primary:" in block)
    assert Primary.model_validate(yaml.safe_load(shown)["primary"]).stop == StopRule()
