"""What the report says of first edits: when, what came before and after, and trials that hit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trialfleet_analysis.continuous import BootstrapInterval
from trialfleet_analysis.estimates import Interval
from trialfleet_analysis.timing import HitGroup

Phase = Literal["exploration", "edit", "tail"]
HitOf = Literal["target_hit", "predicted_hit", "preflight_hit"]


@dataclass(frozen=True)
class PhaseTurns:
    """One phase under one condition. `share`: of a trial's turns, averaged within tasks and over them. `turns`:
    median over tasks of the tasks' medians."""

    phase: Phase
    share: Interval
    turns: BootstrapInterval


@dataclass(frozen=True)
class EditTiming:
    """First edits under one condition, on these tasks. A trial without an edit explored to its end, and its first
    edit stands behind all others. `unseen`: changed files without an edit that its log shows: in nothing here."""

    condition: str
    trials: int
    edited: int
    unseen: int
    share_edited: Interval
    first_edit_turn: BootstrapInterval
    first_edit_s: BootstrapInterval
    phases: tuple[PhaseTurns, ...]


@dataclass(frozen=True)
class AfterFirstEdit:
    """Turns after the first edit, regressed on its turn with task effects; `condition` None: all of them, with
    condition effects. `cut_off`: of the trials, those that a budget ended."""

    condition: str | None
    trials: int
    cut_off: int
    these_tasks: Interval
    tasks_like_these: Interval


@dataclass(frozen=True)
class HitSplit:
    """Trials of a condition by whether they hit: a description, no comparison."""

    of: HitOf
    condition: str
    groups: tuple[HitGroup, HitGroup]


@dataclass(frozen=True)
class Timing:
    """All empty where no trial has an edit that was seen."""

    conditions: tuple[EditTiming, ...] = ()
    after: tuple[AfterFirstEdit, ...] = ()
    hits: tuple[HitSplit, ...] = ()
