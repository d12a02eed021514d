"""Campaigns from their stores to one answer: the reference, K = 1, what changes nothing, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledgers import Fate, read, write
from tests.unit.analysis.combining_fixture import (
    CONTROL,
    ONE,
    TREATMENT,
    TWO,
    added_up,
    campaign,
    combined,
    made,
    ran,
    store_of,
)
from trialfleet_analysis.combining.evidence import campaign_evidence, labelled
from trialfleet_analysis.combining.render import to_json
from trialfleet_analysis.combining.sameness import refuse_twice
from trialfleet_analysis.source import CampaignSource
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_controller.dispatch.epochs import HeartbeatConfig, claim
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import PlannedAgent
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.store.directory import DirectoryStore

FEW = [(2, 1), (1, 0)]


def agents(**fields: Any) -> dict[str, PlannedAgent]:
    spec = AgentSpec(kind="search", version="1", max_turns=60, timeout_s=60).model_copy(update=fields)
    return dict.fromkeys((TREATMENT, CONTROL), PlannedAgent(spec=spec, digest="a" * 64))


def test_two_campaigns_give_the_reference(tmp_path: Path) -> None:
    found = combined(tmp_path, ONE, TWO)
    pooled = found.pooled
    assert pooled.test.p_value == pytest.approx(0.002229055, abs=1e-9)
    assert (pooled.odds_ratio.low, pooled.odds_ratio.high) == pytest.approx((1.718837229, 15.187794574), rel=1e-6)
    difference = (pooled.difference.estimate, pooled.difference.low, pooled.difference.high)
    assert difference == pytest.approx((0.325, 0.126118809, 0.505324086), abs=1e-6)
    assert [one.test.p_value for one in found.campaigns] == pytest.approx([0.011267882, 0.095982143], abs=1e-9)
    assert found.decision == "more"
    assert found.answer[0].startswith(
        f"On these 8 tasks of 2 campaigns, {TREATMENT} passed more often than {CONTROL}: 65.0% against 32.5%"
    )
    assert "these tasks" in found.answer[0].partition(":")[2]
    assert found.answer[1].endswith("2 campaigns: an interval needs 3.")


def test_one_campaign_alone_has_its_report_s_p_to_the_last_digit(tmp_path: Path) -> None:
    frozen = campaign("alone", ONE)
    lost = frozenset({("task-0", CONTROL, 3), ("task-2", TREATMENT, 4), ("task-2", CONTROL, 0)})
    ran(tmp_path, frozen, ONE, lost=lost)
    source = CampaignSource(str(tmp_path), "alone")
    found = added_up([source])
    report = read(DirectoryStore(tmp_path), "alone").headline
    assert report is not None
    assert found.pooled.test == report.these_tasks.test
    assert found.pooled.difference == report.these_tasks.difference
    assert found.pooled.odds_ratio == report.these_tasks.odds_ratio
    [own] = found.campaigns
    assert (own.test, own.difference) == (report.these_tasks.test, report.these_tasks.difference)
    assert own.test_like_these == report.tasks_like_these.test
    assert own.difference_like_these == report.tasks_like_these.difference
    assert own.lost == 3
    assert added_up([source], weighing="campaigns").pooled == found.pooled


def test_the_order_of_campaigns_changes_no_byte(tmp_path: Path) -> None:
    sources = [made(tmp_path, name, passes) for name, passes in (("b", ONE), ("a", TWO), ("c", ONE[:2]))]
    assert to_json(added_up(sources)) == to_json(added_up(sources[::-1]))


def test_swapping_the_arms_mirrors_every_number(tmp_path: Path) -> None:
    one = combined(tmp_path / "one", ONE, TWO, ONE[:3])
    mirrored = [[(b, a) for a, b in passes] for passes in (ONE, TWO, ONE[:3])]
    other = combined(tmp_path / "other", *mirrored)
    assert other.pooled.test.p_value == pytest.approx(one.pooled.test.p_value, rel=1e-12)
    assert other.pooled.test.direction == -one.pooled.test.direction
    assert (one.decision, other.decision) == ("more", "less")
    assert other.random.test.p_value == pytest.approx(one.random.test.p_value, rel=1e-6)
    assert other.random.mean.low == pytest.approx(-one.random.mean.high, abs=1e-9)
    assert other.between.p_value == pytest.approx(one.between.p_value, rel=1e-9)


@pytest.mark.parametrize("weighing", ["tasks", "campaigns"])
def test_a_campaign_without_information_changes_no_p(tmp_path: Path, weighing: Any) -> None:
    one = combined(tmp_path / "one", ONE, TWO, weighing=weighing)
    other = combined(tmp_path / "other", ONE, TWO, [(5, 5), (0, 0), (5, 5)], weighing=weighing)
    assert other.pooled.test.p_value == one.pooled.test.p_value
    assert other.pooled.odds_ratio.rounded(9) == one.pooled.odds_ratio.rounded(9)
    assert other.between == one.between
    assert other.random.campaigns == one.random.campaigns == 2
    silent = other.campaigns[2]
    assert (silent.variance, silent.weight) == (None, None)
    assert "leaves no variance" in (silent.reason or "")
    assert any("c2 takes no part" in caution for caution in other.cautions)


def test_weighing_campaigns_counts_each_the_same(tmp_path: Path) -> None:
    several = (ONE, [(5, 0)])
    tasks, campaigns = (
        combined(tmp_path / name, *several, weighing=name).pooled
        for name in ("tasks", "campaigns")  # type: ignore[arg-type]
    )
    assert tasks.difference.estimate == pytest.approx((4 * 0.4 + 1.0) / 5)
    assert campaigns.difference.estimate == pytest.approx((0.4 + 1.0) / 2)
    assert (campaigns.treatment_rate or 0) - (campaigns.control_rate or 0) == pytest.approx(0.7)


def test_tasks_like_these_are_answered_by_campaigns_like_these(tmp_path: Path) -> None:
    declared = Primary(treatment=TREATMENT, control=CONTROL, estimand="tasks_like_these")
    sources = [
        made(tmp_path, name, passes, primary=declared)
        for name, passes in (("a", ONE), ("b", TWO), ("c", ONE[::-1] + TWO))  # type: ignore[operator]
    ]
    found = added_up(sources)
    assert found.answer[0].startswith(
        f"On campaigns and tasks like these, judged by 3 campaigns with 16 tasks, {TREATMENT} passed more often"
    )
    assert found.answer[1].startswith("Secondary: 65.0% against 32.5%")
    variance = found.campaigns[0].variance
    differences = [(a - b) / 5 for a, b in ONE]
    mean = sum(differences) / 4
    assert variance == pytest.approx(sum((one - mean) ** 2 for one in differences) / 3 / 4)
    two = added_up(sources[:2])
    assert (two.decision, two.random.test.p_value) == ("undefined", None)
    assert "2 campaigns: an interval needs 3" in two.answer[0]


def test_kept_tables_are_read_where_they_exist(tmp_path: Path) -> None:
    sources = [made(tmp_path, "a", ONE), made(tmp_path, "b", TWO)]
    first = added_up(sources)
    assert {open_campaign(store_of(one), one.campaign).source for one in sources} == {"tables"}
    assert to_json(added_up(sources)) == to_json(first)


def test_a_campaign_that_was_repeated_with_another_seed_is_another_campaign(tmp_path: Path) -> None:
    """Trials are named alike, since their inputs are the same; the agent's seeds differ."""
    one = made(tmp_path / "one", "same", FEW, reps=2, uid="1" * 32)
    other = made(tmp_path / "other", "same", FEW, reps=2, uid="2" * 32)
    read = [campaign_evidence(open_campaign(store_of(source), "same"), "here") for source in (one, other)]
    again = replace(read[1], identities=frozenset((name, 9) for name, *_ in pairs(read[1].identities)))
    refuse_twice([read[0], again])
    assert [one.label for one in labelled([again, read[0]])] == ["same (11111111)", "same (22222222)"]


