"""Both parts of "cheaper and not worse", each as of its own crossing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trialfleet_designs.comparison.columns import TrialsTaken
from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.metric.finding import MetricFinding, metric_finding
from trialfleet_designs.metric.looks import look_at_metric
from trialfleet_designs.protocol import Observed, SeenAtLook
from trialfleet_designs.question.finding import QuestionFinding, question_finding
from trialfleet_designs.question.looks import look_at_margin
from trialfleet_ledger.designs.looks import Decision, JointResult, MarginResult, MetricResult, stopped
from trialfleet_ledger.designs.question import QuestionPrimary

Ended = Literal["shown", "futility", "end"]


@dataclass(frozen=True)
class JointFinding:
    """`within`: of the pass rates; `metric`: of what trials take, at a two-sided level of 2 `alpha`, of which one
    side
    is asked. `ended`: why the campaign is over at a look; `looks`: how many were taken; `trials`: all that ran."""

    alpha: float
    within: QuestionFinding
    metric: MetricFinding
    ended: Ended | None
    looks: int
    trials: TrialsTaken

    @property
    def cheaper(self) -> bool:
        """Whether that part is shown."""
        return self.metric.shown and self.metric.direction < 0

    @property
    def dearer(self) -> bool:
        """Whether the opposite is shown of the metric."""
        return self.metric.shown and self.metric.direction > 0

    @property
    def shown(self) -> bool:
        """Whether both parts are."""
        return self.within.shown and self.cheaper

    @property
    def compared(self) -> ComparedTasks:
        """The tasks of the pass rates."""
        return self.within.compared


def look_at_both(declared: QuestionPrimary, seen: SeenAtLook) -> JointResult:
    not_worse, metric = declared.parts
    within = look_at_margin(not_worse, seen.reps, seen.earlier, seen.stage)
    takes = look_at_metric(metric, seen.reps, seen.earlier, seen.stage, seen.seed)
    earlier = [_read_result(one) for one in seen.earlier]
    crossed = (
        any(one.within.verdict == "shown" for one in earlier) or within.verdict == "shown",
        any(one.metric.verdict == "benefit" for one in earlier) or takes.verdict == "benefit",
    )
    last = declared.stop is not None and len(earlier) == len(declared.stop.blocks(seen.reps)) - 1
    given_up = (not crossed[0] and within.verdict == "futility") or (
        not crossed[1] and takes.verdict in ("futility", "harm")
    )
    verdict: Literal["continue", "shown", "futility", "end"] = "continue"
    if all(crossed):
        verdict = "shown"
    elif last:
        verdict = "end"
    elif given_up:
        verdict = "futility"
    return JointResult(within=within, metric=takes, verdict=verdict)


def _read_result(decision: Decision) -> JointResult:
    assert isinstance(decision.result, JointResult), "this campaign's looks are at both"
    return decision.result


def joint_finding(declared: QuestionPrimary, observed: Observed) -> JointFinding:
    not_worse, metric = declared.parts
    decisions = observed.scheme.decisions
    results = [_read_result(one) for one in decisions]
    shown = next((n for n, one in enumerate(results) if one.within.verdict == "shown"), len(results) - 1)
    lower = next((n for n, one in enumerate(results) if one.metric.verdict == "benefit"), len(results) - 1)
    of_rates = _take(decisions, [one.within for one in results], shown)
    of_metric = _take(decisions, [one.metric for one in results], lower)
    ended = _how_ended(decisions, declared, observed.scheme.planned_reps)
    return JointFinding(
        alpha=declared.alpha,
        within=question_finding(not_worse, _as_of(observed, of_rates)),
        metric=metric_finding(metric, _as_of(observed, of_metric)),
        ended=ended,
        looks=len(decisions),
        trials=observed.ran.count_up_to(None if ended is None else decisions[-1].blocks),
    )


def _take(
    decisions: Sequence[Decision], parts: Sequence[MarginResult | MetricResult], last: int
) -> list[Decision]:
    """Up to the look at place `last`, as if there were no other part."""
    each = zip(decisions[: last + 1], parts, strict=False)
    return [one.model_copy(update={"result": part}) for one, part in each]


def _as_of(observed: Observed, decisions: Sequence[Decision]) -> Observed:
    return replace(observed, scheme=replace(observed.scheme, decisions=tuple(decisions)))


def _how_ended(decisions: Sequence[Decision], declared: QuestionPrimary, reps: int) -> Ended | None:
    end = stopped(decisions)
    if end is None and declared.stop is not None and len(decisions) == len(declared.stop.blocks(reps)):
        end = decisions[-1]
    verdict = None if end is None else _read_result(end).verdict
    return None if verdict == "continue" else verdict
