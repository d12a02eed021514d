"""What a campaign that declares a question or a metric brings to a combination with others."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_ledger.designs.metric import ComparedMetric, MetricScale
from trialfleet_ledger.designs.question import Question
from trialfleet_ledger.errors import OperatorError
from trialfleet_statistics.estimates import Interval
from trialfleet_statistics.sequential import MeanStage


@dataclass(frozen=True)
class EffectKind:
    """What is asked: `question` within `margin`, or `metric` on `scale`."""

    question: Question | None = None
    margin: float | None = None
    metric: ComparedMetric | None = None
    scale: MetricScale | None = None

    def describe(self) -> str:
        """As it was declared.

        >>> EffectKind(question="not_worse", margin=0.1).describe()
        'question not_worse, margin 10'
        >>> EffectKind(metric="turns", scale="ratio").describe()
        'metric turns, scale ratio'
        """
        if self.margin is not None:
            return f"question {self.question}, margin {100 * self.margin:g}"
        return f"metric {self.metric}, scale {self.scale}"


@dataclass(frozen=True, eq=False)
class DeclaredEffect:
    """`size` and `p_value`: as its own report has them. `compared`: the tasks; `values`: of a metric, its trials',
    which count these tasks from 0."""

    kind: EffectKind
    size: Interval
    p_value: float | None
    compared: ComparedTasks
    values: MeanStage | None = None


def refuse_looks() -> OperatorError:
    """Why a campaign with looks is not combined."""
    return OperatorError(
        "the campaign declared looks (primary.stop): when it ends depends on its results, and no test over "
        "several such campaigns is specified",
        hint="leave it out, and read its own report, whose p allows for the looks",
    )
