"""The report as values, and as JSON: every number of every rendering is in here, unrounded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

from trialfleet_analysis.analysis_plan.analyse import Analysis
from trialfleet_analysis.analysis_plan.cutoff import CutoffSplit
from trialfleet_analysis.analysis_plan.screens import TaskScreening
from trialfleet_analysis.losses import LossCount, LossMessage, LossRate, OperatorStops
from trialfleet_analysis.process import (
    BlockResult,
    CautionedPass,
    Channel,
    CoreSeconds,
    CrashCount,
    InlineText,
    ProviderEndCount,
    StopCount,
    Typical,
    UncausedPass,
    VerdictCount,
)
from trialfleet_analysis.rates import CellResult, ConditionResult, LeftOut
from trialfleet_analysis.tables.rows import TaskRow
from trialfleet_deliveries.equal_arms import EqualArms
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.registry import DESIGNS, AnyDesign
from trialfleet_ledger.plurals import plural


@dataclass(frozen=True)
class SummaryEntry:
    """One cell's text, with the method or the reason that belongs to it."""

    text: str
    note: str | None = None


@dataclass(frozen=True)
class SummaryRow:
    """One fact of the declared contrast: in the declared estimand, and in the other one, which is secondary."""

    name: str
    declared: SummaryEntry
    other: SummaryEntry


@dataclass(frozen=True)
class CampaignProgress:
    """How far the campaign is. `interim`: planned trials without an outcome exist; rates are then made of the
    first `complete_blocks` blocks only, and `beyond` terminal trials wait outside of them. `after_decision`:
    terminal trials of blocks that the look which ended the campaign did not count. `way_on`: what runs the trials
    that are missing; `halted`: nothing of the campaign starts before that. `looked_blocks`: those that the last
    look counted; None: none was taken, or it ended the campaign. `ended_by_look`: one did, and no reps were added
    since."""

    interim: bool
    planned: int
    terminal: int
    measured: int
    missing: int
    blocks: int
    complete_blocks: int
    beyond: int
    cancelled: bool
    out_of_time: bool
    looks: int
    reps_in_plan: int
    extended_after_look: bool
    after_decision: int = 0
    way_on: str = ""
    halted: bool = False
    looked_blocks: int | None = None
    ended_by_look: bool = False

    @property
    def counted_trials(self) -> str:
        """ "40 of 40 trials", or "36 of 40 trials measured, 4 lost"."""
        of = plural(self.planned, "trial")
        if not self.missing:
            return f"{self.terminal:,} of {of}"
        return f"{self.measured:,} of {of} measured, {self.missing:,} lost"


@dataclass(frozen=True)
class RefusedBundle:
    """A trial whose bundle is not what its outcome says. `tampered`: no quarantine record explains it."""

    trial: str
    task: str
    condition: str
    attempt: int
    bundle: str
    reason: str
    tampered: bool = False


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

    `dry_run`: other agents ran in place of the campaign's. `title`: its name; of a dry run, with that label.
    `decision`: of the declared contrast; None without one. `answer`: that decision, then its size and its cost, in
    sentences. `next_step`: whether more trials would help, and for how much. `summary`: the contrast in one table.
    `compared`: tasks that the conditions' means and all contrasts are made of. `not_pulled`: verdicts whose
    bundles a pull left out. `tampered`: records of the campaign that were changed or deleted; `journaled`: such
    ones are noticed. `below_plan`: of an interim report, the cells that still wait for trials, fewest first;
    halted tasks apart.
    """

    dry_run: bool
    schema_version: Literal[2]
    title: str
    campaign: str
    banner: str | None
    verified: bool
    progress: CampaignProgress
    answer: tuple[str, ...]
    cautions: tuple[str, ...]
    decision: Outcome | None
    summary: tuple[SummaryRow, ...]
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
    operator_stops: OperatorStops
    loss_messages: tuple[LossMessage, ...]
    metrics: tuple[Typical, ...]
    core_seconds: CoreSeconds
    blocks: tuple[BlockResult, ...]
    channels: tuple[Channel, ...]
    inline: tuple[InlineText, ...]
    quarantined: tuple[RefusedBundle, ...]
    unplanned: tuple[str, ...]
    manifest: tuple[ManifestLine, ...]
    not_pulled: int = 0
    tampered: tuple[str, ...] = ()
    journaled: bool = True
    below_plan: tuple[BelowPlan, ...] = ()
    crashes: tuple[CrashCount, ...] = ()
    uncaused: tuple[UncausedPass, ...] = ()
    cautioned: tuple[CautionedPass, ...] = ()
    provider_ends: tuple[ProviderEndCount, ...] = ()
    equal_arms: tuple[EqualArms, ...] = ()
    halted_conditions: Mapping[str, str] = field(default_factory=dict[str, str])  # name -> why
    cutoff: CutoffSplit | None = None  # None: none was given
    next_step: str | None = None

    @property
    def conditions_compared(self) -> tuple[str, ...]:
        """Those of the declared result; without one, all."""
        return tuple(self.analysis.sides) or tuple(one.condition for one in self.conditions)

    @property
    def state(self) -> Literal["interim", "decided", "final"]:
        """`decided`: a declared look, or a bet, has ended the campaign before its last trial."""
        if not self.progress.interim:
            return "final"
        return "decided" if self.progress.ended_by_look else "interim"

    @property
    def design(self) -> AnyDesign:
        """Of what the campaign declares."""
        return DESIGNS[self.analysis.design]

    @property
    def headline(self) -> Contrast | None:
        """The declared primary contrast; None when none was declared."""
        return next((found for found in self.analysis.contrasts if found.role == "primary"), None)

    @property
    def headline_screen(self) -> TaskScreening | None:
        """The tasks of the declared primary contrast."""
        sides = self.headline and (self.headline.treatment, self.headline.control)
        return next((one for one in self.analysis.screens if (one.treatment, one.control) == sides), None)

    @property
    def condition_names(self) -> tuple[str, ...]:
        return tuple(result.condition for result in self.conditions)


_ADAPTER = TypeAdapter(Report)


def to_json(report: Report, *, trials: bool = True) -> str:
    """The whole report; without the trials' ids when `trials` is False. Same report, same bytes."""
    hidden = None if trials else {"cells": {"__all__": {"trials", "endings"}}}
    plain = _ADAPTER.dump_python(report, mode="json", exclude=hidden)
    plain["analysis"] = dict(_name_finding(report.analysis.design, plain["analysis"]))
    return json.dumps(plain, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _name_finding(design: str, analysis: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """With what the declared design found under that design's name."""
    for key, value in analysis.items():
        if key == "found":
            yield from ((name, value if name == design else None) for name in DESIGNS if name != "fixed")
        elif key not in ("design", "sides"):
            yield key, value
