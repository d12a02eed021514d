"""Campaigns of one question, or of one metric, combined: references, what they must agree with, what is
refused."""

from __future__ import annotations

import json
import math
from io import StringIO
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from rich.console import Console

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.combining_fixture import CONTROL, ONE, TREATMENT, TWO, Passes, campaign, made
from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.effects import EffectCombination, judge_mean
from trialfleet_analysis.combining.make import make_combination
from trialfleet_analysis.combining.render import draw_forest, show, to_html, to_json, to_markdown
from trialfleet_analysis.combining.shown import shown
from trialfleet_analysis.report.figures.forest import Forest
from trialfleet_analysis.source import CampaignSource
from trialfleet_designs.comparison.declared_effect import EffectKind
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.designs.metric import MetricPrimary
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_statistics.comparisons import equivalence
from trialfleet_statistics.pooling import random_effects

QUESTION = QuestionPrimary(question="not_worse", treatment=TREATMENT, control=CONTROL, margin=0.1)
COST = MetricPrimary(metric="cost_usd", treatment=TREATMENT, control=CONTROL)
MEANS = COST.model_copy(update={"scale": "difference"})
LEVEL = [(3, 3), (4, 4), (2, 2), (5, 5)]


def asked(root: Path, name: str, passes: Passes, declared: QuestionPrimary = QUESTION) -> CampaignSource:
    return made(root, name, passes, primary=None, registered=declared)


def metered(
    root: Path, name: str, ratio: float, declared: MetricPrimary = COST, *, tasks: int = 3, unmeasured: int = 0
) -> CampaignSource:
    """The treatment costs `ratio` times the control; the same values in both arms, in another order; without one
    in the first `unmeasured` blocks of the first task's treatment."""
    frozen = campaign(name, [(0, 0)] * tasks, reps=6, primary=None, registered=declared)

    def fate(trial: Trial) -> Fate:
        place = (5 * trial.block + (3 if trial.condition == CONTROL else 0)) % 6
        draw = 0.3 * NormalDist().inv_cdf((place + 0.5) / 6)
        dear = 1 + int(trial.task.rpartition("-")[2])
        cost = dear * (ratio if trial.condition == TREATMENT else 1) * math.exp(draw)
        hidden = trial.task.endswith("-0") and trial.condition == TREATMENT and trial.block < unmeasured
        return Fate(metrics=Metrics(cost_usd=None if hidden else cost))

    ledgers.write(root, frozen, fate)
    return CampaignSource(str(root), name)


def forest_of(found: EffectCombination) -> Forest:
    drawn = draw_forest(shown(found))
    assert drawn is not None
    return drawn


def put_together(*sources: CampaignSource, across: bool = False) -> EffectCombination:
    found = make_combination(sources, across=across)
    assert isinstance(found, EffectCombination)
    return found


def test_a_question_over_all_strata_is_the_test_at_the_margin(tmp_path: Path) -> None:
    found = put_together(
        *(asked(tmp_path, name, passes) for name, passes in (("a", ONE), ("b", TWO), ("c", LEVEL)))
    )
    every = np.array([*ONE, *TWO, *LEVEL])
    five = np.full(len(every), 5)
    same = equivalence(every[:, 0], five, every[:, 1], five, margin=0.1)
    assert found.p_value == same.p_lower
    assert found.pooled == same.interval
    assert found.decision == "shown"
    assert found.answer[0].startswith(
        f"On these 12 tasks of 3 campaigns, the pass rate of {TREATMENT} is at most 10 points below that of "
        f"{CONTROL}: a difference of +21.7 points (90% interval +"
    )
    assert found.answer[1].startswith(
        "Secondary: for campaigns like these, each on its own tasks, a difference of +"
    )


