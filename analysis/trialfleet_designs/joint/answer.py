"""The answer to "cheaper and not worse", in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.figures import (
    compare_rates,
    level,
    name_these,
    p_value,
    point_limits,
)
from trialfleet_designs.document.lost_runs import warn_of_lost_runs
from trialfleet_designs.document.thin_tasks import name_thin_tasks
from trialfleet_designs.document.trials_taken import trials_taken
from trialfleet_designs.joint.finding import JointFinding
from trialfleet_designs.metric.answer import say_uncached, word_estimate
from trialfleet_designs.metric.words import WORDS
from trialfleet_designs.question.answer import name_beyond, say_beyond
from trialfleet_ledger.plurals import plural


def joint_outcome(found: JointFinding) -> Outcome:
    if found.within.p_value is None or found.metric.p_value is None:
        return "undefined"
    return "shown" if found.shown else "not_shown"


def name_refuted(found: JointFinding) -> str | None:
    """Which part is answered by no, in a word or two; None: neither."""
    more = WORDS[found.metric.metric].more.capitalize() if found.dearer else None
    return name_beyond(found.within.question, found.within.beyond) or more


def joint_answer(found: JointFinding, caveat: str | None = None, *, cancelled: bool = False) -> tuple[str, ...]:
    """The decision; the metric; the pass rates; what it took. `caveat`: what the sentence must say of its p;
    `cancelled`: no later look can decide."""
    within, metric = found.within, found.metric
    goes_on = found.ended is None and not cancelled and (within.goes_on or metric.goes_on)
    if within.p_value is None or metric.p_value is None:
        reason = within.reason if within.p_value is None else metric.reason
        return (f"No answer{' yet' if goes_on else ''}: {reason}.",)
    clauses = [*_after_looks(found), *([caveat] if caveat else [])]
    said = f" ({'; '.join(clauses)})" if clauses else ""
    return (
        f"{_decide(found, goes_on=goes_on)}{said}.{_beside(found)}",
        f"{_say_metric(found)}. {_say_rates(found)}.",
        *_say_dearer(found),
        *say_beyond(within.question, within.interval, within.margin, (within.treatment, within.control)),
        *say_uncached(found.metric),
        f"This answer took {trials_taken(found.trials)}{_saved(found)}.",
    )


def _decide(found: JointFinding, *, goes_on: bool) -> str:
    within, metric = found.within, found.metric
    words, on = WORDS[metric.metric], name_these(len(within.compared.tasks))
    margin = f"at a pass rate at most {100 * within.margin:g} points below it"
    both = f"{within.treatment} {words.less} than {within.control}, {margin}"
    if found.shown:
        return f"On {on}, {both}"
    so_far = " so far" if goes_on else ""
    parts = ((f"{words.noun} is lower", found.cheaper), ("the pass rate is within the margin", within.shown))
    alone = "".join(f"; only that {text}" for text, shown in parts if shown)
    return f"On {on}, it was not shown{so_far} that {both}{alone}"


def _say_metric(found: JointFinding) -> str:
    metric = found.metric
    p_less, noun = one_sided_p(metric.p_value, lower=metric.direction < 0), WORDS[metric.metric].noun
    takes = f"{noun.capitalize()}{_name_crossing(found, metric.taken)}: {word_estimate(metric)}"
    return f"{takes}, {p_value(p_less, found.alpha)}{_unplanned(found)}"


def _name_crossing(found: JointFinding, taken: Sequence[object]) -> str:
    """Where a part was shown before the last look: its numbers are of that one."""
    return "" if len(taken) == found.looks else f", as of look {len(taken)}"


def _say_dearer(found: JointFinding) -> Iterator[str]:
    metric = found.metric
    if found.dearer:
        other = p_value(one_sided_p(metric.p_value, lower=True), found.alpha)
        more = f"{found.within.treatment} {WORDS[metric.metric].more} than {found.within.control}"
        yield f"The test of the other side says that {more}, {other}{_unplanned(found)}."


def one_sided_p(p: float | None, *, lower: bool) -> float | None:
    """Of "takes less", from the two-sided p of both tails; `lower`: the smaller tail is this one."""
    if p is None:
        return None
    return p / 2 if lower else 1 - p / 2


def _say_rates(found: JointFinding) -> str:
    within = found.within
    shown = point_limits(within.interval)
    interval = f"{level(within.interval.level)} interval {shown}" if shown else "no interval"
    looks = " at declared looks" if within.planned else ""
    return (
        f"Pass rates{_name_crossing(found, within.taken)}: "
        f"{compare_rates(within.treatment_rate, within.control_rate, within.interval.estimate)} "
        f"({interval}), {p_value(within.p_value, found.alpha)}{_unplanned(found)}; each test "
        f"one-sided at {level(found.alpha)}{looks}"
    )


def _unplanned(found: JointFinding) -> str:
    return ", not valid under monitoring" if found.within.monitored and not found.within.planned else ""


def _after_looks(found: JointFinding) -> Iterator[str]:
    if found.ended == "futility":
        yield "stopped: to show both by the end had become improbable"
    if found.within.withdrawn and found.looks:
        did = "decided" if found.ended else "going on"
        yield f"{did} at look {found.looks} on data since withdrawn"


def _beside(found: JointFinding) -> str:
    thin = tuple(dict.fromkeys((*found.within.compared.thin, *found.metric.compared.thin)))
    left_out = f" {name_thin_tasks(thin)}." if thin else ""
    if found.within.robust and found.metric.robust:
        return left_out
    lost = max(found.within.lost, found.metric.lost)
    return f"{left_out} {warn_of_lost_runs(lost, forged=found.within.forged > 0)}"


def _saved(found: JointFinding) -> str:
    planned, within = found.within.planned, found.within
    if not planned or found.ended is None or not found.looks or planned[found.looks - 1] == planned[-1]:
        return ""
    return (
        f", stopped at look {found.looks} of {len(planned)}; the plan would have taken "
        f"{plural(within.planned_trials, 'trial')}"
    )
