"""How long an attempt may take, and how long its grants hold. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from trialfleet_ledger.campaign_spec import Graces
from trialfleet_ledger.plan import KubernetesPlan
from trialfleet_ledger.records.agent import AgentSpec, Limits, longest_attempt_s

AFTER_S = 1800.0  # beyond the longest time of an attempt


class AttemptSettings(Protocol):
    """What all attempts of a campaign have in common: its frozen plan, or what its file says before that."""

    @property
    def campaign(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def agent_specs(self) -> tuple[AgentSpec, ...]: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def kubernetes(self) -> KubernetesPlan | None: ...


def attempt_deadline_s(plan: AttemptSettings) -> float:
    """No attempt of the plan takes longer."""
    return max(longest_attempt_s(agent, plan.limits) for agent in plan.agent_specs)


def grants_expire_s(plan: AttemptSettings) -> float:
    """How long a runner's signatures hold: they are made at the launch, and a pod may be pending for a long
    time."""
    kube = plan.kubernetes
    pending_s = 0.0 if kube is None else _longest_pending_s(kube.graces)
    queued_s = 0.0 if kube is None or kube.queue is None else kube.graces.queued_s
    return queued_s + pending_s + attempt_deadline_s(plan) + AFTER_S


class Validity(NamedTuple):
    """How long the grants that a pod got at its creation are of use, in seconds.

    `queued_s`: a pod that a queue holds back for longer is deleted while its grants still cover an attempt.
    `expires_s`: a runner that starts later can do nothing.
    """

    queued_s: float = math.inf
    expires_s: float = math.inf


FOREVER = Validity()


def validity(plan: AttemptSettings) -> Validity:
    """A pod may be held back although its campaign names no queue: then only the slack covers its wait."""
    kube = plan.kubernetes
    if kube is None:
        return FOREVER
    slack_s = AFTER_S / 4  # the launch itself may take half of `AFTER_S`
    return Validity(slack_s if kube.queue is None else kube.graces.queued_s, grants_expire_s(plan))


def _longest_pending_s(graces: Graces) -> float:
    return max(graces.pending_s, graces.unschedulable_s, graces.image_pull_s, graces.config_error_s)
