"""A new design is a plug-in: what a campaign declares as its primary result, and what its report says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toys.campaign import Plugin, ToyCampaign

SENTENCE = "fixed has most passes: fixed 4 of 4, none 0 of 4."


def register_toy_design() -> Plugin:
    """The one place that knows how the two halves of a design are registered."""
    return Plugin(
        "design",
        "from toy_design import MostPasses, ToyDesign\n"
        "from trialfleet_ledger.designs import registry as declarations\n"
        "declarations.DECLARATIONS['most_passes'] = MostPasses\n"
        "from trialfleet_designs import registry as designs\n"
        "designs.DESIGNS['most_passes'] = ToyDesign()\n",
    )


@pytest.mark.needs("bwrap")
def test_a_toy_design_from_campaign_file_to_report(tmp_path: Path) -> None:
    toy = ToyCampaign(tmp_path, register_toy_design())
    toy.write_tasks()
    toy.write_campaign(
        conditions={"none": {}, "fixed": {"agent": "oracle"}}, primary={"most_passes": ["none", "fixed"]}
    )
    toy.drive()
    assert toy.passes() == {
        ("none", "sum"): 0,
        ("none", "product"): 0,
        ("fixed", "sum"): 2,
        ("fixed", "product"): 2,
    }
    screen = toy.page.partition("## How do the conditions compare?")[0]
    assert SENTENCE in screen
    assert SENTENCE in " ".join(toy.report["answer"])
    assert "declares no primary" not in toy.page
    assert SENTENCE in " ".join(toy.call("report", "campaign.yaml").split())
