"""What an attempt's pod requests: fields of the campaign file, and in addition the same for every campaign."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from trialfleet_ledger.quantities import MEBIBYTE, parse_quantity, size_text
from trialfleet_ledger.records.agent import Limits

RUNNER_REQUESTS = {"cpu": "10m", "memory": "96Mi", "ephemeral-storage": "64Mi"}
SCORE_REQUESTS = {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "0"}  # the agent has ended by then


@dataclass(frozen=True, slots=True)
class RequestField:
    """A field of the campaign file, in cores or bytes. `fixed`: what the pod requests besides; `step`, `least`: of
    values that are proposed."""

    name: str
    fixed: Decimal
    step: Decimal
    least: Decimal

    def value(self, request: Decimal) -> str | None:
        """With which a pod requests at most so much; None: that is too little to work with.

        >>> REQUEST_FIELDS["cpu"].value(Decimal("0.51")), REQUEST_FIELDS["memory"].value(Decimal(2**30))
        ('0.49', '896Mi')
        """
        value = math.floor((request - self.fixed) / self.step) * self.step
        return None if value < self.least else self.text(value)

    def text(self, value: Decimal) -> str:
        return f"{float(value):g}" if self.step < 1 else size_text(int(value))


def _fixed(resource: str) -> Decimal:
    return parse_quantity(RUNNER_REQUESTS[resource]) + parse_quantity(SCORE_REQUESTS[resource])


_MIB = Decimal(MEBIBYTE)
REQUEST_FIELDS = {
    "cpu": RequestField("limits.cpu", _fixed("cpu"), Decimal("0.01"), Decimal("0.05")),
    "memory": RequestField("limits.memory", _fixed("memory"), _MIB, 16 * _MIB),
    "ephemeral-storage": RequestField("limits.disk", _fixed("ephemeral-storage"), _MIB, 16 * _MIB),
}


def limit_of(limits: Limits, resource: str) -> Decimal:
    """What the campaign's limits say of a resource, in cores or bytes."""
    sizes = {"cpu": limits.cpu, "memory": limits.memory_bytes, "ephemeral-storage": limits.disk_bytes}
    return Decimal(str(sizes[resource]))
