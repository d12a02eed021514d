"""A question within a margin."""

from __future__ import annotations

from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.declared_effect import DeclaredEffect, EffectKind, refuse_looks
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.document.effects import DrawnEffect
from trialfleet_designs.document.extended import EXTENDED
from trialfleet_designs.document.tables import ReportSection, ReportTable
from trialfleet_designs.protocol import Design, Observed, PowerQuestion, Reported, SeenAtLook, name_doubts
from trialfleet_designs.question.answer import name_beyond, question_answer, question_outcome
from trialfleet_designs.question.finding import QuestionFinding, question_finding
from trialfleet_designs.question.looks import look_at_margin
from trialfleet_designs.question.planning import QuestionPlan, plan_question
from trialfleet_designs.question.section import draw_difference, question_section, tabulate_sides
from trialfleet_ledger.designs.looks import DecisionResult
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.errors import OperatorError


class QuestionDesign(Design[QuestionPrimary, QuestionFinding]):
    """`primary: {question: not_worse, …}`, at a fixed end or at looks."""

    uses = frozenset({"equivalence"})

    def decide(self, declared: QuestionPrimary, seen: SeenAtLook) -> DecisionResult:
        return look_at_margin(declared, seen.reps, seen.earlier, seen.stage)

    def plan_power(self, declared: QuestionPrimary, question: PowerQuestion) -> QuestionPlan:
        return plan_question(declared, question)

    def refuse_combining(self, declared: QuestionPrimary) -> OperatorError | None:
        return None if declared.stop is None else refuse_looks()

    def bring_effect(
        self, declared: QuestionPrimary, found: QuestionFinding, observed: Observed
    ) -> DeclaredEffect:
        kind = EffectKind(question=declared.asked, margin=declared.margin)
        return DeclaredEffect(kind, found.interval, found.p_value, found.compared)

    def find(self, declared: QuestionPrimary, observed: Observed) -> QuestionFinding:
        return question_finding(declared, observed)

    def choose_tasks(self, found: QuestionFinding) -> ComparedTasks:
        return found.compared

    def has_ended(self, found: QuestionFinding) -> bool:
        return found.ended is not None

    def list_doubts(self, found: QuestionFinding) -> tuple[str, ...]:
        return name_doubts(robust=found.robust, withdrawn=found.withdrawn)

    def goes_on(self, found: QuestionFinding) -> bool:
        return bool(found.planned) and found.ended is None

    def answer(self, found: QuestionFinding, reported: Reported) -> tuple[str, ...]:
        caveat = EXTENDED if reported.extended and not found.planned else None
        return question_answer(found, caveat, cancelled=reported.cancelled)

    def tell_outcome(self, found: QuestionFinding) -> Outcome:
        return question_outcome(found)

    def name_outcome(self, found: QuestionFinding) -> str | None:
        return name_beyond(found.question, found.beyond)

    def list_effects(self, found: QuestionFinding) -> tuple[DrawnEffect, ...]:
        return (draw_difference(found),)

    def first_table(self, found: QuestionFinding, reported: Reported) -> ReportTable:
        return tabulate_sides(found, reported)

    def lead_section(self, found: QuestionFinding, reported: Reported) -> ReportSection:
        return question_section(found)

    def except_when_monitored(self, found: QuestionFinding) -> str:
        return " but that of the declared question, which allows for its looks," if found.planned else ""

    def except_when_extended(self, found: QuestionFinding) -> str:
        return "; the declared question's p and interval are those of its looks" if found.planned else ""

    def note_interim(self, found: QuestionFinding) -> str | None:
        if found.ended is None:
            return None
        return "A declared look ended the campaign: only the declared question's p and interval allow for that."
