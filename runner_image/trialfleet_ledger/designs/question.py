"""A declared question within a margin: is the treatment not worse, or do the two not differ by more than it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from trialfleet_ledger.designs.declaration import Declaration, NamedCondition, Place
from trialfleet_ledger.designs.looks import (
    Decision,
    JointResult,
    MarginResult,
    StageCounts,
    StopRule,
    count_sides,
    read_margin,
)
from trialfleet_ledger.designs.metric import ComparedMetric, MetricPrimary, refuse_others
from trialfleet_ledger.designs.schedules import AtLooks, LookCounts, LookSchedule, verdict_of
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.base import Name
from trialfleet_ledger.records.outcome import Outcome

Question: TypeAlias = Literal["not_worse", "equivalent"]
JOINT = "cheaper_and_not_worse"


class QuestionPrimary(Declaration):
    """`primary: {question: not_worse, treatment: short, control: long, margin: 10}`.

    `not_worse`: the treatment's pass rate is at most `margin` below the control's; `equivalent`: the two are at
    most `margin` apart, either way; `cheaper_and_not_worse`: it is not worse, and takes less of `metric` (None:
    cost_usd), both shown. Each test is one-sided, at `alpha`. `stop`: looks, at which the campaign ends once it is
    shown, or once that has become improbable.
    """

    question: Question | Literal["cheaper_and_not_worse"]
    treatment: Name
    control: Name
    margin: Annotated[float, Field(gt=0, lt=1), BeforeValidator(read_margin)]
    estimand: Literal["these_tasks", "tasks_like_these"] = "these_tasks"
    alpha: Annotated[float, Field(gt=0, lt=0.25)] = 0.05
    stop: StopRule | None = None
    metric: Annotated[ComparedMetric | None, BeforeValidator(refuse_others)] = None

    @model_validator(mode="after")
    def _joint(self) -> QuestionPrimary:
        if self.question != JOINT and self.metric is not None:
            raise FieldError(
                f"primary: question: {self.question} is about pass rates, and metric: {self.metric} is not",
                hint=f"write question: {JOINT}, or metric without question",
            )
        if self.question == JOINT and self.estimand != "these_tasks":
            raise FieldError(
                f"primary: question: {JOINT} needs estimand: these_tasks, that of its metric",
                hint="write estimand: these_tasks",
            )
        return self

    @model_validator(mode="after")
    def _looks(self) -> QuestionPrimary:
        if self.stop is None:
            return self
        if self.estimand != "these_tasks":
            raise FieldError(
                "primary: stop needs estimand: these_tasks: no test within a margin is specified for looks at "
                "tasks_like_these",
                hint="write estimand: these_tasks, or remove stop",
            )
        if self.stop.changes_plan:
            raise FieldError(
                "primary: stop: drop_saturated and reestimate are those of a difference: with a question within a "
                "margin they have not been simulated",
                hint="remove drop_saturated and reestimate, or question with its margin",
            )
        rule = self.stop.futility
        if rule != "none" and (rule.conditional is not None or rule.side == "gain"):
            raise FieldError(
                "primary: stop: futility of a question within a margin is the predictive power to show it",
                hint="write futility: {predictive: 0.05}, or futility: none",
            )
        return self

    @property
    def design(self) -> str:
        return "joint" if self.question == JOINT else "question"

    @property
    def asked(self) -> Question:
        """What is asked about pass rates."""
        return "not_worse" if self.question == "cheaper_and_not_worse" else self.question

    @property
    def parts(self) -> tuple[QuestionPrimary, MetricPrimary]:
        """Of `cheaper_and_not_worse`: the two that are declared together. The metric's alpha is two-sided."""
        not_worse = self.model_copy(update={"question": "not_worse", "metric": None})
        metric = MetricPrimary(
            metric=self.metric or "cost_usd",
            treatment=self.treatment,
            control=self.control,
            alpha=2 * self.alpha,
            stop=self.stop,
        )
        return not_worse, metric

    @property
    def test_alpha(self) -> float:
        return self.alpha

    @property
    def sides(self) -> dict[Place, str]:
        return {("treatment",): self.treatment, ("control",): self.control}

    @property
    def reference(self) -> str:
        return self.control

    @property
    def schedule(self) -> LookSchedule | None:
        return None if self.stop is None else AtMarginLooks(self.stop, self.alpha)

    def count_stage(self, task: str, outcomes: Sequence[Outcome]) -> StageCounts:
        if self.question == JOINT:
            return self.parts[1].count_stage(task, outcomes)
        return count_sides(task, outcomes, self.treatment, self.control)

    def check_campaign(self, conditions: Sequence[NamedCondition], reps: int) -> None:
        if self.treatment == self.control:
            raise FieldError(
                "primary: treatment and control are the same condition",
                hint="name two conditions, or remove `primary`",
            )
        if self.stop is not None:
            self.stop.check_last_look(reps)

    def describe(self, reps: int) -> Iterator[tuple[str, str]]:
        sides = f"{self.treatment} against {self.control}"
        metric = f" ({self.metric or 'cost_usd'})" if self.question == JOINT else ""
        asked = f"{self.question.replace('_', ' ')}{metric}, margin {100 * self.margin:g} points"
        yield "primary question", f"{sides}: {asked}; {self.estimand}, one-sided α {self.alpha:g}"

    def preview(self, reps: int) -> Iterator[tuple[str, str]]:
        yield from (("primary", text) for _, text in self.describe(reps))


@dataclass(frozen=True)
class AtMarginLooks(AtLooks):
    """Looks at a question within a margin: a Z against a bound, so that no p decides."""

    def count_looks(self, planned: int, reps: int, decisions: Sequence[Decision]) -> LookCounts:
        return LookCounts(
            looks_planned=len(self.rule.blocks(planned)),
            looks_taken=len(decisions),
            decided=verdict_of(decisions),
        )

    def describe(self, decision: Decision, looks: int) -> str:
        result = decision.result
        assert isinstance(result, MarginResult | JointResult), "this campaign's looks are at a margin"
        after = f"look {decision.number} of {looks} after {plural(decision.blocks, 'block')}"
        if result.verdict == "futility":
            return f"{after}: to show it at the end has become improbable"
        return f"{after}: {'it is shown' if result.verdict == 'shown' else 'the end'}"
