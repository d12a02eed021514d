"""The tidy tables: what every number of a report is made of."""

from trialfleet_analysis.tables.rows import (
    CellName,
    TaskRow,
    TrialRow,
    Use,
    quarantined,
    task_rows,
    trial_rows,
    unplanned,
    usable_blocks,
)

__all__ = [
    "CellName",
    "TaskRow",
    "TrialRow",
    "Use",
    "quarantined",
    "task_rows",
    "trial_rows",
    "unplanned",
    "usable_blocks",
]
