"""The declared metric's answer, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.figures import level, name_these, p_value, percent, quantity
from trialfleet_designs.document.lost_runs import warn_of_lost_runs
from trialfleet_designs.document.thin_tasks import name_thin_tasks
from trialfleet_designs.document.trials_taken import trials_taken
from trialfleet_designs.metric.finding import MetricFinding
from trialfleet_designs.metric.sizes import OF_SCALE, word_limits, word_size
from trialfleet_designs.metric.words import WORDS
from trialfleet_ledger.designs.metric import MetricScale
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Interval

TESTS: dict[MetricScale, str] = {
    "ratio": "permutation test",
    "difference": "studentised permutation test, asymptotic",
}


def metric_outcome(found: MetricFinding) -> Outcome:
    """`less`: the treatment takes less."""
    if found.p_value is None:
        return "undefined"
    if not found.shown:
        return "not_shown"
    return "more" if found.direction > 0 else "less"


def metric_answer(found: MetricFinding, caveat: str | None = None, *, cancelled: bool = False) -> tuple[str, ...]:
    """The decision with its size; the bill and the pass rates beside it; what it took. `caveat`: what the sentence
    must say of its p; `cancelled`: no later look can decide."""
    goes_on = found.goes_on and not cancelled
    if found.p_value is None:
        return (f"No answer{' yet' if goes_on else ''}: {found.reason}.",)
    clauses = [*_after_looks(found), *([caveat] if caveat else [])]
    said = f" ({'; '.join(clauses)})" if clauses else ""
    return (
        f"{_decide(found, goes_on=goes_on)}: {_size(found)}{said}.{_beside(found)}",
        _compare_sides(found),
        *say_uncached(found),
        f"This answer took {trials_taken(found.trials)}{_saved(found)}.",
    )


def _decide(found: MetricFinding, *, goes_on: bool) -> str:
    a, b, words = found.treatment.condition, found.control.condition, WORDS[found.metric]
    on = name_these(len(found.compared.tasks))
    if found.shown:
        return f"On {on}, {a} {words.more if found.direction > 0 else words.less} than {b}"
    so_far = " so far" if goes_on else ""
    return f"On {on}, no difference in {words.noun} was shown{so_far} between {a} and {b}"


def _size(found: MetricFinding) -> str:
    unplanned = ", not valid under monitoring" if found.monitored and not found.planned else ""
    looks = ", at declared looks" if found.planned else ""
    return f"{word_estimate(found)}, {p_value(found.p_value, found.alpha)}{unplanned}, {TESTS[found.scale]}{looks}"


def word_estimate(found: MetricFinding, size: Interval | None = None) -> str:
    """The declared estimate with its interval, or another one on its scale."""
    of = size or found.size
    limits = word_limits(found.scale, found.metric, of)
    interval = f"{level(of.level)} interval {limits}" if limits else "no interval"
    return f"{word_size(found.scale, found.metric, of.estimate)} {OF_SCALE[found.scale]} ({interval})"


def say_uncached(found: MetricFinding) -> tuple[str, ...]:
    """Arms may share a provider's cache: then one pays for what the other reads."""
    return (f"At uncached prices: {word_estimate(found, found.uncached)}.",) if found.uncached else ()


def _compare_sides(found: MetricFinding) -> str:
    """Also the pass rates: what is cheaper may fail more."""
    a, b, unit = found.treatment, found.control, WORDS[found.metric].unit
    means = f"{quantity(a.mean, unit)} against {quantity(b.mean, unit)} a trial on average"
    bill = f", ×{found.bill:.2f} over all" if found.bill is not None else ""
    rates = f"{percent(a.rate)} against {percent(b.rate)} passed"
    cut = a.cut_off + b.cut_off
    at_limit = f"; {cut:,} of {plural(a.trials + b.trials, 'trial')} hit a limit and count with what they had used"
    lacking = a.missing + b.missing
    own = "has none to compare with in its block" if lacking == 1 else "have none to compare with in their block"
    alone = f", or {own}" if found.scale == "difference" else ""
    unknown = f"; {plural(lacking, 'valid trial')} left no value{alone}" if lacking else ""
    return f"{means}{bill}; {rates}{at_limit if cut else ''}{unknown}."


def _after_looks(found: MetricFinding) -> Iterator[str]:
    if found.ended == "futility":
        yield "stopped: to show a difference by the end had become improbable"
    if found.withdrawn and found.taken:
        did = "decided" if found.ended else "going on"
        yield f"{did} at look {found.taken[-1].number} on data since withdrawn"


def _beside(found: MetricFinding) -> str:
    """Sentences that are added to the decision."""
    left_out = (f"{name_thin_tasks(found.compared.thin)}.",) if found.compared.thin else ()
    fragile = () if found.robust else (warn_of_lost_runs(found.lost),)
    return "".join(f" {text}" for text in (*left_out, *fragile))


def _saved(found: MetricFinding) -> str:
    if not found.planned or not found.taken or found.ended is None or found.taken[-1].blocks == found.planned[-1]:
        return ""
    last = found.taken[-1]
    return (
        f", stopped at look {last.number} of {len(found.planned)}; the plan would have taken "
        f"{plural(found.planned_trials, 'trial')}"
    )
