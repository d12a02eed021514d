"""The first screen: decision, size and cost in two lines, then the contrast in one table, in every format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from tests.unit.analysis.parsed_page import Page
from tests.unit.analysis.report_fixture import made, on_terminal
from tests.unit.analysis.weak_designs_fixture import DEMO_LIKE, PRIMARY, weak
from trialfleet_analysis.report.arrivals import arrival_line
from trialfleet_analysis.report.assemble import worded
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.cost_sentence import spent
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.verdict_label import label_verdict
from trialfleet_statistics.continuous import BootstrapInterval

CLEAR = {"a": (9, 3), "b": (8, 2), "c": (10, 4), "d": (7, 5), "e": (9, 1), "f": (6, 2)}
NULL = {"a": (6, 5), "b": (3, 4), "c": (8, 8), "d": (7, 5), "e": (2, 3), "f": (6, 5)}
EVIL = "<img src=x onerror=alert(2)>\x1b]0;owned\x07|`_*[x](http://e.vil)\u202e"


def rows(report: Report) -> dict[str, tuple[str, str]]:
    return {row.name: (row.declared.text, row.other.text) for row in report.summary}


def notes(report: Report) -> dict[str, tuple[str | None, str | None]]:
    return {row.name: (row.declared.note, row.other.note) for row in report.summary}


def flat(text: str) -> str:
    return " ".join(text.split())


# --- the two lines --------------------------------------------------------------------------------------


def test_totals_that_leave_no_room_are_not_called_a_fault_of_the_campaign(tmp_path: Path) -> None:
    """Ten passes of ten on each side of six tasks: no split differs, and the difference is known to 6 points.
    Other outcomes of the same plan would have rejected."""
    found = weak(tmp_path, dict.fromkeys("abcdef", (10, 10)), reps=10)
    assert found.decision == "not_possible"
    assert label_verdict(found) == "Undecided"
    assert found.answer == (
        "No difference was shown between placebo and none on these 6 tasks: each of the 6 tasks always passed or "
        "always failed under both conditions.",
        "100.0% against 100.0%, a difference of 0.0 points (95% interval −6.3 to +6.3), p = 1.",
    )
    said = " ".join((*found.answer, *found.cautions))
    assert "could not have" not in said
    assert "power is 0" not in said


def test_a_design_that_could_not_show_anything(tmp_path: Path) -> None:
    found = weak(tmp_path, DEMO_LIKE)
    assert found.decision == "not_possible"
    decision, size = found.answer
    assert decision == (
        "No difference was shown between placebo and none on these 4 tasks: 3 of the 4 tasks always passed or "
        "always failed under both conditions, and given how often the rest passed in all, no split of their "
        "passes between the two reaches p ≤ 0.05."
    )
    assert re.fullmatch(
        r"40\.0% against 25\.0%, a difference of \+15\.0 points \(95% interval \+0\.02 to \+37\.3\), p = 0\.083\.",
        size,
    )


def test_too_few_trials_are_not_blamed_on_tasks(tmp_path: Path) -> None:
    found = weak(tmp_path, {"a": (1, 0), "b": (1, 0)}, reps=1)
    assert found.decision == "not_possible"
    assert found.answer[0] == (
        "No difference was shown between placebo and none on these 2 tasks: given how often these tasks passed in "
        "all, no split of their passes between the two reaches p ≤ 0.05."
    )
    [caution] = [caution for caution in found.cautions if caution.startswith("No result on")]
    assert caution.endswith("the least possible p is 0.25.")


def test_a_clear_effect(tmp_path: Path) -> None:
    found = weak(tmp_path, CLEAR, reps=10)
    assert found.decision == "more"
    assert found.answer == (
        "On these 6 tasks, placebo passed more often than none: 81.7% against 28.3%, a difference of +53.3 points "
        "before rounding (95% interval +37.2 to +66.7), p < 0.0001.",
    )


def test_a_clear_loss(tmp_path: Path) -> None:
    found = weak(tmp_path, {task: (b, a) for task, (a, b) in CLEAR.items()}, reps=10)
    assert found.decision == "less"
    assert found.answer[0].startswith("On these 6 tasks, placebo passed less often than none: 28.3% against 81.7%")


def test_nothing_found_names_what_would_have_been_needed(tmp_path: Path) -> None:
    found = weak(tmp_path, NULL, reps=10)
    assert found.decision == "not_shown"
    assert found.answer[0] == "No difference was shown between placebo and none on these 6 tasks."
    assert re.search(r"notice a true difference of 2\d\.\d points or more most times", found.answer[1])


def test_a_difference_of_one_task_is_said_to_be_that(tmp_path: Path) -> None:
    found = weak(tmp_path, {"a": (5, 0), "b": (5, 5), "c": (0, 0), "d": (0, 0)})
    assert found.decision == "more"
    assert found.answer[0].endswith(
        "p = 0.004; 3 of the 4 tasks always passed or always failed under both conditions."
    )
    assert rows(found)["95% interval"][1] == "−54.6 to +100.0 points"
    assert notes(found)["95% interval"][1] == "t with 3 degrees of freedom; cut at +100"


def test_unequal_losses_follow_the_test_and_say_how_few_runs_decide(tmp_path: Path) -> None:
    """Summed passes would say p = .012 in favour of placebo, whose mean rate is the lower one."""
    valid = {"a": (25, 25), "b": (25, 6), "c": (25, 6), "d": (25, 6)}
    passes = {"a": (25, 3), "b": (9, 4), "c": (9, 4), "d": (9, 4)}
    found = weak(tmp_path, passes, reps=25, valid=valid)
    assert found.decision == "not_shown"
    assert re.fullmatch(
        r"No difference was shown between placebo and none on these 4 tasks\. Careful: 57 trials lost their first "
        r"run\. If \d+ of those(, or fewer,)? had gone the other way, the answer would change\.",
        found.answer[0],
    )
    assert found.answer[1].startswith("52.0% against 53.0%, a difference of −1.0 points")
    assert (found.headline.these_tasks.test.direction, found.headline.these_tasks.conflict) == (-1, False)
    assert "p = 0.93;" in found.answer[1]


def test_a_declared_estimand_without_an_answer_says_why(tmp_path: Path) -> None:
    like = PRIMARY.model_copy(update={"estimand": "tasks_like_these"})
    found = weak(tmp_path, dict.fromkeys("abc", (4, 1)), primary=like)
    assert found.decision == "undefined"
    assert found.answer == (
        "No answer on placebo against none: every task has the same difference, so its "
        "spread over tasks is unknown.",
        "80.0% against 20.0%, a difference of +60.0 points (no interval: every task has the same difference, so "
        "its spread over tasks is unknown).",
    )


def test_equivalence_that_was_declared_is_part_of_the_decision(tmp_path: Path) -> None:
    wide = PRIMARY.model_copy(update={"margin": 0.25})
    found = weak(tmp_path / "wide", NULL, reps=10, primary=wide)
    said = (
        "The difference between placebo and none on these 6 tasks is no larger than 25.0 points, either way (two "
        "one-sided tests, each at 0.05)."
    )
    assert found.answer[0] == said
    assert "notice a true difference" not in found.answer[1]
    assert "(90% interval " in found.answer[1], "of the tests that decide: it lies within the margin"
    saturated = weak(tmp_path / "saturated", dict.fromkeys("abcdef", (0, 0)), reps=10, primary=wide)
    assert (saturated.decision, saturated.answer[0]) == ("not_possible", said)
    narrow = weak(tmp_path / "narrow", NULL, reps=10, primary=wide.model_copy(update={"margin": 0.05}))
    assert narrow.answer[0].endswith("on these 6 tasks.")


def test_nothing_declared_has_no_decision_and_no_table(tmp_path: Path) -> None:
    found = weak(tmp_path, NULL, reps=10, primary=None)
    assert (found.decision, found.summary, found.headline) == (None, (), None)
    assert "p =" not in " ".join(found.answer)
    assert "unplanned" in found.answer[1]
    assert "The declared contrast" not in to_markdown(found)


# --- the cost -------------------------------------------------------------------------------------------


def test_the_cost_of_a_pass_stands_in_the_second_line(lively: Report) -> None:
    a, b = lively.analysis.declared, {one.condition: one.without_losses for one in lively.analysis.costs}
    assert re.search(
        r" A pass cost \$[\d.]+ against \$[\d.]+ \(×[\d.]+, 95% interval ×[\d.]+ to ×[\d.]+\)(, lost runs not "
        r"counted)?\.$",
        lively.answer[1],
    )
    assert f"A pass cost ${b[a.treatment]:.4f}"[:-2] in lively.answer[1]


def test_without_a_cost_of_passes_trials_are_compared_and_then_time(lively: Report) -> None:
    no_pass = tuple(replace(one, without_losses=None) for one in lively.analysis.costs)
    by_trial = replace(lively, analysis=replace(lively.analysis, costs=no_pass))
    assert re.fullmatch(
        r"A trial cost \$[\d.]+ against \$[\d.]+ \(medians\)\.", spent(by_trial, lively.headline) or ""
    )
    no_money = tuple(one for one in lively.analysis.measures if one.measure != "cost_usd")
    by_time = replace(lively, analysis=replace(lively.analysis, costs=no_pass, measures=no_money))
    assert re.fullmatch(
        r"A trial took [\d.]+ s against 1 m \d\d s of agent time, [\d.]+ against [\d.]+ turns \(medians\)\.",
        spent(by_time, lively.headline) or "",
    )
    nothing = replace(lively, analysis=replace(lively.analysis, costs=no_pass, measures=()))
    assert spent(nothing, lively.headline) is None


def test_a_ratio_without_an_estimate_is_left_out(lively: Report) -> None:
    none = BootstrapInterval(None, None, None, 0.95, 0, "cost_per_pass", "these_tasks", reason="made")
    ratios = tuple(replace(one, these_tasks=none) for one in lively.analysis.cost_ratios)
    found = spent(replace(lively, analysis=replace(lively.analysis, cost_ratios=ratios)), lively.headline) or ""
    assert "×" not in found


# --- the table ------------------------------------------------------------------------------------------


def test_the_table_has_estimand_test_interval_information_and_assumptions(tmp_path: Path) -> None:
    found = weak(tmp_path, DEMO_LIKE)
    shown, of = rows(found), notes(found)
    assert list(shown) == [
        "Question",
        "Difference",
        "95% interval",
        "Test",
        "Information",
        "Detectable",
        "Lost first runs",
        "Assumptions",
    ]
    assert shown["Question"] == ("the same tasks, run again", "other tasks of their kind")
    assert shown["Difference"] == ("+15.0 points", "+15.0 points")
    assert shown["95% interval"] == ("+0.02 to +37.3 points", "−32.7 to +62.7 points")
    assert of["95% interval"] == ("Miettinen–Nurminen score, stratified", "t with 3 degrees of freedom")
    assert shown["Test"] == ("p = 0.083", "p = 0.39")
    assert of["Test"] == ("exact, conditional, mid-p; alpha 0.05", "paired t on task differences; 0.39 after Holm")
    assert shown["Information"] == ("1 of 4 tasks informative", "1 of 4 tasks differs")
    assert of["Information"] == (
        "40 trials; least possible p 0.083",
        "largest: 100.0% of the sum; least possible p 0.39",
    )
    assert of["Detectable"][1] == "power 0: too few tasks could distinguish them"
    assert shown["Lost first runs"] == ("none", "none")
    assert of["Assumptions"] == ("under drift: p 0.12 within task × block", "assumes no rare strong task effects")


def test_the_declared_estimand_comes_first(tmp_path: Path) -> None:
    like = PRIMARY.model_copy(update={"estimand": "tasks_like_these"})
    found = weak(tmp_path, CLEAR, reps=10, primary=like)
    assert rows(found)["Question"] == ("other tasks of their kind", "the same tasks, run again")
    assert "| Declared contrast | Tasks like these (declared) | These tasks (secondary) |" in to_markdown(found)


def test_what_was_declared_beyond_the_contrast_has_its_row() -> None:
    shown = rows(made())
    assert shown["Declared effect"] == ("71.0% power", "–")
    assert shown["Equivalence"] == ("within ±10.0 points: not shown", "within ±10.0 points: not shown")
    assert shown["Lost first runs"] == ("not robust", "not robust")


# --- in every format ------------------------------------------------------------------------------------


def test_every_format_begins_with_the_two_lines_and_the_table(lively: Report) -> None:
    terminal = flat(on_terminal(lively))
    written, page = to_markdown(lively).replace("\\", ""), to_html(lively)
    document = json.loads(to_json(lively))
    assert document["decision"] == lively.decision
    assert document["answer"] == list(lively.answer)
    assert [row["name"] for row in document["summary"]] == list(rows(lively))
    first, second = lively.answer
    arrived = arrival_line(lively)
    step = f"What next? {lively.next_step}"
    assert f"{first} {second} {step} {arrived} Declared contrast" in terminal
    assert f"**{first}**\n\n{second}\n\n{step}\n\n{arrived}\n\nFinal" in written
    minute, below = page.split('id="answer"')[1].split('id="declared"')
    assert f"In one minute{label_verdict(lively)}{first}{second}" in flat(re.sub(r"<[^>]+>", "", minute))
    assert "## In one minute\n\n**" in written
    text = flat(re.sub(r"<[^>]+>", "", below))
    for declared, other in rows(lively).values():
        for shown in (declared, other):
            assert shown in text
            assert shown in written
    for name in rows(lively):
        assert re.search(rf"^{re.escape(name)} ", on_terminal(lively), flags=re.MULTILINE)


def test_hostile_condition_names_stay_text_on_the_first_screen() -> None:
    report = made(2, 2, 3)
    [head, *others] = report.analysis.contrasts
    evil = replace(head, treatment=EVIL, control=f"{EVIL}-control")
    found = worded(replace(report, analysis=replace(report.analysis, contrasts=(evil, *others))))
    assert "onerror" in found.answer[0]
    for text in (to_html(found), to_markdown(found), on_terminal(found)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert "img" not in Page(to_html(found)).tags
    assert "<img" not in to_markdown(found)
    assert "[x](" not in to_markdown(found)
