"""What the default plan of analysis finds in one campaign."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_analysis.report.document.contrasts import (
    Contrast,
    Declared,
    Equivalence,
    Family,
    Screen,
    Subgroups,
)
from trialfleet_analysis.report.document.measures import (
    CostPerPass,
    CostRatio,
    Distribution,
    Incidence,
    MeasureContrast,
    TimeToPass,
)
from trialfleet_analysis.report.document.missing import LossTest, Robustness, Sensitivity
from trialfleet_analysis.report.document.outlook import DriftCheck, Method, Outlook, Repeats
from trialfleet_analysis.report.document.timing import Timing


@dataclass(frozen=True)
class Analysis:
    """`contrasts`: the declared primary first, then the others, each in both estimands; `families` names what was
    corrected together. `monitored`: blocks were still open, so no p-value here is valid as it stands. What
    needs a declared primary (equivalence, subgroups, robustness, sensitivities) is empty without one.
    """

    declared: Declared | None
    monitored: bool
    contrasts: tuple[Contrast, ...]
    families: tuple[Family, ...]
    equivalence: tuple[Equivalence, ...]
    subgroups: tuple[Subgroups, ...]
    screens: tuple[Screen, ...]
    robustness: tuple[Robustness, ...]
    sensitivities: tuple[Sensitivity, ...]
    loss_test: LossTest
    measures: tuple[MeasureContrast, ...]
    costs: tuple[CostPerPass, ...]
    cost_ratios: tuple[CostRatio, ...]
    incidence: tuple[Incidence, ...]
    time_to_pass: tuple[TimeToPass, ...]
    distributions: tuple[Distribution, ...]
    timing: Timing
    drift: tuple[DriftCheck, ...]
    outlook: Outlook
    repeats: tuple[Repeats, ...]
    methods: tuple[Method, ...]
