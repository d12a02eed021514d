"""How plans are simulated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """How the plan is simulated. `power`: the goal."""

    power: float
    alpha: float
    simulations: int
    seed: int
