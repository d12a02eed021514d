"""Campaigns without a fixed end, combined: products of e-values, by hand."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.support.ledgers import Fate, put, write
from tests.unit.analysis.combining_fixture import CONTROL, TREATMENT, campaign, made
from trialfleet_analysis.combining.make import make_combination
from trialfleet_analysis.combining.product import EvidenceProduct
from trialfleet_analysis.combining.render import show, to_html, to_json, to_markdown
from trialfleet_analysis.commands.combine import combine
from trialfleet_analysis.source import CampaignSource
from trialfleet_designs.monitoring import look_result
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import AnytimeRule, Decision, StageCounts
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_statistics.sequential import Bets, Pairs

ENDLESS = Primary(treatment=TREATMENT, control=CONTROL, stop=AnytimeRule(anytime="mixture"))
Blocks = Sequence[str]  # of one block: a letter a task, who alone passed it: t, c, or = for neither


def endless(
    root: Path, name: str, blocks: Blocks, *, primary: Primary = ENDLESS, looks: int = -1
) -> CampaignSource:
    """A campaign whose blocks went so. `looks`: how many of them were looked at; −1: all."""
    frozen = campaign(name, [(0, 0)] * len(blocks[0]), reps=len(blocks), primary=primary)

    def fate(trial: Trial) -> Fate:
        alone = blocks[trial.block][int(trial.task.rpartition("-")[2])]
        passed = alone == ("t" if trial.condition == TREATMENT else "c")
        return Fate(Verdict.PASSED if passed else Verdict.FAILED)

    store, taken = write(root, frozen, fate), list[Decision]()
    for number, block in enumerate(blocks[: looks if looks >= 0 else None], start=1):
        stage = tuple(
            StageCounts(
                task=f"task-{place}",
                treatment_passed=int(alone == "t"),
                treatment_valid=1,
                control_passed=int(alone == "c"),
                control_valid=1,
            )
            for place, alone in enumerate(block)
        )
        result = look_result(primary, frozen.reps, taken, stage)
        taken.append(
            Decision(
                number=number,
                at=1.0,
                epoch=1,
                blocks=number,
                stage=stage,
                outcomes="0" * 64,
                amendments=0,
                result=result,
            )
        )
        put(store, f"{name}/decisions/{number}.json", taken[-1])
    return CampaignSource(str(root), name)


def product(sources: Sequence[CampaignSource], **options: Any) -> EvidenceProduct:
    found = make_combination(sources, **options)
    assert isinstance(found, EvidenceProduct)
    return found


def beta_3(won: int, lost: int) -> float:
    """E of the mixture κ = 3 in whole numbers: 2^(w + l) B(3 + w, 3 + l) / B(3, 3), with B(a, b) of factorials."""
    beta = math.factorial(2 + won) * math.factorial(2 + lost) / math.factorial(5 + won + lost)
    return float(2 ** (won + lost) * beta * 30)


def test_e_values_multiply(tmp_path: Path) -> None:
    """6 v 0 gives 2^6 · 8! · 2! / 11! · 30 = 3.8787…; 7 v 1 of 10 pairs 2^8 · 9! · 3! / 13! · 30 = 2.6853…"""
    assert beta_3(6, 0) == pytest.approx(128 / 33)
    found = product([endless(tmp_path, "a", ["tt=", "ttt", "=t="]), endless(tmp_path, "b", ["tttt=", "ttt=c"])])
    assert [math.exp(one.log_evidence) for one in found.campaigns] == pytest.approx([beta_3(6, 0), beta_3(7, 1)])
    together = beta_3(6, 0) * beta_3(7, 1)
    assert math.exp(found.log_evidence) == pytest.approx(together)
    assert found.p_value == pytest.approx(1 / together)
    assert (found.decision, found.direction, found.conflict) == ("not_shown", 1, False)
    assert found.answer == (
        f"No difference was shown so far between {TREATMENT} and {CONTROL} on these 8 tasks of 2 campaigns: "
        "E = 3.88 (a) × 2.69 (b) = 10.42, p = 0.096, valid at any look.",
    )
    assert [one.p_value for one in found.campaigns] == pytest.approx([1 / beta_3(6, 0), 1 / beta_3(7, 1)])


def test_the_last_evidence_is_multiplied_not_the_largest(tmp_path: Path) -> None:
    """A campaign's own p may keep its best look; a product of best looks would be no e-value."""
    one = endless(tmp_path, "a", ["tttttt", "cccccc"])
    found = product([one])
    assert found.campaigns[0].p_value == pytest.approx(1 / beta_3(6, 0))
    assert math.exp(found.log_evidence) == pytest.approx(beta_3(6, 6))
    assert found.p_value == 1.0