def pairs(identities: frozenset[object]) -> list[tuple[str, int]]:
    return [one for one in identities if isinstance(one, tuple)]


# --- refused -------------------------------------------------------------------------------------------


def test_a_campaign_given_twice_is_refused_always(tmp_path: Path) -> None:
    source = made(tmp_path, "a", FEW, reps=2)
    for across in (False, True):
        with pytest.raises(OperatorError, match="given twice"):
            added_up([source, source], across=across)


def test_the_same_trials_in_two_campaigns_are_refused_always(tmp_path: Path) -> None:
    one = made(tmp_path / "one", "same", FEW, reps=2, uid="1" * 32)
    other = made(tmp_path / "other", "same", FEW, reps=2, uid="2" * 32)
    for across in (False, True):
        with pytest.raises(OperatorError, match=r"hold the same trials or bundles \(\d+\)"):
            added_up([one, other], across=across)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"agents": agents(kind="nop")}, "agent: nop (b); search (a)"),
        ({"agents": agents(model="opus")}, "model: none (a); opus (b)"),
        ({"agents": agents(max_turns=9)}, "max turns: 60 (a); 9 (b)"),
        ({"agents": agents(timeout_s=9)}, "agent's time budget: 60 s (a); 9 s (b)"),
        ({"texts": {"fail_fast": "b" * 64}}, "text fail_fast: "),
        ({"texts": {}}, "(a); none (b)"),
        (
            {"primary": Primary(treatment=TREATMENT, control=CONTROL, alpha=0.01)},
            "declared alpha: 0.01 (b); 0.05 (a)",
        ),
        (
            {"conditions": {TREATMENT: Condition(files="tree"), CONTROL: Condition()}},
            "treatment, hook: ",
        ),
        (
            {"conditions": {TREATMENT: PRESETS[TREATMENT], CONTROL: Condition(files="flat")}},
            "control, files: flat (b); none (a)",
        ),
    ],
)
def test_what_differs_is_named_unless_across(tmp_path: Path, fields: dict[str, Any], named: str) -> None:
    one, other = (made(tmp_path, name, FEW, reps=2, **of) for name, of in (("a", {}), ("b", fields)))
    with pytest.raises(OperatorError, match="do not compare the same") as refused:
        added_up([one, other])
    assert named in str(refused.value)
    assert "--across" in str(refused.value)
    found = added_up([one, other], across=True)
    assert any(named in caution for caution in found.cautions)
    assert found.pooled.strata == 4


