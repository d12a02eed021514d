"""The designs that a campaign file may declare, by a key that tells each from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.declaration import Declaration
from trialfleet_ledger.designs.metric import MetricPrimary
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.registered_union import RegisteredUnion

CONTRAST = "treatment"
# A package that brings a design adds it here before a campaign file is read.
DECLARATIONS: dict[str, type[Declaration]] = {
    CONTRAST: Primary,
    "question": QuestionPrimary,  # before metric, which it may have
    "metric": MetricPrimary,
    "trend": TrendPrimary,
}


def tag_design(value: Any) -> str:
    """Which design is meant, so that errors are about that one alone: a contrast, if no other key is there."""
    others = [key for key in DECLARATIONS if key != CONTRAST]
    if isinstance(value, Mapping):
        return _tag(next((key for key in others if key in value), CONTRAST))
    return _tag(next((key for key in others if isinstance(value, DECLARATIONS[key])), CONTRAST))


def _tag(key: str) -> str:
    """Not the key itself, which may be a part of an error's place in the file."""
    return f"the design of {key}"


def _tagged() -> dict[str, type[Declaration]]:
    return {_tag(key): model for key, model in DECLARATIONS.items()}


AnyDeclaration = Annotated[Declaration, RegisteredUnion(_tagged, tag_design)]
