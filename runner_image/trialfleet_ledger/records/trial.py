"""The identity of one measurement."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trialfleet_ledger.records.base import Count, Frozen, Name, Seed


class Trial(Frozen):
    """One measurement: task × condition × rep.

    `id` is the first 26 base32 characters (lower case) of the SHA-256 over task, condition, agent, input
    digests and rep.
    `seed` is for the agent: it includes the condition and excludes the attempt. `block` is the launch block,
    `position` its place in it; neither is part of the identity.
    """

    id: Annotated[str, Field(pattern=r"^[a-z2-7]{26}$")]
    task: Name
    condition: Name
    rep: Count
    seed: Seed
    block: Count
    position: Count