def test_evidence_below_one_counts_too(tmp_path: Path) -> None:
    found = product([endless(tmp_path, "a", ["tttttt"]), endless(tmp_path, "b", ["tcct=="])])
    assert beta_3(2, 2) < 1
    assert found.p_value == pytest.approx(1 / (beta_3(6, 0) * beta_3(2, 2)))


def test_together_they_decide(tmp_path: Path) -> None:
    """Neither does alone: 8 v 0 is p = .099 by its bets."""
    found = product([endless(tmp_path, name, ["tttt", "tttt"]) for name in "ab"])
    assert 0.05 < 1 / beta_3(8, 0) < 0.15
    assert found.p_value == pytest.approx(beta_3(8, 0) ** -2)
    assert found.decision == "more"
    assert found.answer[0].startswith(
        f"On these 8 tasks of 2 campaigns, {TREATMENT} passed more often than {CONTROL}"
    )
    assert any(caution.startswith("4 tasks of several campaigns") for caution in found.cautions)


def test_opposite_directions_are_no_direction(tmp_path: Path) -> None:
    found = product([endless(tmp_path, "a", ["t" * 12]), endless(tmp_path, "b", ["c" * 14])])
    assert (found.decision, found.conflict) == ("conflict", True)
    assert "but not in the same direction in every campaign" in found.answer[0]


def test_each_campaign_bets_as_it_declared(tmp_path: Path) -> None:
    half = ENDLESS.model_copy(update={"effect": 0.3, "stop": AnytimeRule(anytime="half")})
    found = product([endless(tmp_path, "a", ["tttttt"], primary=half), endless(tmp_path, "b", ["tttttt"])])
    own = Bets.half(0.3).log_evidence(Pairs(6, 0, 0))
    assert found.log_evidence == pytest.approx(own + math.log(beta_3(6, 0)))


def test_what_was_not_looked_at_is_no_factor(tmp_path: Path) -> None:
    found = product([endless(tmp_path, "a", ["tttttt", "tttttt"], looks=1)])
    assert math.exp(found.log_evidence) == pytest.approx(beta_3(6, 0))
    with pytest.raises(OperatorError, match="no complete block"):
        product([endless(tmp_path, "b", ["tttttt"], looks=0)])


def test_order_and_formats(tmp_path: Path) -> None:
    sources = [endless(tmp_path, "b", ["tttt="]), endless(tmp_path, "a", ["ttttc"])]
    one, other = (product(order) for order in (sources, sources[::-1]))
    assert to_json(one) == to_json(other)
    assert json.loads(to_json(one))["log_evidence"] == pytest.approx(math.log(beta_3(4, 0) * beta_3(4, 1)))
    console = Console(file=io.StringIO(), width=200)
    show(one, console)
    assert isinstance(console.file, io.StringIO)
    for shown in (to_html(one), to_markdown(one), console.file.getvalue()):
        assert "valid at any look" in shown
    assert "chosen without regard to their results" in to_markdown(one)
    assert "sign betting" in to_html(one)


def test_text_of_others_is_shown_as_text(tmp_path: Path) -> None:
    found = product([endless(tmp_path, "a", ["tttt"])])
    hostile = replace(found, campaigns=(replace(found.campaigns[0], label="<b>x</b>\x1b[2J"),))
    assert "<b>x" not in to_html(hostile)
    console = Console(file=io.StringIO(), width=200)
    show(hostile, console)
    assert isinstance(console.file, io.StringIO)
    assert "\x1b" not in console.file.getvalue() + to_markdown(hostile)


def test_the_command(tmp_path: Path) -> None:
    sources = [endless(tmp_path, "a", ["tttttt", "tttttt"])]
    argv = [str(Path(one.store) / one.campaign) for one in sources]
    said = CliRunner().invoke(combine, [*argv, "--out", str(tmp_path / "out"), "--json"])
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert told["p_value"] == pytest.approx(1 / beta_3(12, 0))
    assert told["decision"] == "more"
    assert (tmp_path / "out" / "combined.html").exists()


# --- refused -------------------------------------------------------------------------------------------


def test_campaigns_of_both_kinds_are_refused(tmp_path: Path) -> None:
    fixed, other = made(tmp_path, "a", [(2, 1), (1, 0)], reps=2), endless(tmp_path, "b", ["tt"])
    for across in (False, True):
        with pytest.raises(OperatorError, match="no test over both kinds is specified") as refused:
            make_combination([fixed, other], across=across)
        assert "each kind on their own" in (refused.value.hint or "")


def test_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="their e-values multiply"):
        make_combination([endless(tmp_path, "a", ["tt"])], weighing="campaigns")


def test_a_campaign_given_twice_is_refused(tmp_path: Path) -> None:
    one = endless(tmp_path, "a", ["tt"])
    with pytest.raises(OperatorError, match="given twice"):
        make_combination([one, one], across=True)
