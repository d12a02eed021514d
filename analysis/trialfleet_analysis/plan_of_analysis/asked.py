"""Contrasts that somebody asks for beyond the plan: checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trialfleet_analysis.plan_of_analysis.composition import compose, refuse_aliased
from trialfleet_runner.conditions import Condition
from trialfleet_runner.errors import OperatorError

OPTION = "--contrast"


def checked_contrasts(
    asked: Sequence[str], composed: Mapping[str, Condition], *, packages: bool
) -> tuple[tuple[str, str], ...]:
    """TREATMENT:CONTROL, each, as pairs of the campaign's conditions (`composed`).

    Raises `OperatorError` for what is no pair, for a condition that the campaign does not have, and, unless
    `packages`, for two conditions that differ in more than one delivery, with the condition that is missing. The
    *declared* contrast is never refused: its campaign has been paid for, so its report says aloud what is
    confounded instead.
    """
    pairs = tuple(_pair(text, composed) for text in asked)
    if not packages:
        for treatment, control in pairs:
            found = compose(composed[treatment], composed[control], composed)
            refuse_aliased(treatment, control, found, where=f"{OPTION} {treatment}:{control}")
    return pairs


def _pair(text: str, composed: Mapping[str, Condition]) -> tuple[str, str]:
    parts = text.split(":")
    if len(parts) != 2 or parts[0] == parts[1]:
        raise OperatorError(
            "two different conditions are wanted, TREATMENT:CONTROL",
            where=f"{OPTION} {text}",
            hint=f"choose two of {', '.join(composed)}",
        )
    for name in parts:
        if name not in composed:
            raise OperatorError(
                f"the campaign has no condition {name!r}",
                where=f"{OPTION} {text}",
                hint=f"choose two of {', '.join(composed)}",
            )
    return parts[0], parts[1]