@pytest.mark.parametrize(
    ("asked_for", "turned", "said"),
    [
        ("not_worse", True, "is lower by more than the margin"),
        ("equivalent", True, "is lower by more than the margin"),
        ("equivalent", False, "is higher by more than the margin"),
    ],
)
def test_a_difference_beyond_the_margin_is_said(tmp_path: Path, asked_for: str, turned: bool, said: str) -> None:
    declared = QUESTION.model_copy(update={"question": asked_for})
    pairs = [(5, 1), (4, 1), (5, 0)]
    found = put_together(
        *(asked(tmp_path, name, [pair[::-1] if turned else pair for pair in pairs], declared) for name in "ab")
    )
    assert found.decision == "not_shown"
    assert "it was not shown that" in found.answer[0]
    assert found.answer[2] == f"By its interval, the pass rate of {TREATMENT} {said}."


def test_ratios_are_drawn_on_a_scale_of_ratios_and_their_trials_add_up(tmp_path: Path) -> None:
    found = put_together(*(metered(tmp_path, name, ratio) for name, ratio in (("a", 0.4), ("b", 2.0), ("c", 1.0))))
    drawn = forest_of(found)
    assert drawn.scale.log
    at = [drawn.scale.share(tick) for tick in drawn.scale.ticks]
    assert at[0] == 0
    assert at[-1] == 1
    labels = [drawn.scale.text(tick) for tick in drawn.scale.ticks]
    assert len({*labels}) == len(labels)
    assert all(label.startswith("×") for label in labels)
    assert drawn.scale.share(0.5) + drawn.scale.share(2.0) == pytest.approx(2 * drawn.scale.share(1.0))
    assert found.trials == sum(one.trials for one in found.campaigns) == 108


def test_differences_of_a_metric_are_drawn_in_its_unit(tmp_path: Path) -> None:
    found = put_together(*(metered(tmp_path, name, ratio, MEANS) for name, ratio in (("a", 0.8), ("b", 1.1))))
    scale = forest_of(found).scale
    assert not scale.log
    assert {scale.text(tick)[:2] for tick in scale.ticks} <= {"$0", "$-", "$−", "$1"}


def test_trials_without_a_value_do_not_count_as_combined(tmp_path: Path) -> None:
    whole, part = metered(tmp_path, "a", 0.8), metered(tmp_path, "b", 0.9, unmeasured=2)
    found = put_together(whole, part)
    assert [one.trials for one in found.campaigns] == [36, 34]
    assert found.trials == 70
    assert "70 trials" in to_html(found)


def test_a_question_alone_has_its_report_s_p(tmp_path: Path) -> None:
    source = asked(tmp_path, "alone", ONE)
    found, report = put_together(source), ledgers.read(DirectoryStore(tmp_path), "alone")
    assert found.p_value == found.campaigns[0].p_value == report.analysis.found.p_value
    assert found.pooled == found.campaigns[0].effect == report.analysis.found.interval
    assert found.answer[1] == (
        "Secondary: no mean for campaigns like these, each on its own tasks: 1 campaign with a variance; a mean "
        "of campaigns needs two."
    )


def test_the_mean_of_campaigns_is_tested_at_the_margin(tmp_path: Path) -> None:
    """R: q <- metafor::rma(y, v, method = "PM", test = "knha"); pt((coef(q) + 0.1) / q$se, 2, lower.tail =
    FALSE)."""
    random = random_effects([-0.02, 0.01, -0.05], [0.0006, 0.0009, 0.0005], level=0.9)
    one = judge_mean(EffectKind(question="not_worse", margin=0.1), random)
    assert one == pytest.approx(0.023070809, abs=1e-8)
    two = judge_mean(EffectKind(question="equivalent", margin=0.1), random)
    assert two == one, "the margin below is the nearer one"


def test_metrics_are_permuted_together_and_their_log_ratios_pooled(tmp_path: Path) -> None:
    ratios = (0.7, 0.8, 0.75)
    found = put_together(*(metered(tmp_path, f"c{n}", ratio) for n, ratio in enumerate(ratios)))
    assert found.pooled.estimate == pytest.approx(math.prod(ratios) ** (1 / 3), rel=1e-9)
    assert found.pooled.high is not None
    assert found.pooled.high < 1
    assert found.mean.estimate == pytest.approx(found.pooled.estimate, rel=1e-6), "equal variances"
    assert (found.decision, found.strata, found.trials) == ("less", 9, 108)
    assert found.answer[0].startswith(
        f"On these 9 tasks of 3 campaigns, {TREATMENT} cost less than {CONTROL}: ×0.75 in a typical task (95% "
    )
    assert found.name == f"{TREATMENT} / {CONTROL}"


