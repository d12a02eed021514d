"""Doses and a declared trend in a campaign file: what they expand to, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_controller.planning.campaign_file import CampaignFile, load_campaign
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.condition_order import InlineSpec

HEAD = """\
campaign: c
seed: 1
tasks: [t.yaml]
reps: 2
agent: {kind: nop}
store: store
"""
DOSES = """\
conditions:
  none:
  preamble: {inline: {source: nearest, sections: [Pitfalls], max_tokens: [300, 700, 1500]}, hook: on_read}
"""
CONDITIONS = "none, preamble_300, preamble_700, preamble_1500"
TREND = f"primary: {{trend: [{CONDITIONS}], doses: [0, 300, 700, 1500], effect: 0.2}}\n"


def loaded(folder: Path, text: str) -> CampaignFile:
    (folder / "t.yaml").write_text("{}")
    file = folder / "campaign.yaml"
    file.write_text(HEAD + text)
    return load_campaign(file)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(OperatorError) as error:
        loaded(folder, text)
    return f"{error.value.where}: {error.value.message}\n{error.value.hint}"


def test_a_list_of_lengths_is_a_condition_for_each(tmp_path: Path) -> None:
    file = loaded(tmp_path, DOSES + TREND)
    assert list(file.conditions) == ["none", "preamble_300", "preamble_700", "preamble_1500"]
    for dose in (300, 700, 1500):
        text = InlineSpec(source="nearest", sections=("Pitfalls",), max_tokens=dose)
        assert file.conditions[f"preamble_{dose}"] == Condition(inline=text, hook="on_read")
    trend = file.spec.primary
    assert isinstance(trend, TrendPrimary)
    assert (trend.doses, trend.steps) == ((0, 300, 700, 1500), (0, 3, 7, 15))
    assert (trend.alpha, trend.effect) == (0.05, 0.2)


def test_doses_work_without_a_trend(tmp_path: Path) -> None:
    file = loaded(tmp_path, DOSES + "primary: {treatment: preamble_700, control: none}\n")
    assert isinstance(file.spec.primary, Primary)


def test_one_length_is_one_condition(tmp_path: Path) -> None:
    file = loaded(tmp_path, "conditions: {none: , long: {inline: {source: nearest, max_tokens: 900}}}\n")
    assert list(file.conditions) == ["none", "long"]


def test_the_trend_is_not_in_the_plan_with_what_it_refuses(tmp_path: Path) -> None:
    trend = loaded(tmp_path, DOSES + TREND).spec.primary
    assert isinstance(trend, TrendPrimary)
    assert set(trend.model_dump()) == {"trend", "doses", "estimand", "alpha", "effect"}
    assert type(trend).model_validate_json(trend.model_dump_json(), strict=True) == trend


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        (DOSES + "primary: {treatment: preamble, control: none}\n", "", "'preamble' is not among the conditions"),
        (
            DOSES + "  preamble_300: {files: tree}\n",
            "",
            "a name is used twice",
        ),
        (DOSES.replace("300, 700", "700, 300"), ":9: conditions.preamble.inline", "do not ascend"),
        (DOSES.replace("300, 700, 1500", "300"), "conditions.preamble.inline.max_tokens", "at least 2"),
        (DOSES.replace("1500]", "x]"), "conditions.preamble.inline.max_tokens[2]", "whole number"),
        (DOSES.replace("hook: on_read", "hok: on_read"), "conditions.preamble.hok", "did you mean hook"),
        (DOSES + TREND.replace("effect: 0.2", "stop: {looks: 5}"), "primary.stop", "stop and trend do not go"),
        (DOSES + TREND.replace("effect: 0.2", "stop: {anytime: mixture}"), "primary.stop", "remove stop"),
        (DOSES + TREND.replace("effect: 0.2", "margin: 0.1"), "primary.margin", "margin and trend do not go"),
        (DOSES + TREND.replace("effect: 0.2", "control: none"), "primary.control", "keep trend and doses, or"),
        (DOSES + TREND.replace("effect: 0.2", "estimand: tasks_like_these"), "primary.estimand", "these_tasks"),
        (DOSES + TREND.replace("[0, 300,", "[300,"), "primary", "4 conditions in trend, and 3 doses"),
        (DOSES + TREND.replace("[0, 300,", "[300, 0,"), "primary", "do not ascend"),
        (DOSES + TREND.replace("[0, 300,", "[0, 1,"), "primary", "declare their ranks"),
        (DOSES + TREND.replace("[none, preamble_300", "[preamble_300, preamble_300"), "primary", "twice"),
        (DOSES + TREND.replace("[none, preamble_300", "[none, preamble_400"), "", "preamble_400"),
        (DOSES + "primary: {trend: [none, preamble_300], doses: [0, 1]}\n", "primary.trend", "at least 3"),
        (
            DOSES + "primary: {trend: [none, preamble_300, preamble_700]}\n",
            "primary.doses",
            "required and missing",
        ),
        (
            DOSES + "  best: {inline: {source: oracle_targets}}\n"
            "primary: {trend: [none, preamble_300, best], doses: [0, 1, 2]}\n",
            "primary.trend[2]",
            "it is a ceiling",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, where: str, words: str) -> None:
    said = refused(tmp_path, text)
    assert where in said.partition("\n")[0]
    assert words in said
