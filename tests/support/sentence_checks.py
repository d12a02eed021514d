"""Whether a report's sentences contradict its own data: what a reader could check with the page in hand."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise

from tests.support.random_campaigns import DrawnCampaign
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.verdict_label import label_verdict
from trialfleet_designs.document.figures import percent
from trialfleet_designs.metric.words import WORDS
from trialfleet_designs.question.finding import QuestionFinding

LABELS = {  # label of a verdict -> what the first sentences of such an answer may hold
    "Better": (" more often than ",),
    "Worse": (" less often than ",),
    "Alike within the margin": (" is no larger than ",),
    "Undecided": ("No difference was shown between ", " it was not shown that ", "No trend ", "no difference in "),
    "Not finished: no conclusion yet": (" so far", "not valid under monitoring", " it was not shown"),
    "Contradictory": ("no direction can be stated",),
    "No answer": (" no answer", "No answer"),
    "Less": (" less ", " fewer "),
    "More": (" more ",),
    "Rises with the dose": (" rises ", " rose ", "rise"),
    "Falls with the dose": (" falls ", " fell ", "fall"),
    "Worse than the margin": (" it was not shown that ",),
    "Differs by more than the margin": (" it was not shown that ",),
    "Cost more": (" it was not shown that ",),
    "Took more turns": (" it was not shown that ",),
    "Shown": ("On ",),
}
NUMBER = r"[+−-]?[\d.]+"
SIZE = re.compile(
    rf"(?P<a>{NUMBER})% against (?P<b>{NUMBER})%, a difference of (?P<d>{NUMBER}) points"
    r"(?P<rounded> before rounding)? "
    rf"\((?:\d+% interval (?P<low>{NUMBER}) to (?P<high>{NUMBER})|no interval)"
)


def contradictions(found: DrawnCampaign) -> list[str]:
    """Each with the sentences; empty: none."""
    report = found.report
    every = [
        *{"trend": _trend, "question": _question, "metric": _metric, "joint": _joint}.get(
            report.analysis.design, _contrast
        )(report)
    ]
    every += [*_counts(found), *_methods(report), *_label(report)]
    every += [one for size in SIZE.finditer(" ".join(report.answer)) for one in _sums(size)]
    return [f"{found.kind}: {one}: {' '.join(report.answer)}" for one in every]


def _label(report: Report) -> Iterator[str]:
    """The word before the answer says what its first sentences say."""
    label = label_verdict(report)
    if label is None or not any(words in " ".join(report.answer[:2]) for words in LABELS[label]):
        yield f"the label is {label}"
    if label in ("Undecided", "Better", "Worse") and " is no larger than " in report.answer[0]:
        yield f"alike within the margin, and the label is {label}"


def _sums(size: re.Match[str]) -> Iterator[str]:
    gap = abs(round(_value(size["a"]) - _value(size["b"]) - _value(size["d"]), 1))
    if gap > (0.1 if size["rounded"] else 0.0):
        yield "the printed rates and their difference do not add up"


def _value(text: str) -> float:
    return float(text.replace("−", "-"))


def _contrast(report: Report) -> Iterator[str]:
    contrast, text = report.headline, " ".join(report.answer)
    size = SIZE.search(text)
    if contrast is None or size is None:
        if report.decision not in ("undefined", None):
            yield "a decision without its size"
        return
    difference, shown = _value(size["d"]), {one.condition: one.these_tasks.estimate for one in report.conditions}
    for side, name in (("a", contrast.treatment), ("b", contrast.control)):
        if f"{size[side]}%" != percent(shown[name]):
            yield f"the rate of {name} in the table is {percent(shown[name])}"
    if report.analysis.declared is None or report.analysis.declared.reach == "these_tasks":
        yield from _direction(report, difference)
    if size["low"] is not None:
        yield from _interval(report, difference, _value(size["low"]), _value(size["high"]))


def _direction(report: Report, difference: float) -> Iterator[str]:
    assert report.headline is not None
    of_test = report.headline.these_tasks.test.direction
    sign = {"more": 1, "less": -1}.get(report.decision or "", 0)
    if sign and (sign * difference <= 0 or sign * of_test <= 0):
        yield "direction in words, of the difference and of the test differ"
    words = {"more": "more often", "less": "less often", "conflict": "no direction can be stated"}
    if report.decision in words and words[report.decision] not in report.answer[0]:
        yield "the decision is not said"


def _interval(report: Report, difference: float, low: float, high: float) -> Iterator[str]:
    if not low - 0.11 <= difference <= high + 0.11:
        yield "the interval excludes its own estimate"
    said = any("interval" in caution and "test" in caution for caution in report.cautions)
    outside = low > 0 or high < 0
    if outside != (report.decision in ("more", "less", "conflict")) and not said and low * high:
        yield "the interval and the decision part, and no caution says so"


def _trend(report: Report) -> Iterator[str]:
    trend = report.analysis.found
    assert trend is not None
    text, shown = " ".join(report.answer), {one.condition: one.these_tasks.estimate for one in report.conditions}
    printed = re.findall(rf"({NUMBER})% \((\w+)\)", text)
    for rate, name in printed:
        if f"{rate}%" != percent(shown[name]):
            yield f"the rate of {name} in the table is {percent(shown[name])}"
    rates = [_value(rate) for rate, _ in printed]
    sign = {"more": 1, "less": -1}.get(report.decision or "", 0)
    if sign and sign * (trend.per_dose or 0) <= 0:
        yield "direction in words is not that of the printed rates' slope"
    steps = [sign * (b - a) for a, b in pairwise(rates)]
    if sign and min(steps, default=0) < 0 and "not steadily" not in text:
        yield "the rates do not move steadily"
    changed = re.search(rf"odds of passing changed ({NUMBER})-fold", text)
    if changed and sign * (_value(changed[1]) - 1) < 0:
        yield "the odds move the other way"


def sides(found: QuestionFinding) -> tuple[tuple[str, str], ...]:
    return ("a", found.treatment), ("b", found.control)


def _question(report: Report) -> Iterator[str]:
    found, text = report.analysis.found, " ".join(report.answer)
    assert found is not None
    size = SIZE.search(text)
    if size is None or found.p_value is None:
        if report.decision != "undefined" or "No answer" not in text:
            yield "a decision without its size"
        return
    shown = {one.condition: one.these_tasks.estimate for one in report.conditions}
    for side, name in sides(found):
        if f"{size[side]}%" != percent(shown[name]):
            yield f"the rate of {name} in the table is {percent(shown[name])}"
    if (report.decision == "shown") == ("it was not shown" in text):
        yield "the decision is not said"
    low, high = _value(size["low"] or "-100"), _value(size["high"] or "100")
    inside = low > -100 * found.margin + 0.06 and (
        found.question == "not_worse" or high < 100 * found.margin - 0.06
    )
    outside = low < -100 * found.margin - 0.06 or (
        found.question == "equivalent" and high > 100 * found.margin + 0.06
    )
    if (inside and report.decision != "shown") or (outside and report.decision == "shown"):
        yield "the interval and the decision part"
    if not low - 0.11 <= _value(size["d"]) <= high + 0.11:
        yield "the interval excludes its own estimate"
    if high < 0 and f"the pass rate of {found.treatment} is below" not in text and "is lower by more" not in text:
        yield "the interval lies below 0, and no sentence says so"


def _metric(report: Report) -> Iterator[str]:
    found, text = report.analysis.found, " ".join(report.answer)
    assert found is not None
    ratio = found.scale == "ratio"
    size = "in a typical task" if ratio else "a trial on average (" if found.size.estimate is not None else None
    if size is None or size not in report.answer[0]:
        if report.decision != "undefined" or "No answer" not in text:
            yield "a decision without its size"
        return
    shown = {one.condition: one.these_tasks.estimate for one in report.conditions}
    for side in (found.treatment, found.control):
        if f"{percent(shown[side.condition])}" != percent(side.rate):
            yield f"the rate of {side.condition} in the table is {percent(shown[side.condition])}"
    of = WORDS[found.metric]
    words = {"less": of.less, "more": of.more, "not_shown": f"no difference in {of.noun} was shown"}
    if words[report.decision or ""] not in report.answer[0]:
        yield "the decision is not said"
    of, none, sign = found.size, 1.0 if ratio else 0.0, {"less": -1, "more": 1}.get(report.decision or "", 0)
    if sign and sign * (of.estimate - none) <= 0:
        yield "direction in words is not that of the estimate"
    low = of.low if of.low is not None else 0.0 if ratio else -math.inf
    high = math.inf if of.high is None else of.high
    unit = 0.01 if ratio else 0.01 * max(abs(of.estimate), 1e-9)
    if not low - unit <= of.estimate <= high + unit:
        yield "the interval excludes its own estimate"
    if not ratio and abs(found.treatment.mean - found.control.mean - of.estimate) > 1e-9:
        yield "the difference is not that of the printed means"
    if (found.uncached is not None) != ("At uncached prices" in text):
        yield "what it costs without a cache is not said"
    outside = low > none + 2 * unit or high < none - 2 * unit
    inside = low < none - 2 * unit and high > none + 2 * unit
    if (outside and not sign) or (inside and sign):
        yield "the interval and the decision part"


def _joint(report: Report) -> Iterator[str]:
    found, text = report.analysis.found, " ".join(report.answer)
    assert found is not None
    ratio, size = re.search(rf"×({NUMBER}) in a typical task", text), SIZE.search(text)
    if ratio is None or size is None:
        if report.decision != "undefined" or "No answer" not in text:
            yield "a decision without its size"
        return
    if (report.decision == "shown") == ("it was not shown" in text):
        yield "the decision is not said"
    if report.decision == "shown" and not (found.cheaper and found.within.shown):
        yield "one part is not shown"
    if found.cheaper and _value(ratio[1]) > 1:
        yield "cheaper at a ratio above 1"
    for part, said in ((found.cheaper, "cost is lower"), (found.within.shown, "within the margin")):
        alone = re.search("; only that (.*)", report.answer[0])
        if report.decision != "shown" and part != bool(alone and said in alone[1]):
            yield f"which part is shown: {said}"
    shown = {one.condition: one.these_tasks.estimate for one in report.conditions}
    of_table = all(f"{size[side]}%" == percent(shown[name]) for side, name in sides(found.within))
    if not of_table and not re.search(r"[Pp]ass rates, as of look \d+:", text):
        yield "the rates are not those of the table, and no look is named"
    low = _value(size["low"] or "-100")
    if abs(low + 100 * found.within.margin) > 0.06 and (low > -100 * found.within.margin) != found.within.shown:
        yield "the interval and the decision part"


def _counts(found: DrawnCampaign) -> Iterator[str]:
    report, text = found.report, " ".join(found.report.answer)
    compared = report.analysis.compared
    every = (*compared.tasks, *compared.thin, *compared.empty)
    if sorted(every) != sorted(found.scheme.tasks):
        yield "compared tasks, thin and empty ones are not all tasks"
    named = re.search(r"[Oo]n th(?:is|ese) (\d+) task", text)
    if named and int(named[1]) != len(report.compared):
        yield f"the tables hold {len(report.compared)} tasks"
    if named and int(named[1]) == 0:
        yield "an answer on no task"
    took = re.search(r"[Tt]his answer took (\d+) trial", text)
    if took and int(took[1]) != found.ran:
        yield f"{found.ran} trials were run"
    if report.decision != "undefined" and any(task not in text for task in compared.thin):
        yield "a task that was left out by losses is not named"


def _methods(report: Report) -> Iterator[str]:
    bets = report.analysis.design == "anytime"
    if bets and any("normal approximation" in caution or "exact test" in caution for caution in report.cautions):
        yield "limits by bets rest on no approximation, and no exact test decides"


CHECKS = {"trend": _trend, "question": _question, "metric": _metric, "joint": _joint}
