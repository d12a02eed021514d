"""A declared contrast of what trials take: cost, tokens, turns or time, as a ratio in a typical task, or as the
difference of means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from trialfleet_ledger.designs.declaration import Declaration, NamedCondition, Place
from trialfleet_ledger.designs.looks import Decision, MetricResult, StageCounts, StopRule, count_sides
from trialfleet_ledger.designs.schedules import AtLooks, LookCounts, LookSchedule, verdict_of, word_spending
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.base import Name
from trialfleet_ledger.records.measurements import TOKEN_KINDS, Metrics
from trialfleet_ledger.records.outcome import Outcome

ComparedMetric: TypeAlias = Literal["cost_usd", "tokens", "output_tokens", "turns", "agent_s"]
MetricScale: TypeAlias = Literal["ratio", "difference"]
# The fields of `Metrics` that it is the sum of.
PARTS: dict[ComparedMetric, tuple[str, ...]] = {
    "cost_usd": ("cost_usd",),
    "tokens": TOKEN_KINDS,
    "output_tokens": ("output_tokens",),
    "turns": ("turns",),
    "agent_s": ("agent_s",),
}
MAY_BE_ABSENT = ("cache_read_tokens", "cache_write_tokens")  # of a provider without a cache
NOT_PRIMARY = {
    "first_edit_turn": "a trial without an edit has none, so that its mean is one of the trials that edited",
    "wall_s": "it holds what the cluster took; agent_s is the agent's",
}


def refuse_others(value: Any) -> Any:
    """Raises `FieldError` for metrics that are measured, and that no campaign can be decided by."""
    if isinstance(value, str) and value in NOT_PRIMARY:
        raise FieldError(
            f"primary: metric: {value} cannot be the declared result: {NOT_PRIMARY[value]}",
            hint=f"write one of {', '.join(PARTS)}",
        )
    return value


def _refuse_subset(value: Any) -> None:
    if value is not None:
        raise FieldError(
            "primary: over: a metric is declared over all trials: among passed ones alone a condition that passes "
            "more hard tasks looks dearer, with no effect on any trial's cost",
            hint="remove over",
        )


class MetricPrimary(Declaration):
    """`primary: {metric: cost_usd, treatment: short, control: long}`. What is tested is the ratio in a typical
    task: the mean over tasks of the differences of mean logs; with `scale: difference`, the mean over tasks of the
    differences of means, in the metric's unit, of which a task's part grows with what it takes. `effect`: the
    ratio that the campaign was planned to see, of means with `scale: difference`."""

    metric: Annotated[ComparedMetric, BeforeValidator(refuse_others)]
    treatment: Name
    control: Name
    estimand: Literal["these_tasks"] = "these_tasks"
    scale: MetricScale = "ratio"
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    effect: Annotated[float, Field(gt=0, lt=10)] | None = None
    stop: StopRule | None = None
    over: Annotated[None, BeforeValidator(_refuse_subset)] = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _checked(self) -> MetricPrimary:
        if self.effect == 1:
            raise FieldError("primary: effect: 1 is no effect", hint="write a ratio: effect: 0.8, a fifth less")
        if self.stop is None:
            return self
        if self.scale == "difference":
            raise FieldError(
                "primary: stop: with scale: difference there are no looks: its test is asymptotic, and after few "
                "blocks looks rejected in 13% of simulated campaigns without a difference, where costs "
                "differed in shape",
                hint="remove stop, or write scale: ratio",
            )
        rule = self.stop.futility
        if self.stop.changes_plan or (rule != "none" and (rule.conditional is not None or rule.side == "gain")):
            raise FieldError(
                "primary: stop: drop_saturated, reestimate, and futility but the predictive one are those of pass "
                "rates: with a metric they have not been simulated",
                hint="write stop: {looks: 5}, with futility: {predictive: 0.05} or none",
            )
        return self

    @property
    def design(self) -> str:
        return "metric"

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
        return None if self.stop is None else AtMetricLooks(self.stop, self.alpha)

    def count_stage(self, task: str, outcomes: Sequence[Outcome]) -> StageCounts:
        values = {name: tuple(self._values(outcomes, name)) for name in (self.treatment, self.control)}
        counted = count_sides(task, outcomes, self.treatment, self.control)
        return counted.model_copy(
            update={"treatment_values": values[self.treatment], "control_values": values[self.control]}
        )

    def _values(self, outcomes: Sequence[Outcome], condition: str) -> Iterator[float]:
        for one in outcomes:
            if one.trial.condition == condition and one.scored is not None:
                value = measure_trial(self.metric, one.scored.metrics)
                if value is not None:
                    yield value

    def check_campaign(self, conditions: Sequence[NamedCondition], reps: int) -> None:
        if self.treatment == self.control:
            raise FieldError(
                "primary: treatment and control are the same condition",
                hint="name two conditions, or remove `primary`",
            )
        if self.scale == "difference" and reps < 2:
            raise FieldError(
                "primary: scale: difference needs two reps or more: with one, no task's values have a spread",
                hint="plan more reps, or scale: ratio",
            )
        if self.stop is not None:
            self.stop.check_last_look(reps)

    def describe(self, reps: int) -> Iterator[tuple[str, str]]:
        yield (
            "primary metric",
            f"{self.metric}, {self.treatment} {'/' if self.scale == 'ratio' else '−'} {self.control}, "
            f"{self.estimand}, α {self.alpha:g}",
        )

    def preview(self, reps: int) -> Iterator[tuple[str, str]]:
        yield from (("primary", text) for _, text in self.describe(reps))


def measure_trial(metric: ComparedMetric, metrics: Metrics) -> float | None:
    """None where it was not measured, or is 0: an agent that never began has no log."""
    parts = {name: getattr(metrics, name) for name in PARTS[metric]}
    missing = [name for name, value in parts.items() if value is None and name not in MAY_BE_ABSENT]
    if missing:
        return None
    value = float(sum(part for part in parts.values() if part is not None))
    return value if math.isfinite(value) and value > 0 else None


@dataclass(frozen=True)
class AtMetricLooks(AtLooks):
    """Looks at a metric."""

    def count_looks(self, planned: int, reps: int, decisions: Sequence[Decision]) -> LookCounts:
        levels = self.rule.levels(planned, self.alpha)
        return LookCounts(
            looks_planned=len(levels),
            looks_taken=len(decisions),
            look_bounds=dict(zip(self.rule.blocks(planned), levels, strict=True)),
            decided=verdict_of(decisions),
        )

    def describe(self, decision: Decision, looks: int) -> str:
        result = decision.result
        assert isinstance(result, MetricResult), "this campaign's looks are at a metric"
        detail = word_spending(result.p_value, 2 * result.level)
        if result.verdict == "futility":
            detail = f"to show a difference at the end has become improbable ({result.chance:.1%})"
        words = {"benefit": "it is lower", "harm": "it is higher", "futility": "given up", "end": "the end"}
        after = f"look {decision.number} of {looks} after {plural(decision.blocks, 'block')}"
        return f"{after}: {words.get(result.verdict, result.verdict)} ({detail})"
