"""A metric in words: what a condition did less, or more, of."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_ledger.designs.metric import ComparedMetric
from trialfleet_ledger.metric_table import Unit


@dataclass(frozen=True)
class MetricWords:
    """`noun`: after "difference in"; `less`, `more`: predicates before "than"; `unit`: of a value."""

    noun: str
    less: str
    more: str
    unit: Unit


WORDS: dict[ComparedMetric, MetricWords] = {
    "cost_usd": MetricWords("cost", "cost less", "cost more", "usd"),
    "tokens": MetricWords("tokens", "took fewer tokens", "took more tokens", "count"),
    "output_tokens": MetricWords("output tokens", "wrote fewer tokens", "wrote more tokens", "count"),
    "turns": MetricWords("turns", "took fewer turns", "took more turns", "count"),
    "agent_s": MetricWords("agent time", "took less time", "took more time", "s"),
}