def test_log_ratios_and_their_prediction_are_metafor_s() -> None:
    """R: m <- metafor::rma(y, v, method = "PM", test = "knha"); predict(m, transf = exp)."""
    found = random_effects([-0.31, -0.12, -0.22, 0.05], [0.004, 0.006, 0.003, 0.008], bounds=None)
    ends = (found.mean.estimate, found.mean.low, found.mean.high, found.prediction.low, found.prediction.high)
    assert [math.exp(end or 0) for end in ends] == pytest.approx(
        [0.852360848, 0.670499702, 1.083548603, 0.524164290, 1.386052101], rel=1e-5
    )
    assert found.test.p_value == pytest.approx(0.124374540, abs=1e-5)


@pytest.mark.parametrize("declared", [COST, MEANS])
def test_a_metric_alone_has_its_report_s_numbers(tmp_path: Path, declared: MetricPrimary) -> None:
    source = metered(tmp_path, "alone", 0.8, declared)
    found, report = put_together(source), ledgers.read(DirectoryStore(tmp_path), "alone").analysis.found
    assert (found.campaigns[0].effect, found.campaigns[0].p_value) == (report.size, report.p_value)
    assert found.pooled.estimate == pytest.approx(report.size.estimate, rel=1e-12)
    assert found.p_value == pytest.approx(report.p_value, abs=0.006), "other permutations"


def test_every_format_says_the_same(tmp_path: Path) -> None:
    for number, declared in enumerate((COST, MEANS)):
        sources = [
            metered(tmp_path / str(number), name, ratio, declared) for name, ratio in (("a", 0.8), ("b", 1.1))
        ]
        found = put_together(*sources)
        assert json.loads(to_json(found))["answer"] == list(found.answer)
        console = Console(width=2000, record=True, file=StringIO())
        show(found, console)
        for text in (to_markdown(found), console.export_text()):
            assert found.answer[0] in text.replace("\\", "")
        assert "Another campaign" in to_html(found)
    assert "points" not in found.answer[0]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (QUESTION.model_copy(update={"margin": 0.2}), "question not_worse, margin 20"),
        (QUESTION.model_copy(update={"question": "equivalent"}), "question equivalent, margin 10"),
        (None, "a contrast"),
    ],
)
def test_what_asks_another_question_is_refused_always(
    tmp_path: Path, other: QuestionPrimary | None, said: str
) -> None:
    one = asked(tmp_path, "a", ONE)
    two = made(tmp_path, "b", TWO) if other is None else asked(tmp_path, "b", TWO, other)
    with pytest.raises(OperatorError, match="do not declare the same") as refused:
        put_together(one, two, across=True)
    assert said in refused.value.message
    assert "a: question not_worse, margin 10" in refused.value.message


def test_looks_and_two_results_at_once_are_refused(tmp_path: Path) -> None:
    for number, declared in enumerate(
        (
            QUESTION.model_copy(update={"stop": StopRule(looks=2)}),
            QUESTION.model_copy(update={"question": "cheaper_and_not_worse"}),
        )
    ):
        with pytest.raises(OperatorError, match=r"the campaign (declared looks|asks for cheaper and not worse)"):
            put_together(asked(tmp_path / str(number), "a", ONE, declared))


def test_other_tasks_of_several_repositories_are_judged_within_them(tmp_path: Path) -> None:
    """As its own report judges them."""
    frozen = campaign("a", ONE)
    tasks = [
        task.model_copy(update={"repository": f"https://host/{n // 2}.git"}) for n, task in enumerate(frozen.tasks)
    ]
    found = make_combination([made(tmp_path, "a", ONE, tasks=tuple(tasks))])
    report = ledgers.read(DirectoryStore(tmp_path), "a").headline
    assert isinstance(found, Combination)
    assert report is not None
    assert report.tasks_like_these.repositories == 2
    assert found.campaigns[0].test_like_these == report.tasks_like_these.test
    assert found.campaigns[0].difference_like_these == report.tasks_like_these.difference
