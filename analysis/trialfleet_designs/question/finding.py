"""The declared question within a margin: rates, the tests, what looks said, and what lost runs could change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trialfleet_designs.comparison.columns import FourCounts, Scheme, TrialsTaken, counted, rates
from trialfleet_designs.comparison.compared import ComparedTasks, compare_tasks
from trialfleet_designs.comparison.tasks_like_these import TasksClaim
from trialfleet_designs.looks.finding import decided_counts
from trialfleet_designs.looks.margin import looked_equivalence
from trialfleet_designs.protocol import Observed
from trialfleet_designs.question.looks import design_at_margin
from trialfleet_ledger.designs.looks import Decision, MarginResult, stopped
from trialfleet_ledger.designs.question import Question, QuestionPrimary
from trialfleet_statistics.comparisons import EquivalenceTest, equivalence
from trialfleet_statistics.estimates import Bools, Estimand, Integers, Interval, rejects

QuestionLossName = Literal["as_measured", "complete_case", "lost_as_failed", "worst", "best"]
Ended = Literal["shown", "futility", "end"]


@dataclass(frozen=True)
class QuestionUnderLoss:
    """The question if what is missing had gone one way. `beyond`: as `find_side_beyond`."""

    name: QuestionLossName
    difference: float | None
    p_value: float | None
    shown: bool
    beyond: int


@dataclass(frozen=True)
class QuestionLook:
    """One look that was taken. `obeyed`: False where the operator went on."""

    number: int
    blocks: int
    result: MarginResult
    obeyed: bool


@dataclass(frozen=True)
class QuestionFinding:
    """`compared`: the tasks, each weighing the same; the rates are means over them; `repositories`: that they come
    from, where these bear on tasks like these, else 0. `p_lower`: of the test that the difference is above
    −margin; `p_upper`: below margin; `p_value`: of what is asked, None with the `reason` where it is
    undefined. `interval`: of the difference, at level 1 − 2 alpha; at looks the repeated one. `scenarios`:
    as measured, then on first runs under assumptions about those that were lost; none where nothing was.
    `planned`: the blocks after which is looked, empty for a fixed end; `ended`: why the campaign is over at
    a look; `trials` of `planned_trials`: all that ran for it. `withdrawn`: data of a look no longer count."""

    question: Question
    treatment: str
    control: str
    margin: float
    alpha: float
    estimand: Estimand
    compared: ComparedTasks
    repositories: int
    treatment_rate: float | None
    control_rate: float | None
    p_lower: float | None
    p_upper: float | None
    p_value: float | None
    interval: Interval
    reason: str | None
    scenarios: tuple[QuestionUnderLoss, ...]
    lost: int
    forged: int
    planned: tuple[int, ...]
    taken: tuple[QuestionLook, ...]
    ended: Ended | None
    trials: TrialsTaken
    planned_trials: int
    withdrawn: bool
    monitored: bool

    @property
    def shown(self) -> bool:
        """Whether the answer is yes."""
        return self.p_value is not None and rejects(self.p_value, self.alpha)

    @property
    def goes_on(self) -> bool:
        """Whether later trials may still show it."""
        return self.ended is None and (self.monitored or bool(self.planned))

    @property
    def beyond(self) -> int:
        """As `find_side_beyond`; 0 without an answer."""
        return 0 if self.p_value is None else find_side_beyond(self.question, self.interval, self.margin)

    @property
    def robust(self) -> bool:
        """Whether every assumption about lost first runs leads to the same decision."""
        return len({(one.shown, one.beyond) for one in self.scenarios}) < 2


def find_side_beyond(question: Question, interval: Interval, margin: float) -> int:
    """On which side the interval lies wholly beyond the margin, so that the answer is no: −1, lower; 1, higher,
    which only what is to be equivalent must not be; 0: on neither."""
    if interval.high is not None and interval.high < -margin:
        return -1
    return int(question == "equivalent" and interval.low is not None and interval.low > margin)


NO_TASK = "no task has a valid trial on both sides"


def question_finding(declared: QuestionPrimary, observed: Observed) -> QuestionFinding:
    scheme, decisions = observed.scheme, observed.scheme.decisions
    a, b = scheme.conditions.index(declared.treatment), scheme.conditions.index(declared.control)
    planned: tuple[int, ...] = ()
    if declared.stop is None:
        compared = observed.counts.compare_conditions(scheme, a, b)
        four = observed.counts.arms(a, b, compared.mask_among(scheme.tasks))
    else:
        tasks, four = decided_counts([one.stage for one in decisions])
        compared = ComparedTasks(tasks, empty=tuple(one for one in scheme.tasks if one not in tasks))
        planned = design_at_margin(declared, scheme.planned_reps).looks
    test, kept = _QuestionTest(declared, scheme), compared.mask_among(scheme.tasks)
    found, ended = test(four, kept), _how_ended(decisions, len(planned))
    assert found.interval is not None, "the test always has its interval, if only an undefined one"
    both = four[0].size > 0
    missing = observed.columns.first_missing | observed.columns.forged
    of_sides = np.isin(observed.columns.condition, (a, b))
    return QuestionFinding(
        question=declared.asked,
        treatment=declared.treatment,
        control=declared.control,
        margin=declared.margin,
        alpha=declared.alpha,
        estimand=declared.estimand,
        compared=compared,
        repositories=_count_repositories(declared, scheme, kept),
        treatment_rate=float(rates(four[0], four[1]).mean()) if both else None,
        control_rate=float(rates(four[2], four[3]).mean()) if both else None,
        p_lower=found.p_lower,
        p_upper=found.p_upper,
        p_value=test.select_p(found),
        interval=found.interval,
        reason=found.reason or found.interval.reason,
        scenarios=tuple(_scenarios(test, found, observed, (a, b))),
        lost=int(np.sum(missing & of_sides)),
        forged=int(np.sum(observed.columns.forged & of_sides)),
        planned=planned,
        taken=tuple(_look(one) for one in decisions),
        ended=ended,
        trials=observed.ran.count_up_to(None if ended is None else decisions[-1].blocks),
        planned_trials=observed.ran.tasks * len(scheme.conditions) * (scheme.planned_reps or scheme.reps),
        withdrawn=observed.withdrawn,
        monitored=scheme.monitored,
    )


@dataclass(frozen=True)
class _QuestionTest:
    """The declared test, on any counts of the tasks of `scheme` that are `kept`."""

    declared: QuestionPrimary
    scheme: Scheme

    def __call__(self, four: FourCounts, kept: Bools) -> EquivalenceTest:
        declared = self.declared
        if declared.stop is not None:
            design, taken = design_at_margin(declared, self.scheme.planned_reps), len(self.scheme.decisions)
            return looked_equivalence(design, taken, four, declared.margin, declared.alpha)
        if not four[0].size:
            empty = Interval(None, None, None, 1 - 2 * declared.alpha, 0, "none", declared.estimand, NO_TASK)
            return EquivalenceTest(None, None, "equivalence", reason=NO_TASK, interval=empty)
        if declared.estimand == "tasks_like_these":
            return TasksClaim.of(self.scheme, kept, primary=True).judge_within(
                four, declared.margin, declared.alpha
            )
        return equivalence(*four, margin=declared.margin, alpha=declared.alpha)

    def select_p(self, found: EquivalenceTest) -> float | None:
        return found.p_lower if self.declared.asked == "not_worse" else found.p_value


def _count_repositories(declared: QuestionPrimary, scheme: Scheme, kept: Bools) -> int:
    claim = TasksClaim.of(scheme, kept, primary=True)
    return len(set(claim.repositories)) if claim.several and declared.estimand == "tasks_like_these" else 0


def _how_ended(decisions: tuple[Decision, ...], looks: int) -> Ended | None:
    end = stopped(decisions)
    if end is None and looks and len(decisions) == looks:
        end = decisions[-1]
    if end is None:
        return None
    assert isinstance(end.result, MarginResult), "this campaign's looks are at a margin"
    return None if end.result.verdict == "continue" else end.result.verdict


def _look(decision: Decision) -> QuestionLook:
    assert isinstance(decision.result, MarginResult), "this campaign's looks are at a margin"
    return QuestionLook(decision.number, decision.blocks, decision.result, decision.obeyed)


def _scenarios(
    test: _QuestionTest,
    found: EquivalenceTest,
    observed: Observed,
    sides: tuple[int, int],
) -> Iterator[QuestionUnderLoss]:
    """Lost first runs, forged ones among them, left out; all failed; all as a harm of the treatment would have it,
    and as a gain would."""
    scheme, columns, at = observed.scheme, observed.columns, list(sides)
    if scheme.decisions:
        columns = columns.select_trials(columns.block < scheme.decisions[-1].blocks)
    kept = counted(columns.without(columns.first_missing | columns.forged), scheme)
    x, n, lost = (each[:, at] for each in (kept.passes, kept.valid, kept.trials - kept.valid))
    p_value = test.select_p(found)
    if not lost.any() or p_value is None:
        return
    yield _scenario("as_measured", test, found)
    assumed: dict[QuestionLossName, tuple[Integers, Integers]] = {
        "complete_case": (x, n),
        "lost_as_failed": (x, n + lost),
        "worst": (x + lost * np.array([0, 1]), n + lost),
        "best": (x + lost * np.array([1, 0]), n + lost),
    }
    for name, (passed, valid) in assumed.items():
        tasks = compare_tasks(scheme.tasks, valid, n + lost, keep_thin=scheme.keeps_thin)
        used = tasks.mask_among(scheme.tasks) & (valid > 0).all(axis=1)
        four = passed[used, 0], valid[used, 0], passed[used, 1], valid[used, 1]
        yield _scenario(name, test, test(four, used))


def _scenario(name: QuestionLossName, test: _QuestionTest, found: EquivalenceTest) -> QuestionUnderLoss:
    p_value = test.select_p(found)
    interval, declared = found.interval, test.declared
    if p_value is None or interval is None:
        return QuestionUnderLoss(name, None if interval is None else interval.estimate, p_value, False, 0)
    beyond = find_side_beyond(declared.asked, interval, declared.margin)
    return QuestionUnderLoss(name, interval.estimate, p_value, rejects(p_value, declared.alpha), beyond)
