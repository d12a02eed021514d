"""A declared contrast of two conditions: at a fixed end, at looks, without a fixed end, or after a halving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from trialfleet_ledger.conditions import PRESETS
from trialfleet_ledger.designs.declaration import Declaration, NamedCondition, Place
from trialfleet_ledger.designs.halving import TREATMENTS, halving_block
from trialfleet_ledger.designs.looks import (
    AnytimeRule,
    StageCounts,
    StopDeclaration,
    StopRule,
    count_sides,
    read_margin,
)
from trialfleet_ledger.designs.schedules import AfterEachBlock, AtHalving, AtLooks, LookSchedule
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.records.base import Name
from trialfleet_ledger.records.outcome import Outcome


class Primary(Declaration):
    """The one declared contrast. `margin`: a difference of pass rates too small to matter, either way; declared,
    it is tested for. `effect`: the difference that the campaign was planned to see; its power is reported. `stop`:
    when it is looked at, and may end early; None: it runs to its end. `halve`: of four treatments, two go on after
    40% of the blocks, `treatment` one of them, and each is tested at alpha / 4. `estimand`: what is claimed: of
    these tasks; of tasks like these, of the repositories that they come from; or of other repositories."""

    field: ClassVar[str] = "primary"

    treatment: Name
    control: Name
    estimand: Literal["these_tasks", "tasks_like_these", "other_repositories"] = "these_tasks"
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    margin: Annotated[float, Field(gt=0, lt=1), BeforeValidator(read_margin)] | None = None
    effect: Annotated[float, Field(gt=0, lt=1)] | None = None
    stop: StopDeclaration | None = None
    halve: bool = False

    @property
    def reach(self) -> Literal["these_tasks", "tasks_like_these"]:
        """Whether these tasks alone are judged, or others by them: like these, of their repositories or of other
        ones."""
        return "these_tasks" if self.estimand == "these_tasks" else "tasks_like_these"

    @property
    def schedule(self) -> LookSchedule | None:
        if self.halve:
            return AtHalving()
        if self.stop is None:
            return None
        return AfterEachBlock(self.stop) if isinstance(self.stop, AnytimeRule) else AtLooks(self.stop, self.alpha)

    @property
    def tested(self) -> Primary:
        """With the alpha of a single test."""
        return self.model_copy(update={"alpha": self.alpha / TREATMENTS}) if self.halve else self

    @property
    def design(self) -> str:
        if self.halve:
            return "halving"
        return "fixed" if self.stop is None else "anytime" if isinstance(self.stop, AnytimeRule) else "looks"

    @property
    def planned_effect(self) -> float | None:
        return self.effect

    @property
    def test_alpha(self) -> float:
        return self.alpha

    @property
    def sides(self) -> dict[Place, str]:
        return {("treatment",): self.treatment, ("control",): self.control}

    @property
    def anytime(self) -> AnytimeRule | None:
        """The rule of a campaign without a fixed end; None: it has one."""
        return self.stop if isinstance(self.stop, AnytimeRule) else None

    @model_validator(mode="after")
    def _halving(self) -> Primary:
        if self.halve and self.stop is not None:
            raise FieldError(
                "primary: halve and stop: what the two do together has not been simulated",
                hint="remove stop, with its looks, drop_saturated and reestimate, or remove halve",
            )
        if self.halve and self.estimand != "these_tasks":
            raise FieldError(
                "primary: halve needs estimand: these_tasks: halving has been simulated for its test alone",
                hint="write estimand: these_tasks, or remove halve",
            )
        return self

    @model_validator(mode="after")
    def _looks(self) -> Primary:
        if self.stop is None:
            return self
        if self.estimand != "these_tasks":
            raise FieldError(
                "primary: stop needs estimand: these_tasks, whose test at looks is exact; early stopping for "
                "tasks_like_these is not offered yet, and below seven tasks it would reject too often",
                hint="write estimand: these_tasks, or remove stop",
            )
        if isinstance(self.stop, AnytimeRule):
            return self._bets(self.stop)
        return self._at_looks(self.stop)

    def _at_looks(self, stop: StopRule) -> Primary:
        rule = stop.futility
        if rule != "none" and rule.conditional is not None and self.effect is None:
            raise FieldError(
                "primary: futility: conditional is the power at the declared effect, and none is declared",
                hint="write effect: 0.1 (a difference of pass rates), or futility: {predictive: 0.05}",
            )
        if stop.reestimate is not None and self.effect is None:
            raise FieldError(
                "primary: stop: reestimate computes the reps for the declared effect, and none is declared",
                hint="write effect: 0.1 (a difference of pass rates), or remove reestimate",
            )
        return self

    def _bets(self, rule: AnytimeRule) -> Primary:
        if rule.anytime == "half" and self.effect is None:
            raise FieldError(
                "primary: stop: anytime: half bets for the declared effect, and none is declared",
                hint="write effect: 0.1 (a difference of pass rates), or stop: {anytime: mixture}",
            )
        return self

    def describe(self, reps: int) -> Iterator[tuple[str, str]]:
        sides = f"{self.treatment} − {self.control}"
        yield "primary contrast", f"{sides}, {self.estimand}, α {self.alpha:g}"
        if self.halve:
            yield "halving", f"after block {halving_block(reps)}; every test at α {self.tested.alpha:g}"

    def preview(self, reps: int) -> Iterator[tuple[str, str]]:
        yield "primary", f"{self.treatment} − {self.control}, {self.estimand}, α = {self.alpha:g}"
        if self.halve:
            left = f"two of the treatments are left out after block {halving_block(reps)}"
            yield "halving", f"{left}; each that is left is tested at α = {self.tested.alpha:g}"

    def count_stage(self, task: str, outcomes: Sequence[Outcome]) -> StageCounts:
        return count_sides(task, outcomes, self.treatment, self.control)

    def check_campaign(self, conditions: Sequence[NamedCondition], reps: int) -> None:
        if isinstance(self.stop, StopRule):
            self.stop.check_last_look(reps)
            self.stop.check_changes(reps)
        self._check_halving(conditions, reps)
        if self.treatment == self.control:
            raise FieldError(
                "primary: treatment and control are the same condition",
                hint="name two conditions, or remove `primary`",
            )

    def _check_halving(self, conditions: Sequence[NamedCondition], reps: int) -> None:
        """Simulated for four treatments and their control, after 40% of the blocks, and for nothing else."""
        if not self.halve:
            return
        others = [(name, own) for name, own in conditions if name != self.control]
        ceilings = [name for name, own in others if (own or PRESETS[name]).ceiling]
        if len(others) != TREATMENTS or ceilings:
            found = f"{ceilings[0]} knows the fix" if ceilings else f"there are {len(others)}"
            raise FieldError(
                f"primary: halve needs exactly {TREATMENTS} treatments beside the control {self.control}, none "
                f"of which knows the fix: {found}",
                hint="change the conditions, or remove halve: other numbers have not been simulated",
            )
        if not halving_block(reps):
            raise FieldError("primary: halve needs 2 reps or more", hint="raise reps, or remove halve")
