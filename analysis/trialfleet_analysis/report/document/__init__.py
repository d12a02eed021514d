"""The report as values, and as JSON: every number of every rendering is in here, unrounded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from trialfleet_analysis.estimates import Interval
from trialfleet_analysis.losses import LossCount, LossMessage, LossRate
from trialfleet_analysis.process import (
    BlockResult,
    Channel,
    CoreSeconds,
    InlineText,
    StopCount,
    Typical,
    VerdictCount,
)
from trialfleet_analysis.rates import CellResult, ConditionResult, LeftOut
from trialfleet_analysis.report.document.analysis import Analysis
from trialfleet_analysis.report.document.contrasts import Contrast
from trialfleet_analysis.tables import TaskRow


@dataclass(frozen=True)
class Progress:
    """How far the campaign is. `interim`: planned trials without an outcome exist; rates are then made of the
    first `complete_blocks` blocks only, and `beyond` terminal trials wait outside of them."""

    interim: bool
    planned: int
    terminal: int
    measured: int
    missing: int
    blocks: int
    complete_blocks: int
    beyond: int
    cancelled: bool
    looks: int
    reps_in_plan: int
    extended_after_look: bool


@dataclass(frozen=True)
class Refused:
    """A trial whose bundle is not what its outcome says."""

    trial: str
    task: str
    condition: str
    attempt: int
    bundle: str
    reason: str


@dataclass(frozen=True)
class BelowPlan:
    """A cell with fewer trials over than planned."""

    task: str
    condition: str
    terminal: int
    planned: int


@dataclass(frozen=True)
class ManifestLine:
    """One fact of what made these numbers."""

    group: str
    name: str
    value: str


@dataclass(frozen=True)
class Report:
    """One campaign: its records, and in `analysis` what the default plan of analysis makes of them.

    `compared`: tasks that the conditions' means and all contrasts are made of. `below_plan`: of an interim
    report, the cells that still wait for trials, fewest first; halted tasks apart."""

    schema_version: Literal[2]
    campaign: str
    banner: str | None
    verified: bool
    progress: Progress
    answer: tuple[str, ...]
    cautions: tuple[str, ...]
    analysis: Analysis
    tasks: tuple[TaskRow, ...]
    compared: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    conditions: tuple[ConditionResult, ...]
    cells: tuple[CellResult, ...]
    verdicts: tuple[VerdictCount, ...]
    stops: tuple[StopCount, ...]
    losses: tuple[LossCount, ...]
    loss_rates: tuple[LossRate, ...]
    loss_messages: tuple[LossMessage, ...]
    metrics: tuple[Typical, ...]
    core_seconds: CoreSeconds
    blocks: tuple[BlockResult, ...]
    channels: tuple[Channel, ...]
    inline: tuple[InlineText, ...]
    quarantined: tuple[Refused, ...]
    unplanned: tuple[str, ...]
    manifest: tuple[ManifestLine, ...]
    below_plan: tuple[BelowPlan, ...] = ()

    @property
    def headline(self) -> Contrast | None:
        """The declared primary contrast; None when none was declared."""
        return next((found for found in self.analysis.contrasts if found.role == "primary"), None)

    @property
    def effect(self) -> Interval | None:
        """The declared contrast's difference in the declared estimand."""
        headline, declared = self.headline, self.analysis.declared
        if headline is None or declared is None:
            return None
        on_these = declared.estimand == "these_tasks"
        return headline.these_tasks.difference if on_these else headline.tasks_like_these.difference

    @property
    def condition_names(self) -> tuple[str, ...]:
        return tuple(result.condition for result in self.conditions)


_ADAPTER = TypeAdapter(Report)


def to_json(report: Report, *, trials: bool = True) -> str:
    """The whole report; without the trials' ids when `trials` is False. Same report, same bytes."""
    hidden = None if trials else {"cells": {"__all__": {"trials", "endings"}}}
    plain = _ADAPTER.dump_python(report, mode="json", exclude=hidden)
    return json.dumps(plain, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
