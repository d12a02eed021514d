"""The stage that a lost attempt reached. It decides which retry budget is spent, and a report groups losses by
it."""

from __future__ import annotations

from enum import StrEnum

from trialfleet_ledger.records.attempt import End


class Stage(StrEnum):
    """Decides whether the loss can depend on the outcome and, with the loss's class, which retry budget it spends
    (`retries.budget_of`)."""

    BEFORE_AGENT = "before_agent"  # not informative: the agent had not started
    MID_RUN = "mid_run"  # informative: long runs are lost more often, and failures run longer
    AFTER_PATCH = "after_patch"  # the agent's work is kept; only its scoring is repeated
    UNKNOWN = "unknown"  # its end cannot be read: occurs only in reports


def stage(end: End | None, *, score_only: bool, patched: bool) -> Stage:
    """The stage of an attempt that counts as lost. `score_only`: from its intent; `patched`: its patch is in the
    store, which counts only with the runner's own loss: a zombie's late patch changes nothing.

    A score-only attempt that never started spends no budget either.
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
