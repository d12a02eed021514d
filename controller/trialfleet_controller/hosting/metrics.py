"""Metrics of a dispatcher for Prometheus, through Ray's exporter. Names and meaning: docs/reference/metrics.md.

Passes are not counted: a dashboard of them would be a look at the results.
"""

from __future__ import annotations

from collections.abc import Mapping

from ray.util.metrics import Counter, Gauge, Histogram

from trialfleet_controller.dispatch.events import CampaignEvent, EventKind
from trialfleet_controller.dispatch.shards import DispatcherStatus
from trialfleet_controller.dispatch.tally import ConditionCounts
from trialfleet_controller.hosting.division import Shard

TAGS = ("campaign", "shard", "namespace")
LATENCIES_S = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]


class Meter:
    """Of one shard, in the process of its dispatcher."""

    def __init__(self, campaign: str, shard: Shard) -> None:
        tags = {"campaign": campaign, "shard": str(shard.index), "namespace": shard.namespace or ""}
        self._trials = _gauge("trialfleet_trials", "Trials, by state.", tags, "state")
        self._running = _gauge("trialfleet_attempts_running", "Attempts that run.", tags)
        self._lost = _gauge("trialfleet_attempts_lost", "Lost attempts, by class.", tags, "loss")
        self._spent = _gauge("trialfleet_spent_usd", "Spent on trials, by whichever controller.", tags)
        self._oldest = _gauge("trialfleet_oldest_open_block", "The oldest block with an open trial.", tags)
        self._width = _gauge("trialfleet_leased_width", "Attempts that may run at once.", tags)
        self._events = Counter("trialfleet_events", "What this process has seen.", (*TAGS, "event"))
        self._events.set_default_tags(tags)
        self._latency = Histogram(
            "trialfleet_launch_seconds",
            "From the decision to launch until the backend has taken the order.",
            LATENCIES_S,
            TAGS,
        )
        self._latency.set_default_tags(tags)

    def note(self, event: CampaignEvent) -> None:
        self._events.inc(1, tags={"event": event.kind.value})
        latency_s = event.detail.get("latency_s")
        if event.kind is EventKind.LAUNCHED and isinstance(latency_s, float):
            self._latency.observe(latency_s)

    def report(self, report: DispatcherStatus) -> None:
        total = sum(report.conditions.values(), ConditionCounts())
        for state, count in _states(total).items():
            self._trials.set(count, tags={"state": state})
        for loss, count in report.losses.items():
            self._lost.set(count, tags={"loss": loss.value})
        self._running.set(total.running)
        self._spent.set(report.spent_usd)
        if report.oldest_open_block is not None:
            self._oldest.set(report.oldest_open_block)
        if report.lease is not None:
            self._width.set(report.lease.width)


def _states(total: ConditionCounts) -> Mapping[str, int]:
    return {
        "measured": total.measured,
        "abandoned": total.abandoned,
        "running": total.running,
        "pending": total.pending,
        "waiting": total.planned - total.terminal - total.running - total.pending,
    }


def _gauge(name: str, description: str, tags: dict[str, str], *more: str) -> Gauge:
    gauge = Gauge(name, description, (*TAGS, *more))
    gauge.set_default_tags(tags)
    return gauge
