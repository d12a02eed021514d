"""What "cheaper and not worse" is expected to find: of both parts, and of the two together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from trialfleet_designs.document.figures import percent, points, times
from trialfleet_designs.document.tables import number, table
from trialfleet_designs.metric.planning import MetricPlan, plan_metric
from trialfleet_designs.metric.words import WORDS
from trialfleet_designs.power.least_reps import word_reps
from trialfleet_designs.power.own_plan import OwnPlan, PlanText
from trialfleet_designs.protocol import PowerQuestion
from trialfleet_designs.question.answer import word_claim
from trialfleet_designs.question.planning import QuestionPlan, plan_question
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.plurals import plural


@dataclass(frozen=True)
class JointScenario:
    """`power`: of the two together, if cost and passing do not depend on each other within a task. `lacks_looks`:
    those that are declared are at blocks of other reps."""

    reps: int
    trials: int
    difference: float
    ratio: float
    not_worse: float
    cheaper: float
    power: float
    lacks_looks: bool


@dataclass(frozen=True)
class JointPlan(OwnPlan):
    """Both parts, and `scenarios` of the two together."""

    within: QuestionPlan
    metric: MetricPlan
    scenarios: tuple[JointScenario, ...]

    kind: ClassVar[str] = "joint"

    def describe(self) -> PlanText:
        within, rates, takes = self.within, self.within.describe(), self.metric.describe()
        claim = word_claim(within.asked, within.treatment, within.control, within.margin)
        shown = table(
            "",
            self.scenarios,
            number("reps", lambda one: word_reps(one.reps, lacks_looks=one.lacks_looks)),
            number("trials in both arms", lambda one: one.trials),
            number("true difference", lambda one: points(one.difference)),
            number("true ratio", lambda one: times(one.ratio)),
            number("not worse", lambda one: percent(one.not_worse)),
            number("cheaper", lambda one: percent(one.cheaper)),
            number("both", lambda one: percent(one.power)),
        )
        return PlanText(
            f"{within.campaign}: is it shown that {claim}, and that {within.treatment} "
            f"{WORDS[self.metric.metric].less} than {within.control}? {plural(within.tasks, 'task')}",
            shown,
            (
                rates.notes[-1],
                takes.notes[-1],
                "both: as if passing and cost did not depend on each other in a task",
            ),
        )


def plan_joint(declared: QuestionPrimary, asked: PowerQuestion) -> JointPlan:
    not_worse, metric = declared.parts
    within, takes = plan_question(not_worse, asked), replace(plan_metric(metric, asked), one_sided=True)
    scenarios = [
        JointScenario(
            rates.reps,
            rates.trials,
            passing.difference,
            cost.ratio,
            passing.power,
            cost.power,
            passing.power * cost.power,
            rates.lacks_looks,
        )
        for rates, costs in zip(within.rows, takes.rows, strict=True)
        for passing in rates.scenarios
        if passing.difference in (0.0, -declared.margin / 2)
        for cost in costs.scenarios
    ]
    return JointPlan(within, takes, tuple(scenarios))
