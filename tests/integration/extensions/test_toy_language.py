"""A new language is a plug-in: which files are tests, how they are called, and how their results are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toys.campaign import Plugin, TaskFiles, ToyCampaign

FILES = TaskFiles(
    source=("{task}.toy", "a {sign} b\n"), tests=("{task}.check", "value 3 4 {value}\nruns 1 1 any\n"), others={}
)
# Solves one of the two tasks, and adds a check, which must not reach the checkout that is scored.
AGENT = "sed -i 's/-/+/' ./*.toy; echo 'value 0 0 any' > more.check"


def register_toy_language() -> Plugin:
    """The one place that knows how a language is registered."""
    return Plugin(
        "language",
        "from toy_language import TOY\nfrom trialfleet_repository.languages import register\nregister(TOY)\n",
    )


@pytest.mark.needs("bwrap")
def test_a_toy_language_from_campaign_file_to_report(tmp_path: Path) -> None:
    toy = ToyCampaign(tmp_path, register_toy_language())
    toy.write_tasks(files=FILES, environment={"kind": "toy"}, language="Toy")
    command = {"kind": "command", "options": {"argv": ["/bin/sh", "-c", AGENT]}}
    toy.write_campaign(conditions={"none": {}, "edited": {"agent": command}})
    toy.drive()
    assert toy.passes() == {
        ("none", "sum"): 0,
        ("none", "product"): 0,
        ("edited", "sum"): 2,
        ("edited", "product"): 0,
    }
    trial = toy.first_trial("edited", "product", "--part", "tests")
    assert "failed   product.check::value" in trial
    assert "passed   product.check::runs" in trial
    assert "toy> product.check value bad: 7" in toy.first_trial("edited", "product")
    environments = [one["value"] for one in toy.report["manifest"] if one["group"] == "Environments"]
    assert environments == ["toy"]
    assert "more.check" not in toy.first_trial("edited", "product", "--file", "patch.diff")
