"""Every agent kind of the registry: what is pinned, what is installed here, what is declared and was measured."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_agents.agent_check.delivery_matrix import DeliveryMatrix
from trialfleet_agents.agent_check.kept_matrix import kept
from trialfleet_agents.pinned import pinned
from trialfleet_agents.protocol import Identity
from trialfleet_agents.registry import ANY_PROGRAM, KINDS, agent, find_kind
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import Frozen
from trialfleet_repository.cache import Cache


class KnownAgent(Frozen):
    """`pinned` and `install`: None for a kind that comes with trialfleet, or that is any program. `installed`: the
    version on this machine; None: there is none, for the reason in `missing`. `measured`: by `trialfleet agents
    check` on this machine, of the version that is installed."""

    kind: str
    pinned: str | None
    install: str | None
    installed: str | None
    missing: str | None
    measured: DeliveryMatrix | None
    reach: Reach

    @property
    def measurement(self) -> str | None:
        """Whether what was measured is what is declared; None: nothing was measured."""
        if self.measured is None:
            return None
        return "differs" if self.measured.differing(self.reach) else "as declared"


def known_agents(cache: Cache) -> Iterator[KnownAgent]:
    """In the registry's order; each installed program is asked for its version."""
    for kind in KINDS:
        pin = pinned().get(kind)
        identity, missing = (None, None) if kind == ANY_PROGRAM else _identified(kind)
        yield KnownAgent(
            kind=kind,
            pinned=pin.version if pin else None,
            install=pin.install() if pin else None,
            installed=identity.version if identity else None,
            missing=missing,
            measured=kept(cache, identity) if identity else None,
            reach=agent(kind).reach,
        )


def _identified(kind: str) -> tuple[Identity | None, str | None]:
    calls = find_kind(kind).tool_calls
    model = None if calls is None else calls.model
    try:
        return agent(kind).identify(AgentSpec(kind=kind, model=model)), None
    except OperatorError as error:
        return None, error.message
