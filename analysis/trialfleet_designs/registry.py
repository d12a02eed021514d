"""The designs, by the names that declarations give."""

from __future__ import annotations

from typing import Any, TypeAlias

from trialfleet_designs.anytime.design import AnytimeDesign
from trialfleet_designs.halving.design import HalvingDesign
from trialfleet_designs.joint.design import JointDesign
from trialfleet_designs.looks.design import LooksDesign
from trialfleet_designs.metric.design import MetricDesign
from trialfleet_designs.protocol import Design
from trialfleet_designs.question.design import QuestionDesign
from trialfleet_designs.trend.design import TrendDesign
from trialfleet_ledger.designs.declaration import Declaration

AnyDesign: TypeAlias = Design[Any, Any]
# A contrast at a fixed end, and a campaign that declares nothing: what every report has.
FIXED: AnyDesign = Design()
# In the order in which report.json names what they find. A package that brings a design adds it here.
DESIGNS: dict[str, AnyDesign] = {
    "fixed": FIXED,
    "looks": LooksDesign(),
    "anytime": AnytimeDesign(),
    "trend": TrendDesign(),
    "question": QuestionDesign(),
    "metric": MetricDesign(),
    "joint": JointDesign(),
    "halving": HalvingDesign(),
}


def find_design(declared: Declaration | None) -> AnyDesign:
    """Of what a campaign declares; None: nothing."""
    return FIXED if declared is None else DESIGNS[declared.design]
