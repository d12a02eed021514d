"""Cheaper and not worse."""

from __future__ import annotations

from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.effects import DrawnEffect
from trialfleet_designs.document.extended import EXTENDED
from trialfleet_designs.document.tables import ReportSection, ReportTable
from trialfleet_designs.joint.answer import joint_answer, joint_outcome, name_refuted
from trialfleet_designs.joint.finding import JointFinding, joint_finding, look_at_both
from trialfleet_designs.joint.planning import JointPlan, plan_joint
from trialfleet_designs.metric.section import draw_size, metric_section, tabulate_metric
from trialfleet_designs.protocol import Design, Observed, PowerQuestion, Reported, SeenAtLook, name_doubts
from trialfleet_designs.question.section import draw_difference, question_section
from trialfleet_ledger.designs.looks import DecisionResult
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.errors import OperatorError


class JointDesign(Design[QuestionPrimary, JointFinding]):
    """`primary: {question: cheaper_and_not_worse, …}`, at a fixed end or at looks."""

    plans_variation = True
    uses = frozenset({"equivalence", "a declared metric"})

    def decide(self, declared: QuestionPrimary, seen: SeenAtLook) -> DecisionResult:
        return look_at_both(declared, seen)

    def plan_power(self, declared: QuestionPrimary, question: PowerQuestion) -> JointPlan:
        return plan_joint(declared, question)

    def refuse_combining(self, declared: QuestionPrimary) -> OperatorError:
        return OperatorError(
            "the campaign asks for cheaper and not worse: two results, and several campaigns' pairs of results "
            "have no one mean",
            hint="leave it out, and read its own report; campaigns of not_worse, or of a metric, are combined",
        )

    def find(self, declared: QuestionPrimary, observed: Observed) -> JointFinding:
        return joint_finding(declared, observed)

    def choose_tasks(self, found: JointFinding) -> ComparedTasks:
        return found.compared

    def has_ended(self, found: JointFinding) -> bool:
        return found.ended is not None

    def list_doubts(self, found: JointFinding) -> tuple[str, ...]:
        parts = found.within, found.metric
        return name_doubts(robust=all(one.robust for one in parts), withdrawn=any(one.withdrawn for one in parts))

    def goes_on(self, found: JointFinding) -> bool:
        return bool(found.within.planned) and found.ended is None

    def answer(self, found: JointFinding, reported: Reported) -> tuple[str, ...]:
        caveat = EXTENDED if reported.extended and not found.within.planned else None
        return joint_answer(found, caveat, cancelled=reported.cancelled)

    def tell_outcome(self, found: JointFinding) -> Outcome:
        return joint_outcome(found)

    def name_outcome(self, found: JointFinding) -> str | None:
        return name_refuted(found) if joint_outcome(found) == "not_shown" else None

    def list_effects(self, found: JointFinding) -> tuple[DrawnEffect, ...]:
        return (draw_size(found.metric), draw_difference(found.within))

    def first_table(self, found: JointFinding, reported: Reported) -> ReportTable:
        return tabulate_metric(found.metric)

    def lead_section(self, found: JointFinding, reported: Reported) -> ReportSection:
        return question_section(found.within)

    def section(self, found: JointFinding, reported: Reported) -> ReportSection:
        return metric_section(found.metric)

    def except_when_monitored(self, found: JointFinding) -> str:
        return " but those of the declared question, which allow for its looks," if found.within.planned else ""

    def except_when_extended(self, found: JointFinding) -> str:
        return "; the declared question's tests are those of its looks" if found.within.planned else ""

    def note_interim(self, found: JointFinding) -> str | None:
        if found.ended is None:
            return None
        return "A declared look ended the campaign: only the declared question's tests allow for that."
