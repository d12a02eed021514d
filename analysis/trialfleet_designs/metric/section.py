"""A declared metric: its sides in the first table, its test and looks in a section."""

from __future__ import annotations

import math
from collections.abc import Iterator

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
from trialfleet_designs.metric.finding import MetricFinding, MetricLook, MetricLossName
from trialfleet_designs.metric.sizes import NAMES, word_limits, word_size
from trialfleet_designs.metric.words import WORDS
from trialfleet_ledger.designs.metric import MetricScale
from trialfleet_statistics.estimates import Interval

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
ESTIMATES: dict[MetricScale, str] = {
    "ratio": "The ratio is that of a typical task: the mean over tasks of the differences of mean logs.",
    "difference": "The difference is the mean over tasks of the differences of means, of pairs of trials: a block "
    "of a task counts where both conditions have a value. What is permuted is the difference over its standard "
    "error, which makes unequal shapes of the values matter little: the test is asymptotic.",
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


def draw_size(found: MetricFinding) -> DrawnEffect:
    words, ratio = WORDS[found.metric], found.scale == "ratio"
    names = f"{found.treatment.condition} {'over' if ratio else '−'} {found.control.condition}"
    limits = word_limits(found.scale, found.metric, found.size)
    return DrawnEffect(
        f"{words.noun.capitalize()}, {names}", "ratio" if ratio else words.unit, found.size, "less", "more", limits
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
        f"The declared test: does the condition change a trial's {WORDS[found.metric].noun}? "
        f"{ESTIMATES[found.scale]} Its test permutes labels within "
        f"tasks, and its interval is made of the same permutations.{looks} The bill's ratio weighs a trial by "
        "what it takes, so that a few dear tasks decide it. A trial that hit a limit counts with what it had used "
        "until then. Conditions that run side by side may share a provider's cache: at uncached prices, all that "
        "went in costs what input does.",
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
            number("Ratio", lambda one: _read_log(one.result.difference)),
            number("Stops below", lambda one: _read_log(one.result.lower)),
            number("Stops above", lambda one: _read_log(one.result.upper)),
            number("p", lambda one: bare_p(one.result.p_value, found.alpha)),
            number("May be spent", lambda one: decimals(2 * one.result.level, 4)),
            number("Chance of a difference at the end", lambda one: percent(one.result.chance)),
            text("Decision", _decision),
        ),
        table(
            "The metric on first runs",
            found.scenarios,
            text("If…", lambda one: SCENARIOS[one.name]),
            number(found.scale.capitalize(), lambda one: word_size(found.scale, found.metric, one.size)),
            number("p", lambda one: bare_p(one.p_value, found.alpha)),
            text("Decision", lambda one: DIRECTIONS[one.direction]),
            lead="A lost run has no value, and losses may depend on the condition: so the test is repeated on "
            "first runs, with the lost ones at both ends of what their task has shown.",
        ),
    )


def _read_log(log: float | None) -> str:
    """A ratio, as looks record it."""
    return NOTHING if log is None else times(math.exp(log))


def _decision(one: MetricLook) -> Cell:
    return DECISIONS[one.result.verdict] if one.obeyed else "futility, and the operator went on"


def _facts(found: MetricFinding) -> Iterator[tuple[str, Value]]:
    yield NAMES[found.scale], _show(found, found.size)
    yield f"{level(found.size.level)} interval", _show_limits(found, found.size)
    yield "p, permutation within tasks", Value(bare_p(found.p_value, found.alpha), found.reason)
    yield "Ratio of the bill", or_reason(times(found.bill), found.reason)
    if found.uncached is not None:
        yield "At uncached prices", _show(found, found.uncached)
        yield f"Its {level(found.uncached.level)} interval", _show_limits(found, found.uncached)
    yield "Tasks", Value(f"{len(found.compared.tasks):,}")


def _show(found: MetricFinding, size: Interval) -> Value:
    return or_reason(word_size(found.scale, found.metric, size.estimate), found.reason)


def _show_limits(found: MetricFinding, size: Interval) -> Value:
    return or_reason(word_limits(found.scale, found.metric, size) or NOTHING, found.reason)