def test_contexts_of_the_same_task_that_differ_are_named(tmp_path: Path) -> None:
    frozen = campaign("b", TWO)
    cells = tuple(
        cell.model_copy(update={"condition": cell.condition.model_copy(update={"digest": "c" * 64})})
        if cell.condition.name == TREATMENT
        else cell
        for cell in frozen.cells
    )
    one, other = made(tmp_path, "a", ONE), made(tmp_path, "b", TWO, cells=cells)
    with pytest.raises(OperatorError, match=r"treatment, content for task-0, task-1, task-2 and 1 more: "):
        added_up([one, other])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"primary": None}, "declares no result that is combined"),
        (
            {"primary": Primary(treatment=TREATMENT, control=CONTROL, stop=StopRule(looks=2))},
            "no test over several such campaigns",
        ),
    ],
)
def test_what_cannot_be_added_up_is_refused(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    one, other = (made(tmp_path, name, FEW, reps=2, **of) for name, of in (("a", {}), ("b", fields)))
    for across in (False, True):
        with pytest.raises(OperatorError, match=reason) as refused:
            added_up([one, other], across=across)
        assert refused.value.where == f"{store_of(other).url}/b"


def test_an_unfinished_campaign_is_refused(tmp_path: Path) -> None:
    one = made(tmp_path, "a", ONE)
    write(tmp_path, campaign("b", TWO), lambda trial: Fate() if trial.rep < 2 else None)
    with pytest.raises(OperatorError, match="not finished: 16 of 40 trials are over"):
        added_up([one, CampaignSource(str(tmp_path), "b")])


def test_an_undefined_number_is_null_with_its_reason(tmp_path: Path) -> None:
    told = json.loads(to_json(combined(tmp_path, [(5, 5)], [(0, 0)])))
    assert told["pooled"]["test"]["p_value"] == 1.0
    assert told["pooled"]["test"]["reason"].startswith("no informative stratum")
    assert (told["pooled"]["odds_ratio"]["estimate"], told["random"]["mean"]["estimate"]) == (None, None)
    assert told["random"]["mean"]["reason"].startswith("0 campaigns with a variance")
    assert (told["between"]["p_value"], told["between"]["reason"]) == (
        None,
        "0 of 2 campaigns have an informative task",
    )
    assert told["decision"] == "not_possible"
    assert " (each of the 2 tasks always passed or always failed under both conditions): " in told["answer"][0]


@pytest.mark.parametrize("cut", [False, True])
def test_only_what_was_cut_short_is_said_to_have_ended_early(tmp_path: Path, *, cut: bool) -> None:
    """A campaign that ran to its end has its wall-clock limit behind it too."""
    ended = made(tmp_path, "c0", ONE, wall_clock_s=1.0)
    claim(store_of(ended), "c0", HeartbeatConfig()).end()
    epoch = tmp_path / "c0" / "epochs" / "1.json"
    epoch.write_bytes(canonical_json(json.loads(epoch.read_bytes()) | {"at": 0.0}))
    if cut:
        outcome = next((tmp_path / "c0" / "outcomes").iterdir())
        lost = {"scored": None, "bundle": None, "bundle_sha256": None, "abandoned": "cancelled"}
        outcome.write_bytes(canonical_json(json.loads(outcome.read_bytes()) | lost | {"losses": ["cancelled"]}))
    found = added_up([ended, made(tmp_path, "c1", TWO)])
    assert any("was ended before its plan was run" in one for one in found.cautions) == cut
