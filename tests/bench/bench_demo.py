"""How often `make demo` ends decided: campaigns of its two files, simulated at the agent's measured pass rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.bench.figure import Figure
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_designs.monitoring import design_of, futility_of
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.comparisons import equivalence
from trialfleet_statistics.estimates import Floats, Integers
from trialfleet_statistics.sequential.simulated_looks import SimulatedStops, simulated_stops

QUICKSTART = Path(__file__).parents[2] / "tasks" / "quickstart"
# Passed of so many trials under these campaigns' agent and turns, measured apart from the campaigns themselves.
MEASURED = {
    "markdown-abbr-override-unknown": {"none": (8, 8), "pointer": (8, 8)},
    "sqlparse-aligned-case-without-end": {"none": (4, 16), "pointer": (16, 16)},
}
OF_PLACEBO = ((8, 8), (0, 32))  # of both tasks within its campaign's turns, under none and placebo together
SIMULATED = 20_000
EQUIVALENCES = 2_000


def measure() -> list[Figure]:
    measured, cautious = _stops(_rates(0.0)), _stops(_rates(0.5))
    note = f"{SIMULATED:,} campaigns at the rates of 48 trials"
    return [
        Figure("demo: power at the measured rates", _power(measured), "", note=note, floor=0.95),
        Figure("demo: power, half a pass and half a failure added to each cell", _power(cautious), "", floor=0.95),
        Figure(
            "demo: campaigns that stop before their last look", float(np.mean(measured.look < 5)), "", floor=0.95
        ),
        Figure("demo: mean trials of its contrast", float(np.mean(measured.trials)), ""),
        Figure("demo-placebo: no larger than the margin", _equivalent(), "", note=f"{EQUIVALENCES:,} campaigns"),
    ]


def _rates(added: float) -> Floats:
    """Shape (tasks, 2): pointer and none. `added`: passes and failures beyond what was measured."""
    cells = [[of[name] for name in ("pointer", "none")] for of in MEASURED.values()]
    return np.array([[(x + added) / (n + 2 * added) for x, n in row] for row in cells])


def _spec(name: str) -> tuple[CampaignSpec, Primary]:
    spec = load_campaign(QUICKSTART / name).spec
    assert isinstance(spec.primary, Primary)
    return spec, spec.primary


def _stops(rates: Floats) -> SimulatedStops:
    spec, primary = _spec("demo.yaml")
    design, rng = design_of(primary, spec.reps), np.random.default_rng(1)
    stages = np.array([design.stage(number) for number in range(1, len(design.looks) + 1)])[:, None]
    a, b = (rng.binomial(stages, rates[:, side], (SIMULATED, len(stages), len(rates))) for side in (0, 1))
    return simulated_stops(design, a, b, futility_of(primary), 0)


def _power(stops: SimulatedStops) -> float:
    return float(np.mean(stops.crossed == 1))


def _equivalent() -> float:
    """Both sides have the same rates: the agent takes nothing from the placebo."""
    spec, primary = _spec("placebo.yaml")
    assert primary.margin is not None
    rates, rng = np.array([(x + 0.5) / (n + 1) for x, n in OF_PLACEBO]), np.random.default_rng(1)
    passes: Integers = rng.binomial(spec.reps, rates, (EQUIVALENCES, 2, len(rates)))
    valid = [spec.reps] * len(rates)
    found = [
        equivalence(a, valid, b, valid, margin=primary.margin, alpha=primary.alpha).p_value for a, b in passes
    ]
    return float(np.mean([p is not None and p <= primary.alpha for p in found]))
