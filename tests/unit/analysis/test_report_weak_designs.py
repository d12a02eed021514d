"""What a reader gets from designs that show little: one informative task, few that move, nothing lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.unit.analysis.weak_designs_fixture import CONTROL, DEMO_LIKE, TREATMENT, weak
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.sections import sections
from trialfleet_analysis.report.html.page import to_html
from trialfleet_designs.comparison.contrast import agree
from trialfleet_designs.document.tables import ReportTable
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.comparisons import stratified_exact
from trialfleet_statistics.estimates import rejects
from trialfleet_statistics.intervals import stratified_miettinen_nurminen


def tables(report: Report) -> dict[str, ReportTable]:
    return {one.title: one for found in sections(report) for one in found.tables}


def column(found: ReportTable, name: str) -> list[tuple[str, str | None]]:
    place = found.columns.index(name)
    return [(row[place].text, row[place].note) for row in found.rows]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return weak(tmp_path_factory.mktemp("demo"), DEMO_LIKE)


def test_a_design_that_could_not_reject_is_named_in_both_estimands(demo: Report) -> None:
    assert [caution for caution in demo.cautions if caution.startswith("No result on")] == [
        "No result on these tasks or tasks like these could have reached p ≤ 0.05: given the tasks’ totals the "
        "least possible p is 0.083 on these tasks and 0.39 on tasks like these. 3 of the 4 tasks always "
        "passed or always failed under both conditions.",
    ]


def test_the_least_possible_p_of_tasks_like_these_is_printed(demo: Report) -> None:
    found = tables(demo)["Tasks like these: one task left out in turn"]
    assert column(found, "Least p these totals allow") == [("0.39", None)]
    [_, like] = tables(demo)["What this campaign could have detected"].rows
    assert [(value.text, value.note) for value in like if value.note] == [
        ("–", "power 0: too few tasks could distinguish them")
    ]


def test_one_task_that_differs_makes_t_one_whatever_it_shows(tmp_path: Path) -> None:
    moved = {"a": (5, 0), "b": (2, 2), "c": (3, 3), "d": (1, 1)}
    found = weak(tmp_path, moved)
    assert found.headline.tasks_like_these.moved == 1
    assert (
        "The conditions’ rates differ on one task alone: for tasks like these t is then 1 or −1 and p = 0.39, "
        "however large that difference is."
    ) in found.cautions


def test_where_tasks_move_nothing_is_said_of_reach(tmp_path: Path) -> None:
    found = weak(tmp_path, {name: (4, 1) if name < "c" else (3, 2) for name in "abcdef"})
    assert not any("could have reached" in caution or "one task alone" in caution for caution in found.cautions)


def test_a_limit_near_zero_shows_its_side(demo: Report) -> None:
    low = demo.headline.these_tasks.difference.low
    assert 0 < 100 * low < 0.05
    [limits, _] = column(tables(demo)["Contrasts in numbers"], "95% interval")
    assert limits[0].startswith(f"+{100 * low:.2f} to +")


def test_few_informative_tasks_do_not_support_the_interval(demo: Report) -> None:
    assert (
        "The interval on these tasks rests on a normal approximation that 1 informative task does not support; it "
        "excludes 0, and the exact test disagrees. The p-value decides."
    ) in demo.cautions
    assert not any("near the border" in caution for caution in demo.cautions)


def test_a_limit_that_nearly_leaves_out_zero_beside_a_p_that_does_not(tmp_path: Path) -> None:
    found = weak(tmp_path, {"a": (4, 0), "b": (4, 1), "c": (5, 3), "d": (0, 3)})
    assert (
        "The interval on these tasks ends at −0.3 points, nearer to 0 than p = 0.06 suggests: it inverts another "
        "test. The p-value decides."
    ) in found.cautions


def test_how_often_test_and_interval_part_is_what_the_page_says() -> None:
    """4 x 5, one task that moves from 0 to .6 and three without a pass: over all outcomes."""
    reps, apart = np.full(4, 5), 0.0
    for passes in range(6):
        a = np.array([passes, 0, 0, 0])
        test = stratified_exact(a, reps, 0 * a, reps)
        interval = stratified_miettinen_nurminen(a, reps, 0 * a, reps)
        if agree(test, interval, 0.05) is False:
            assert interval.low > 0
            assert not rejects(test.p_value or 1, 0.05)
            apart += float(stats.binom.pmf(passes, 5, 0.6))
    assert apart == pytest.approx(0.346, abs=0.001)
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "statistics.md").read_text(encoding="utf-8")
    assert f"in {100 * apart:.0f}% of campaigns of 4 × 5" in " ".join(page.split())


def test_an_odds_ratio_of_one_task_is_left_out(demo: Report) -> None:
    found = tables(demo)["On these tasks: odds ratios"]
    assert column(found, "Odds ratio") == [("–", "1 informative task")]
    assert column(found, "Its interval") == [("–", None)]


def test_identical_rows_of_what_if_are_one_sentence(demo: Report, tmp_path: Path) -> None:
    titles = {"The primary contrast on first runs", "How many lost runs could change the decision"}
    assert not titles & set(tables(demo))
    [losses] = [found for found in sections(demo) if found.anchor == "losses"]
    assert losses.lead.endswith(
        "No first run of the primary contrast was lost: under every assumption it is what was measured."
    )
    lossy = weak(tmp_path, DEMO_LIKE, valid={**dict.fromkeys(DEMO_LIKE, (5, 5)), "sqlparse": (5, 4)})
    assert titles <= set(tables(lossy))
    assert len(tables(lossy)["The primary contrast on first runs"].rows) == 10


def test_the_declared_test_says_that_it_is_not_corrected(demo: Report) -> None:
    these, like = column(tables(demo)["Contrasts in numbers"], "Corrected p")
    assert these == ("not corrected", "1 informative task")
    assert like == ("0.39", "1 informative task")


def test_an_interval_that_leaves_nothing_out_is_not_printed(demo: Report) -> None:
    found = tables(demo)["pass@k and pass^k"]
    assert column(found, "95% interval of pass^k")[0] == ("–", "too few tasks: 0 to 100%")


def test_a_prediction_that_is_cut_says_so(tmp_path: Path) -> None:
    found = weak(tmp_path, {"a": (5, 0), "b": (5, 0), "c": (4, 0), "d": (1, 1)})
    prediction = found.headline.heterogeneity.prediction
    assert prediction.high == 1.0
    assert (prediction.low or 0) > -1
    [shown] = column(tables(found)["Does the effect differ between tasks?"], "Another task’s effect: prediction")
    assert shown[1] == "cut at +100"


def test_the_rates_of_two_conditions_differ_by_their_contrast(demo: Report) -> None:
    """Shrunk rates stood beside a difference of raw ones, which nobody could reconcile."""
    shown = {row[0].text: row[1].text for row in tables(demo)["Conditions in numbers"].rows}
    assert (shown[TREATMENT], shown[CONTROL]) == ("40.0%", "25.0%")
    for part in (demo.headline.these_tasks, demo.headline.tasks_like_these):
        assert part.difference.estimate == pytest.approx(0.40 - 0.25)


def test_a_mean_outside_of_the_model_s_interval_has_the_median_beside_it(tmp_path: Path) -> None:
    found = weak(tmp_path, {"a": (5, 0), "b": (5, 0)})
    limits = column(tables(found)["Conditions in numbers"], "95% interval, tasks like these")
    medians = [one.tasks_like_these.estimate for one in found.conditions]
    assert [note for _, note in limits] == [f"the model’s median is {100 * (rate or 0):.1f}%" for rate in medians]
    page = to_html(found)
    for rate, (limit, _) in zip(medians, limits, strict=True):
        assert f"{limit}, median {100 * (rate or 0):.1f}%" in page, "where the mark of its figure stands"


def test_a_secondary_contrast_names_the_few_tasks_that_it_rests_on(tmp_path: Path) -> None:
    primary = Primary(treatment=TREATMENT, control=CONTROL, estimand="tasks_like_these")
    found = weak(tmp_path, {"a": (5, 0), "b": (5, 5), "c": (0, 0)}, primary=primary)
    these, _ = column(tables(found)["Contrasts in numbers"], "Corrected p")
    assert these[1] == "1 informative task"


def test_a_family_of_mid_p_values_claims_no_guarantee(demo: Report) -> None:
    lead = tables(demo)["Families of tests"].lead
    assert "holds alpha nearly, not by guarantee" in lead
    assert "the tasks’ Fisher tests do by guarantee" in lead
