"""How far a lost attempt had come: by it the controller spends its retries, and a report explains losses."""

from __future__ import annotations

from enum import StrEnum

from trialfleet_runner.contract import End


class Stage(StrEnum):
    """Each has a retry budget of its own, because it decides whether the loss can depend on the outcome."""

    BEFORE_AGENT = "before_agent"  # free of information: nothing had been tried
    MID_RUN = "mid_run"  # informative: long runs are lost more often, and failures run longer
    AFTER_PATCH = "after_patch"  # the agent's work is kept; only its scoring is repeated
    UNKNOWN = "unknown"  # its end cannot be read: only reports meet that


def stage(end: End | None, *, score_only: bool, patched: bool) -> Stage:
    """Of an attempt that counts as lost. `score_only`: as its intent says; `patched`: its patch is in the store,
    which counts beside the runner's own loss alone: a zombie's late patch changes nothing.

    A score-only attempt that never started has cost nothing either.
    """
    if end is None:
        return Stage.UNKNOWN
    if end.loss is None:
        return Stage.AFTER_PATCH  # a verdict whose bundle was quarantined
    by_runner = end.by == "runner"
    if score_only:
        return Stage.AFTER_PATCH if by_runner or end.loss.agent_started else Stage.BEFORE_AGENT
    if end.loss.patched or (by_runner and patched):
        return Stage.AFTER_PATCH
    return Stage.MID_RUN if end.loss.agent_started else Stage.BEFORE_AGENT
