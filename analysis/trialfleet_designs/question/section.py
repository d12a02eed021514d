"""A declared question within a margin: its sides in the first table, its tests and looks in a section."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_designs.document.effects import DrawnEffect
from trialfleet_designs.document.figures import (
    NOTHING,
    bare_p,
    bare_points,
    decimals,
    level,
    limits,
    percent,
    point_limits,
    unsigned_points,
)
from trialfleet_designs.document.tables import (
    Cell,
    ReportSection,
    ReportTable,
    Value,
    number,
    or_reason,
    section,
    table,
    text,
)
from trialfleet_designs.protocol import Reported
from trialfleet_designs.question.answer import name_beyond, state_claim
from trialfleet_designs.question.finding import (
    QuestionFinding,
    QuestionLook,
    QuestionLossName,
    QuestionUnderLoss,
)
from trialfleet_statistics.estimates import Interval

DECISIONS = {"continue": "went on", "shown": "stopped: shown", "futility": "stopped: futility", "end": "the end"}
SCENARIOS: dict[QuestionLossName, str] = {
    "as_measured": "as measured, retries counted",
    "complete_case": "lost runs left out",
    "lost_as_failed": "lost runs failed",
    "worst": "lost runs passed under the control alone",
    "best": "lost runs passed under the treatment alone",
}


def tabulate_sides(found: QuestionFinding, reported: Reported) -> ReportTable:
    """Treatment and control in one table."""
    sides = ((found.treatment, found.treatment_rate), (found.control, found.control_rate))
    return table(
        "The declared question",
        sides,
        text("Condition", lambda one: one[0]),
        number("Rate, mean of the tasks", lambda one: or_reason(percent(one[1]), found.reason)),
        number("95% interval", lambda one: _limits(reported.rates.get(one[0]), one[1])),
    )


def _limits(of: Interval | None, rate: float | None) -> Value:
    """Of the condition's rate, where that is over the same tasks and trials."""
    if of is None or of.estimate is None or rate is None or abs(of.estimate - rate) > 1e-9:
        return Value(NOTHING, "over other trials")
    return or_reason(limits(of), of.reason)


def draw_difference(found: QuestionFinding) -> DrawnEffect:
    both = (-found.margin, found.margin) if found.question == "equivalent" else (-found.margin,)
    title = f"Difference in pass rate, {found.treatment} − {found.control}"
    return DrawnEffect(title, "difference", found.interval, "worse", "better", point_limits(found.interval), both)


def question_section(found: QuestionFinding) -> ReportSection:
    tests = (
        "Miettinen and Nurminen's score at the margin"
        if found.estimand == "these_tasks"
        else "a t-test on the tasks' differences, with their variance within repositories, at the margin"
        if found.repositories
        else "a paired t-test on the tasks' differences, at the margin"
    )
    looks = (
        f" Looks were declared after blocks {', '.join(map(str, found.planned))}: each compares the score Z with "
        "a one-sided group-sequential bound. The interval is the repeated one."
        if found.planned
        else ""
    )
    return section(
        "question",
        "Is the question answered?",
        f"What is asked: do the data show that {state_claim(found)}? The test is one-sided at "
        f"{level(found.alpha)}: {tests}. It agrees with the interval, which has the level "
        f"{level(found.interval.level)}. A yes is not proof of no difference, and a no is not proof of one."
        f"{looks} Other contrasts are corrected in their family.",
        table(
            "The tests within the margin",
            _facts(found),
            text("Fact", lambda row: row[0]),
            number("Value", lambda row: row[1]),
        ),
        table(
            "What each look at the margin decided",
            found.taken,
            number("Look", lambda one: one.number),
            number("After block", lambda one: one.blocks),
            number("Difference, points", lambda one: bare_points(one.result.difference)),
            number("Z above −margin", lambda one: decimals(one.result.z_lower)),
            number("Z below margin", lambda one: decimals(one.result.z_upper)),
            number("Shows it from", lambda one: decimals(one.result.bound)),
            number("Chance to show it at the end", lambda one: percent(one.result.chance)),
            text("Decision", _decision),
        ),
        table(
            "The question on first runs",
            found.scenarios,
            text("If…", lambda one: SCENARIOS[one.name]),
            number("Difference, points", lambda one: bare_points(one.difference)),
            number("p", lambda one: bare_p(one.p_value)),
            text("Decision", lambda one: _decide(found, one)),
            lead="Losses while the agent ran are informative, and a retry does not undo that: so the test is "
            "repeated on first runs, with the lost ones resolved in either direction.",
        ),
    )


def _decide(found: QuestionFinding, one: QuestionUnderLoss) -> Cell:
    if one.shown:
        return "shown"
    beyond = name_beyond(found.question, one.beyond)
    return f"not shown: {beyond[0].lower()}{beyond[1:]}" if beyond else "not shown"


def _decision(one: QuestionLook) -> Cell:
    return DECISIONS[one.result.verdict] if one.obeyed else "futility, and the operator went on"


def _facts(found: QuestionFinding) -> Sequence[tuple[str, Value]]:
    above = (f"p, not below −{unsigned_points(found.margin)} points", Value(bare_p(found.p_lower), found.reason))
    below = (f"p, not above +{unsigned_points(found.margin)} points", Value(bare_p(found.p_upper), found.reason))
    return (
        ("Difference, points", or_reason(bare_points(found.interval.estimate), found.reason)),
        (
            f"{level(found.interval.level)} interval, points",
            or_reason(point_limits(found.interval) or NOTHING, found.reason),
        ),
        above,
        *((below,) if found.question == "equivalent" else ()),
        ("Tasks", Value(f"{len(found.compared.tasks):,}")),
    )
