"""A trend over conditions of ascending doses."""

from __future__ import annotations

from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.extended import EXTENDED
from trialfleet_designs.document.tables import ReportSection, ReportTable
from trialfleet_designs.power.trend import TrendPlan, trend_rows
from trialfleet_designs.protocol import Design, Observed, PowerQuestion, Reported, name_doubts
from trialfleet_designs.trend.answer import trend_answer, trend_outcome
from trialfleet_designs.trend.finding import TrendFinding, trend_finding
from trialfleet_designs.trend.section import tabulate_doses, trend_section
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.errors import OperatorError


class TrendDesign(Design[TrendPrimary, TrendFinding]):
    """`primary: {trend: […], doses: […]}`."""

    uses = frozenset({"a trend over doses"})

    def plan_power(self, declared: TrendPrimary, question: PowerQuestion) -> TrendPlan:
        rows = trend_rows(declared, question.rates, question.reps, question.effect, question.effort)
        return TrendPlan(
            question.campaign,
            declared.trend,
            declared.doses,
            question.rates.tasks,
            question.population,
            question.effort,
            rows,
        )

    def refuse_combining(self, declared: TrendPrimary) -> OperatorError:
        return OperatorError(
            "the campaign declares a trend over doses, and no test over several trends is specified",
            hint="leave it out, and read its own report",
        )

    def find(self, declared: TrendPrimary, observed: Observed) -> TrendFinding:
        return trend_finding(declared, observed.scheme, observed.columns, observed.counts)

    def choose_tasks(self, found: TrendFinding) -> ComparedTasks:
        return found.compared

    def list_doubts(self, found: TrendFinding) -> tuple[str, ...]:
        return name_doubts(robust=found.robust, withdrawn=False)

    def answer(self, found: TrendFinding, reported: Reported) -> tuple[str, ...]:
        return trend_answer(found, EXTENDED if reported.extended else None)

    def name_outcome(self, found: TrendFinding) -> str | None:
        return {"more": "Rises with the dose", "less": "Falls with the dose"}.get(trend_outcome(found))

    def tell_outcome(self, found: TrendFinding) -> Outcome:
        return trend_outcome(found)

    def first_table(self, found: TrendFinding, reported: Reported) -> ReportTable:
        return tabulate_doses(found, reported)

    def lead_section(self, found: TrendFinding, reported: Reported) -> ReportSection:
        return trend_section(found)
