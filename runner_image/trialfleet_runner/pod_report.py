"""What a pod of an image contains and reaches, as `trialfleet-pod probe` reports it to the planner."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trialfleet_agents.protocol import Identity
from trialfleet_ledger.records.base import Frozen, Sha256
from trialfleet_ledger.store.probe import StoreCheck


class CanaryAddress(Frozen):
    """One address of the canary. `unresolved`: its name means nothing here, which proves nothing. `at_first`: it
    was reached, and is not any more."""

    address: str
    answer: Literal["refused", "timeout", "connected", "unresolved"]
    at_first: bool = False


class ProbedAgent(Frozen):
    """One of the campaign's agents. `error`: why there is none; `model_error`: why it has no key for its model."""

    identity: Identity | None = None
    error: str | None = None
    model_error: str | None = None


class PodProbeReport(Frozen):
    """One line of JSON. What was not asked for is empty or None."""

    versions: dict[str, str]
    texts: Sha256  # of the texts that this image has for models
    uv: bool
    baked: dict[str, str] = Field(default_factory=dict)  # recipe -> version of its Python or tools
    agents: tuple[ProbedAgent, ...] = ()  # in the order in which they were asked for
    threads: int | None = None  # how many could be started; None: as many as were tried
    user: str | None = None  # the name of this pod's uid in the image; None: it has none
    store: tuple[StoreCheck, ...] = ()
    store_error: str | None = None
    canary: tuple[CanaryAddress, ...] = ()
    network: Literal["enforced", "unenforced"] | None = None
    kubelet: CanaryAddress | None = None  # of this pod's node, which a policy need not refuse
