"""The declared trend's decision, in sentences."""

from __future__ import annotations

from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.figures import (
    decimals,
    level,
    limit_ratio,
    name_these,
    p_value,
    percent,
)
from trialfleet_designs.document.lost_runs import warn_of_lost_runs
from trialfleet_designs.document.saturated_tasks import explain_impossible
from trialfleet_designs.document.thin_tasks import name_thin_tasks
from trialfleet_designs.trend.finding import TrendFinding
from trialfleet_ledger.plurals import enumerate_words
from trialfleet_statistics.estimates import Interval, cannot_reject, rejects

MOVED: dict[Outcome, str] = {"more": "rose", "less": "fell"}


WIDEST = 100  # times an interval's lower limit: an estimate between limits farther apart says nothing


def trend_outcome(found: TrendFinding) -> Outcome:
    """`more`, `less`: the pass rate rose or fell with the dose, by the direction of the rates' slope."""
    test = found.test
    if not found.tasks or test.p_value is None:
        return "undefined"
    if not rejects(test.p_value, found.alpha):
        return "not_possible" if cannot_reject(test, found.alpha) else "not_shown"
    if not test.direction:
        return "conflict"
    return "more" if test.direction > 0 else "less"


def trend_answer(found: TrendFinding, caveat: str | None = None) -> tuple[str, ...]:
    """The decision, the rates from the lowest dose to the highest, and how steep. `caveat`: what the decision's
    sentence must say of its p."""
    outcome = trend_outcome(found)
    if outcome == "undefined":
        return (f"No answer{' yet' if found.monitored else ''}: {found.test.reason}.", *_without_data(found))
    rates = " → ".join(f"{percent(one.rate)} ({one.condition})" for one in found.doses if one.rate is not None)
    monitored = ", not valid under monitoring" if found.monitored else ""
    size = f"{rates}, {p_value(found.test.p_value, found.alpha)}{monitored}, exact trend test"
    first, beside = _decision(found, outcome), _beside(found)
    note = f" ({caveat})" if caveat else ""
    if outcome in MOVED or outcome == "conflict":
        return (f"{first}: {size}{note}.{beside}", *_steepness(found))
    return (f"{first}{note}.{beside}", f"{size[0].upper()}{size[1:]}.")


def _beside(found: TrendFinding) -> str:
    """Sentences that are added to the decision."""
    left_out = (f"{name_thin_tasks(found.compared.thin)}.",) if found.compared.thin else ()
    lost, forged = (sum(each) for each in zip(*((one.lost, one.forged) for one in found.doses), strict=True))
    fragile = () if found.robust else (warn_of_lost_runs(lost, forged=forged > 0),)
    return "".join(f" {text}" for text in (*_without_data(found), *left_out, *fragile))


def _without_data(found: TrendFinding) -> tuple[str, ...]:
    empty = [f"{one.dose:,} ({one.condition})" for one in found.doses if one.rate is None]
    if not empty or not found.tasks:
        return ()
    if len(empty) == 1:
        return (f"Dose {empty[0]} has no valid trial and is in no number.",)
    return (f"Doses {enumerate_words(empty)} have no valid trial and are in no number.",)


def _decision(found: TrendFinding, outcome: Outcome) -> str:
    on = name_these(found.tasks)
    doses = ", ".join(f"{one.dose:,}" for one in found.doses if one.rate is not None)
    if outcome == "conflict":
        return f"On {on}, the pass rates differ over the doses ({doses}), but no direction can be stated"
    if outcome in MOVED:
        steadily = "" if found.steady else ", not steadily"
        return f"On {on}, the pass rate {MOVED[outcome]} with the dose ({doses}){steadily}"
    nothing = f"No trend with the dose ({doses}) was shown{' so far' if found.monitored else ''} on {on}"
    return f"{nothing}: {_explain_impossible(found)}" if outcome == "not_possible" else nothing


def _explain_impossible(found: TrendFinding) -> str:
    informative, so_far = found.test.n_informative or 0, found.monitored
    return explain_impossible(
        found.tasks, informative, found.alpha, under="at every dose", between="the doses", so_far=so_far
    )


def _steepness(found: TrendFinding) -> tuple[str, ...]:
    odds = found.slope.odds_ratio
    if odds.estimate is None or (odds.estimate - 1) * found.test.direction <= 0:  # it weighs tasks by their trials
        return ()
    return (f"From the lowest dose to the highest the odds of passing changed {times_of_odds(odds)}.",)


def times_of_odds(odds: Interval) -> str:
    """An odds ratio with its interval."""
    return (
        f"{decimals(odds.estimate)}-fold ({level(odds.level)} interval {limit_ratio(odds.low)} to "
        f"{limit_ratio(odds.high)}, logistic regression)"
        + (": the data do not say by how much" if _is_vague(odds) else "")
    )


def _is_vague(odds: Interval) -> bool:
    """Whether an odds ratio's limits lie so far apart that its estimate says nothing."""
    return odds.low is None or odds.high is None or odds.high > WIDEST * odds.low
