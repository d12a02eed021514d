"""Which of the changes that travel are the product's own: a pass must come from these."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.workspace_scan import Changes


@dataclass(frozen=True)
class SplitChanges:
    """`product`: scored first, alone. `others`: scored with these only if they do not pass alone. `left`: what does
    not travel."""

    product: Changes
    others: Changes
    left: tuple[str, ...] = ()


def split_changes(changes: Changes, classes: PatchClasses | None) -> SplitChanges:
    """Without `classes` all are the product's."""
    return SplitChanges(changes, {})
