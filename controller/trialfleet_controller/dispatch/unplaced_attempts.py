"""Attempts that no node of a cluster takes: why, and which field changes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from trialfleet_controller.backends.kube.pod_requests import REQUEST_FIELDS, limit_of
from trialfleet_controller.backends.protocol import SHORTAGES, Wait
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.agent import Limits

STEADY_S = 10.0  # a pod may wait for the place of one that is just ending
_LACKS = "`trialfleet doctor` names what each node lacks"
_RESOURCES = {Wait.NO_CPU: "cpu", Wait.NO_MEMORY: "memory", Wait.NO_DISK: "ephemeral-storage"}


def unplaced_message(pending: Mapping[Wait, int], running: int, limits: Limits) -> str | None:
    """`running`: attempts that are not pending. None: every attempt has a node, or waits for something else.

    >>> unplaced_message({Wait.NO_CPU: 3}, 1, Limits(cpu=1))[:104]
    '3 attempts wait because no node has the CPU: each requests limits.cpu: 1, and 0.02 for runner and tests.'
    """
    waiting = {wait: pending[wait] for wait in SHORTAGES if pending.get(wait)}
    if not waiting:
        return None
    placed = running + sum(count for wait, count in pending.items() if wait not in (*SHORTAGES, Wait.QUEUED))
    if len(waiting) == 1:
        ((wait, count),) = waiting.items()
        return f"{_waiting(wait, count)}: {_explanation(wait, placed, count, limits)}"
    causes = "; ".join(_waiting(wait, count) for wait, count in waiting.items())
    return f"{causes}. {_LACKS}{_fewer(placed)}"


def _waiting(wait: Wait, count: int) -> str:
    return f"{plural(count, 'attempt')} {'waits' if count == 1 else 'wait'} because {wait.words}"


def _fewer(placed: int) -> str:
    if not placed:
        return ""
    return f", or run fewer at once: end this controller, then `trialfleet resume --parallel {placed} CAMPAIGN`"


def _explanation(wait: Wait, placed: int, waiting: int, limits: Limits) -> str:
    if wait is Wait.NO_POD:
        return f"add nodes, or raise the kubelet's maxPods{_fewer(placed)}"
    resource = _RESOURCES.get(wait)
    if resource is None:
        return f"{_LACKS} (kubernetes.node_selector, kubernetes.tolerations)"
    known, limit = REQUEST_FIELDS[resource], limit_of(limits, resource)
    request = (
        f"each requests {known.name}: {known.text(limit)}, and {known.text(known.fixed)} for runner and tests"
    )
    value = known.value((limit + known.fixed) * Decimal(placed) / Decimal(placed + waiting))
    less = _with_less(known.name, value, placed, placed + waiting)
    return f"{request}. {less}; for this one, add nodes{_fewer(placed)}"


def _with_less(name: str, value: str | None, placed: int, wanted: int) -> str:
    """All find room where some run if they request no more together, and nodes can be filled to the end."""
    if value is None:
        return f"`trialfleet doctor` names what each node has: lower {name} in a campaign of another name"
    runs = "1 has a place" if placed == 1 else f"{placed} have a place"
    return f"Where {runs}, up to {wanted} would with {name}: {value}, in a campaign of another name"


@dataclass
class PlacementNotice:
    """When `unplaced_message` is news: once it has held for a while, and again when other attempts lack something
    else, or all have a place."""

    limits: Limits
    _lacking: frozenset[Wait] = field(default_factory=frozenset[Wait])
    _since: float = 0.0
    _announced: frozenset[Wait] = field(default_factory=frozenset[Wait])

    def news(self, pending: Mapping[Wait, int], running: int, now: float) -> str | None:
        """`now`: of a monotonic clock."""
        lacking = frozenset(wait for wait in SHORTAGES if pending.get(wait))
        if lacking != self._lacking:
            self._lacking, self._since = lacking, now
        if lacking == self._announced or now - self._since < STEADY_S:
            return None
        self._announced = lacking
        return unplaced_message(pending, running, self.limits) or "no launched attempt waits for a node any more"
