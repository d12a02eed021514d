"""A declared metric: its sides in the first table, its test and looks in a section."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trialfleet_designs.document.effects import DrawnEffect
from trialfleet_designs.document.figures import NOTHING, bare_p, decimals, level, percent, quantity, times
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
from trialfleet_designs.metric.answer import ratio_limits
from trialfleet_designs.metric.finding import MetricFinding, MetricLook, MetricLossName
from trialfleet_designs.metric.words import WORDS

DECISIONS = {
    "continue": "went on",
    "benefit": "stopped: less",
    "harm": "stopped: more",
    "futility": "stopped: futility",
    "end": "the end",
}
SCENARIOS: dict[MetricLossName, str] = {
    "as_measured": "as measured, retries counted",
    "complete_case": "lost runs left out",
    "treatment_low": "treatment's lost runs at the least of their task, the control's at the most or the limit",
    "treatment_high": "treatment's lost runs at the most of their task or the limit, the control's at the least",
}
DIRECTIONS = {1: "more", -1: "less", 0: "no difference shown"}


def tabulate_metric(found: MetricFinding) -> ReportTable:
    """Treatment and control in one table."""
    unit = WORDS[found.metric].unit
    return table(
        "The declared metric",
        (found.treatment, found.control),
        text("Condition", lambda one: one.condition),
        number("Mean, over the tasks' means", lambda one: or_reason(quantity(one.mean, unit), found.reason)),
        number("Pass rate, same tasks", lambda one: percent(one.rate)),
        number("Trials with a value", lambda one: one.trials),
        number("Without", lambda one: one.missing),
        number("Hit a limit", lambda one: one.cut_off),
        number("Coefficient of variation within tasks", lambda one: decimals(one.spread)),
    )


def draw_ratio(found: MetricFinding) -> DrawnEffect:
    noun = WORDS[found.metric].noun
    names = f"{found.treatment.condition} over {found.control.condition}"
    return DrawnEffect(
        f"{noun.capitalize()}, {names}", "ratio", found.ratio, "less", "more", ratio_limits(found.ratio)
    )


def metric_section(found: MetricFinding) -> ReportSection:
    looks = (
        f" Looks were declared after blocks {', '.join(map(str, found.planned))}: labels are permuted within task "
        "and stage, and the same permutations are followed through all looks, so that each spends what it may."
        if found.planned
        else ""
    )
    return section(
        "metric",
        "Does the metric differ?",
        f"The declared test: does a trial's {WORDS[found.metric].noun} depend on the condition? The ratio is that "
        "of a typical task: the mean over tasks of the differences of mean logs. Its test permutes labels within "
        f"tasks, and its interval is made of the same permutations.{looks} The bill's ratio weighs a trial by "
        "what it takes, so that a few dear tasks decide it. A trial that hit a limit counts with what it had used "
        "until then. Conditions that run side by side may share a provider's cache.",
        table(
            "The test of the metric",
            _facts(found),
            text("Fact", lambda row: row[0]),
            number("Value", lambda row: row[1]),
        ),
        table(
            "What each look at the metric decided",
            found.taken,
            number("Look", lambda one: one.number),
            number("After block", lambda one: one.blocks),
            number("Ratio", lambda one: _ratio(one.result.difference)),
            number("Stops below", lambda one: _ratio(one.result.lower)),
            number("Stops above", lambda one: _ratio(one.result.upper)),
            number("p", lambda one: bare_p(one.result.p_value)),
            number("May be spent", lambda one: decimals(2 * one.result.level, 4)),
            number("Chance of a difference at the end", lambda one: percent(one.result.chance)),
            text("Decision", _decision),
        ),
        table(
            "The metric on first runs",
            found.scenarios,
            text("If…", lambda one: SCENARIOS[one.name]),
            number("Ratio", lambda one: times(one.ratio)),
            number("p", lambda one: bare_p(one.p_value)),
            text("Decision", lambda one: DIRECTIONS[one.direction]),
            lead="A lost run has no value, and losses may depend on the condition: so the test is repeated on "
            "first runs, with the lost ones at both ends of what their task has shown.",
        ),
    )


def _ratio(log: float | None) -> str:
    return NOTHING if log is None else times(math.exp(log))


def _decision(one: MetricLook) -> Cell:
    return DECISIONS[one.result.verdict] if one.obeyed else "futility, and the operator went on"


def _facts(found: MetricFinding) -> Sequence[tuple[str, Value]]:
    return (
        ("Ratio in a typical task", or_reason(times(found.ratio.estimate), found.reason)),
        (f"{level(found.ratio.level)} interval", or_reason(ratio_limits(found.ratio) or NOTHING, found.reason)),
        ("p, permutation within tasks", Value(bare_p(found.p_value), found.reason)),
        ("Ratio of the bill", or_reason(times(found.bill), found.reason)),
        ("Tasks", Value(f"{len(found.compared.tasks):,}")),
    )
