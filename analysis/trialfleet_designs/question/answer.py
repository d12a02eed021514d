"""The declared question's answer, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

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
from trialfleet_designs.question.finding import QuestionFinding, find_side_beyond
from trialfleet_ledger.designs.question import Question
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Interval


def question_outcome(found: QuestionFinding) -> Outcome:
    if found.p_value is None:
        return "undefined"
    return "shown" if found.shown else "not_shown"


def question_answer(
    found: QuestionFinding, caveat: str | None = None, *, cancelled: bool = False
) -> tuple[str, ...]:
    """The decision with its size, and what it took. `caveat`: what the sentence must say of its p; `cancelled`:
    no later look can decide."""
    goes_on = found.goes_on and not cancelled
    if found.p_value is None:
        return (f"No answer{' yet' if goes_on else ''}: {found.reason}.",)
    clauses = [*_after_looks(found), *([caveat] if caveat else [])]
    said = f" ({'; '.join(clauses)})" if clauses else ""
    return (
        f"{_decide(found, goes_on=goes_on)}: {_size(found)}{said}.{_beside(found)}",
        *say_beyond(found.question, found.interval, found.margin, (found.treatment, found.control)),
        f"This answer took {trials_taken(found.trials)}{_saved(found)}.",
    )


def _decide(found: QuestionFinding, *, goes_on: bool) -> str:
    on, claim = _name_tasks(found), state_claim(found)
    if found.shown:
        return f"On {on}, {claim}"
    so_far = " so far" if goes_on else ""
    return f"On {on}, it was not shown{so_far} that {claim}"


def state_claim(found: QuestionFinding) -> str:
    """What is asked, as a statement."""
    return word_claim(found.question, found.treatment, found.control, found.margin)


def word_claim(question: Question, treatment: str, control: str, margin: float) -> str:
    """The claim of a question, as a clause."""
    size = f"{100 * margin:g} points"
    if question == "not_worse":
        return f"the pass rate of {treatment} is at most {size} below that of {control}"
    return f"the pass rates of {treatment} and {control} are at most {size} apart"


def _name_tasks(found: QuestionFinding) -> str:
    tasks = len(found.compared.tasks)
    if found.estimand == "tasks_like_these":
        of = f" of these {plural(found.repositories, 'repository')}," if found.repositories else ""
        return f"tasks like these,{of} judged by {plural(tasks, 'task')}"
    return name_these(tasks)


def _size(found: QuestionFinding) -> str:
    shown = point_limits(found.interval)
    interval = f"{level(found.interval.level)} interval {shown}" if shown else "no interval"
    number = "one-sided test" if found.question == "not_worse" else "two one-sided tests, each"
    looks = ", at declared looks" if found.planned else ""
    unplanned = ", not valid under monitoring" if found.monitored and not found.planned else ""
    return (
        f"{compare_rates(found.treatment_rate, found.control_rate, found.interval.estimate)} "
        f"({interval}), {p_value(found.p_value, found.alpha)}{unplanned}, {number} at {level(found.alpha)}{looks}"
    )


def _after_looks(found: QuestionFinding) -> Iterator[str]:
    if found.ended == "futility":
        yield "stopped: to show it by the end had become improbable"
    if found.withdrawn and found.taken:
        did = "decided" if found.ended else "going on"
        yield f"{did} at look {found.taken[-1].number} on data since withdrawn"


def name_beyond(question: Question, side: int) -> str | None:
    """The answer no, in a word or two, of an interval by `find_side_beyond`."""
    if not side:
        return None
    return "Worse than the margin" if question == "not_worse" else "Differs by more than the margin"


def say_beyond(question: Question, interval: Interval, margin: float, sides: tuple[str, str]) -> tuple[str, ...]:
    """What the interval says against the claim, or beyond it. `sides`: treatment and control."""
    low, high = interval.low, interval.high
    if low is None or high is None:
        return ()
    rate, beyond = f"By its interval, the pass rate of {sides[0]} is", find_side_beyond(question, interval, margin)
    if beyond:
        return (f"{rate} {'higher' if beyond > 0 else 'lower'} by more than the margin.",)
    if high < 0:
        return (f"{rate} below that of {sides[1]}.",)
    return (f"{rate} above that of {sides[1]}.",) if low > 0 else ()


def _beside(found: QuestionFinding) -> str:
    """Sentences that are added to the decision."""
    left_out = (f"{name_thin_tasks(found.compared.thin)}.",) if found.compared.thin else ()
    fragile = () if found.robust else (warn_of_lost_runs(found.lost, forged=found.forged > 0),)
    return "".join(f" {text}" for text in (*left_out, *fragile))


def _saved(found: QuestionFinding) -> str:
    if not found.planned or not found.taken or found.ended is None or found.taken[-1].blocks == found.planned[-1]:
        return ""
    last = found.taken[-1]
    return (
        f", stopped at look {last.number} of {len(found.planned)}; the plan would have taken "
        f"{plural(found.planned_trials, 'trial')}"
    )
