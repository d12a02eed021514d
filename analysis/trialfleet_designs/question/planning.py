"""What a declared question within a margin is expected to find: simulated, with the test that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trialfleet_designs.document.figures import percent, points
from trialfleet_designs.document.tables import TableColumn, number, table
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.least_reps import count_looks, find_least_reps, lacks_looks, word_looks, word_reps
from trialfleet_designs.power.own_plan import OwnPlan, PlanText
from trialfleet_designs.protocol import PowerQuestion
from trialfleet_designs.question.answer import word_claim
from trialfleet_designs.question.looks import design_at_margin
from trialfleet_ledger.designs.question import Question, QuestionPrimary
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.sequential import MarginPower, SequentialDesign, margin_power, paired_margin_power

FACTORS = (0.0, -0.5, -1.0, 0.5)  # of the margin: true differences
MOST_REPS = 400
TESTS: dict[Estimand, str] = {
    "these_tasks": "one-sided test",
    "tasks_like_these": "one-sided paired t test over tasks",
}


@dataclass(frozen=True)
class QuestionScenario:
    """`difference`: the true one, mean over tasks. `share`: of the planned trials, on average; `futile`: how often
    the looks give up."""

    difference: float
    power: float
    se: float
    share: float
    futile: float


@dataclass(frozen=True)
class QuestionRow:
    """`trials`: in both arms. `lacks_looks`: those that are declared are at blocks of other reps."""

    reps: int
    trials: int
    scenarios: tuple[QuestionScenario, ...]
    lacks_looks: bool


@dataclass(frozen=True)
class QuestionPlan(OwnPlan):
    """`population`: the tasks, in words. `needed`: the least reps with
    the power wanted where the two are equal; None: more than 400. `looks`: how many, at most; 0: a fixed end;
    `needed_lacks_looks`: as of a row.
    `within_repositories`: tasks come from several, and are judged by their variance within them."""

    campaign: str
    asked: Question
    treatment: str
    control: str
    margin: float
    tasks: int
    estimand: Estimand
    population: str
    looks: int
    within_repositories: bool
    effort: Effort
    rows: tuple[QuestionRow, ...]
    needed: int | None
    needed_lacks_looks: bool

    kind: ClassVar[str] = "question"

    def describe(self) -> PlanText:
        claim = word_claim(self.asked, self.treatment, self.control, self.margin)
        judged = "tasks like these, judged by " if self.estimand == "tasks_like_these" else ""
        each = [(row, one) for row in self.rows for one in row.scenarios]
        columns: list[TableColumn[tuple[QuestionRow, QuestionScenario]]] = [
            number("reps", lambda one: word_reps(one[0].reps, lacks_looks=one[0].lacks_looks)),
            number("trials in both arms", lambda one: one[0].trials),
            number("true difference", lambda one: points(one[1].difference)),
            number("says yes", lambda one: percent(one[1].power)),
        ]
        if self.looks:
            columns.append(number("of the trials, on average", lambda one: percent(one[1].share)))
            columns.append(number("stops early, not shown", lambda one: percent(one[1].futile)))
        return PlanText(
            f"{self.campaign}: is it shown that {claim}? {judged}{plural(self.tasks, 'task')}",
            table("", each, *columns),
            (*self._say_needed(), self._name_assumptions()),
        )

    def _say_needed(self) -> tuple[str, ...]:
        wanted = f"a yes {percent(self.effort.power)} of the time, where the two pass alike,"
        if self.needed is None:
            return (f"{wanted} needs more than {MOST_REPS} reps a task: take more tasks, or a larger margin",)
        trials = 2 * self.needed * self.tasks
        end = ", with a fixed end" if self.needed_lacks_looks else ""
        needs = f"{plural(self.needed, 'rep')} a task ({plural(trials, 'trial')} in both arms{end})"
        return (f"{wanted} needs {needs}",)

    def _name_assumptions(self) -> str:
        looks = f", at {word_looks(self.looks, [row.reps for row in self.rows])}" if self.looks else ""
        within = ", with their variance within repositories," if self.within_repositories else ""
        return (
            f"{TESTS[self.estimand]}{within} at the margin, alpha {self.effort.alpha:g}{looks}, "
            f"{plural(self.effort.simulations, 'campaign')} a figure; under the control {self.population}"
        )


def plan_question(declared: QuestionPrimary, asked: PowerQuestion) -> QuestionPlan:
    """With the test of the declared estimand."""

    def at(reps: int, difference: float) -> QuestionScenario:
        found = simulate(reps, difference)
        return QuestionScenario(difference, found.power, found.se, found.share, found.futile)

    def simulate(reps: int, difference: float) -> MarginPower:
        if declared.estimand == "tasks_like_these":
            return paired_margin_power(
                *asked.rates.compare(difference),
                reps,
                question=declared.asked,
                margin=declared.margin,
                alpha=declared.alpha,
                repositories=asked.repositories,
                simulations=asked.effort.simulations,
                seed=asked.effort.seed,
            )
        design = SequentialDesign((reps,), alpha=declared.alpha)
        if count_looks(declared.stop, reps):
            design = design_at_margin(declared, reps)
        rule = None if declared.stop is None or declared.stop.futility == "none" else declared.stop.futility
        return margin_power(
            *asked.rates.compare(difference),
            design,
            question=declared.asked,
            margin=declared.margin,
            futility=None if rule is None else rule.predictive,
            simulations=asked.effort.simulations,
            seed=asked.effort.seed,
        )

    def row(reps: int) -> QuestionRow:
        wanted = [factor * declared.margin for factor in FACTORS]
        room = asked.rates.mean, 1 - asked.rates.mean
        possible = [one for one in wanted if -room[0] < one < room[1]]
        scenarios = tuple(at(reps, one) for one in possible)
        return QuestionRow(reps, 2 * reps * asked.rates.tasks, scenarios, lacks_looks(declared.stop, reps))

    needed = find_least_reps(lambda reps: at(reps, 0.0).power >= asked.effort.power, MOST_REPS)
    return QuestionPlan(
        campaign=asked.campaign,
        asked=declared.asked,
        treatment=declared.treatment,
        control=declared.control,
        margin=declared.margin,
        tasks=asked.rates.tasks,
        estimand=declared.estimand,
        population=asked.population,
        looks=max(count_looks(declared.stop, reps) for reps in asked.reps),
        within_repositories=declared.estimand == "tasks_like_these" and asked.repositories.bear,
        effort=asked.effort,
        rows=tuple(row(one) for one in asked.reps),
        needed=needed,
        needed_lacks_looks=needed is not None and lacks_looks(declared.stop, needed),
    )
