"""A declared metric."""

from __future__ import annotations

from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.declared_effect import DeclaredEffect, EffectKind, refuse_looks
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.effects import DrawnEffect
from trialfleet_designs.document.extended import EXTENDED
from trialfleet_designs.document.tables import ReportSection, ReportTable
from trialfleet_designs.metric.answer import metric_answer, metric_outcome
from trialfleet_designs.metric.finding import MetricFinding, collect_values, metric_finding
from trialfleet_designs.metric.looks import look_at_metric
from trialfleet_designs.metric.planning import MetricPlan, plan_metric
from trialfleet_designs.metric.section import draw_size, metric_section, tabulate_metric
from trialfleet_designs.protocol import Design, Observed, PowerQuestion, Reported, SeenAtLook, name_doubts
from trialfleet_ledger.designs.looks import DecisionResult
from trialfleet_ledger.designs.metric import MetricPrimary
from trialfleet_ledger.errors import OperatorError


class MetricDesign(Design[MetricPrimary, MetricFinding]):
    """`primary: {metric: cost_usd, …}`, at a fixed end or at looks."""

    plans_variation = True
    uses = frozenset({"a declared metric"})

    def decide(self, declared: MetricPrimary, seen: SeenAtLook) -> DecisionResult:
        return look_at_metric(declared, seen.reps, seen.earlier, seen.stage, seen.seed)

    def plan_power(self, declared: MetricPrimary, question: PowerQuestion) -> MetricPlan:
        return plan_metric(declared, question)

    def refuse_combining(self, declared: MetricPrimary) -> OperatorError | None:
        return None if declared.stop is None else refuse_looks()

    def bring_effect(self, declared: MetricPrimary, found: MetricFinding, observed: Observed) -> DeclaredEffect:
        kind = EffectKind(metric=declared.metric, scale=declared.scale)
        values = collect_values(declared, observed, found.compared)
        return DeclaredEffect(kind, found.size, found.p_value, found.compared, values)

    def find(self, declared: MetricPrimary, observed: Observed) -> MetricFinding:
        return metric_finding(declared, observed)

    def choose_tasks(self, found: MetricFinding) -> ComparedTasks:
        return found.compared

    def has_ended(self, found: MetricFinding) -> bool:
        return found.ended is not None

    def list_doubts(self, found: MetricFinding) -> tuple[str, ...]:
        return name_doubts(robust=found.robust, withdrawn=found.withdrawn)

    def goes_on(self, found: MetricFinding) -> bool:
        return bool(found.planned) and found.ended is None

    def answer(self, found: MetricFinding, reported: Reported) -> tuple[str, ...]:
        caveat = EXTENDED if reported.extended and not found.planned else None
        return metric_answer(found, caveat, cancelled=reported.cancelled)

    def tell_outcome(self, found: MetricFinding) -> Outcome:
        return metric_outcome(found)

    def name_outcome(self, found: MetricFinding) -> str | None:
        return ("Less", None, "More")[found.direction + 1] if found.shown else None

    def list_effects(self, found: MetricFinding) -> tuple[DrawnEffect, ...]:
        return (draw_size(found),)

    def first_table(self, found: MetricFinding, reported: Reported) -> ReportTable:
        return tabulate_metric(found)

    def lead_section(self, found: MetricFinding, reported: Reported) -> ReportSection:
        return metric_section(found)

    def except_when_monitored(self, found: MetricFinding) -> str:
        return " but that of the declared metric, which allows for its looks," if found.planned else ""

    def except_when_extended(self, found: MetricFinding) -> str:
        return "; the declared metric's p and interval are those of its looks" if found.planned else ""

    def note_interim(self, found: MetricFinding) -> str | None:
        if found.ended is None:
            return None
        return "A declared look ended the campaign: only the declared metric's p and interval allow for that."
