"""A declared trend over conditions of ascending doses: a campaign's one declared test, in place of a contrast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from trialfleet_ledger.designs.declaration import Declaration, Place
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.base import Count, Name

FEWEST, MOST_STEPS = 3, 1000


def _absent(name: str, why: str, hint: str) -> Callable[[Any], None]:
    """Refuses a key of a contrast by its name."""

    def check(value: Any) -> None:
        if value is not None:
            raise FieldError(f"primary: {name} and trend do not go together: {why}", hint=hint)

    return check


NO_LOOKS = "the test of a trend is exact at the end of the campaign alone; no test at looks is specified for it"
NO_MARGIN = "equivalence within a margin is a claim about two conditions"
NO_SIDE = "a trend names all of its conditions, from the lowest dose to the highest"
_KEEP_ONE = "keep trend and doses, or treatment and control"


class TrendPrimary(Declaration):
    """`primary: {trend: […], doses: […]}`. `trend`: conditions, from the lowest dose to the highest; `doses`: of
    each, a whole number; only their distances count. `effect`: the difference of pass rates between the highest
    and the lowest dose that the campaign was planned to see. What belongs to a contrast is refused."""

    field: ClassVar[str] = "trend"

    trend: Annotated[tuple[Name, ...], Field(min_length=FEWEST)]
    doses: tuple[Count, ...]
    estimand: Literal["these_tasks"] = "these_tasks"
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    effect: Annotated[float, Field(gt=0, lt=1)] | None = None
    stop: Annotated[
        None, BeforeValidator(_absent("stop", NO_LOOKS, "remove stop, or declare treatment and control"))
    ] = Field(default=None, exclude=True)
    margin: Annotated[None, BeforeValidator(_absent("margin", NO_MARGIN, "remove margin"))] = Field(
        default=None, exclude=True
    )
    treatment: Annotated[None, BeforeValidator(_absent("treatment", NO_SIDE, _KEEP_ONE))] = Field(
        default=None, exclude=True
    )
    control: Annotated[None, BeforeValidator(_absent("control", NO_SIDE, _KEEP_ONE))] = Field(
        default=None, exclude=True
    )

    @model_validator(mode="after")
    def _doses(self) -> TrendPrimary:
        if len(set(self.trend)) < len(self.trend):
            raise FieldError("primary: trend names a condition twice", hint="name each condition once")
        if len(self.doses) != len(self.trend):
            raise FieldError(
                f"primary: {plural(len(self.trend), 'condition')} in trend, and {len(self.doses)} doses",
                hint="write a dose for each condition, in the same order: doses: [0, 1, 2]",
            )
        if any(b <= a for a, b in pairwise(self.doses)):
            raise FieldError(
                f"primary: doses {list(self.doses)} do not ascend",
                hint="order trend and doses from the lowest to the highest",
            )
        if self.steps[-1] > MOST_STEPS:
            raise FieldError(
                f"primary: doses {list(self.doses)} are {self.steps[-1]} of their common step apart, at most "
                f"{MOST_STEPS} are tested exactly",
                hint="round the doses, such as [300, 700, 1500], or declare their ranks: doses: [0, 1, 2]",
            )
        return self

    @property
    def design(self) -> str:
        return "trend"

    @property
    def planned_effect(self) -> float | None:
        return self.effect

    @property
    def test_alpha(self) -> float:
        return self.alpha

    @property
    def sides(self) -> dict[Place, str]:
        return {("trend", number): name for number, name in enumerate(self.trend)}

    @property
    def reference(self) -> str:
        return self.trend[0]

    def describe(self, reps: int) -> Iterator[tuple[str, str]]:
        shown = ", ".join(f"{name} {dose:,}" for name, dose in zip(self.trend, self.doses, strict=True))
        yield "primary trend", f"over the doses {shown}; these_tasks, α {self.alpha:g}"

    def preview(self, reps: int) -> Iterator[tuple[str, str]]:
        doses = ", ".join(f"{name} {dose}" for name, dose in zip(self.trend, self.doses, strict=True))
        yield "primary", f"trend over the doses {doses}, α = {self.alpha:g}"

    @property
    def steps(self) -> tuple[int, ...]:
        """The doses from 0 on, in their largest common step.

        >>> TrendPrimary(trend=("a", "b", "c"), doses=(300, 700, 1500)).steps
        (0, 1, 3)
        """
        first = self.doses[0]
        step = math.gcd(*(dose - first for dose in self.doses)) or 1
        return tuple((dose - first) // step for dose in self.doses)
