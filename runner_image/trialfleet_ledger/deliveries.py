"""Which deliveries reach the model of a planned agent: as its adapter declares, and as a check measured. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, model_validator

from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.records.base import Frozen


class PlannedDeliveries(Frozen):
    """name of a delivery -> whether it reaches the model. `measured`: by `trialfleet agents check`, of this
    version; None: it was not run where the campaign was planned. `root_files`: every name of a root file that the
    check saw reach the model. `also_differ`: what the first request of a run with a delivery differs in from that
    of one without, apart from the delivered text; a delivery that was not compared is not in it."""

    kind: str
    version: str
    declared: dict[str, bool]
    measured: dict[str, bool] | None = None
    root_files: tuple[str, ...] = ()
    also_differ: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _same_names(self) -> PlannedDeliveries:
        if self.measured is not None and self.measured.keys() != self.declared.keys():
            raise FieldError("measured and declared deliveries have other names", hint="measure them again")
        return self

    @property
    def agent(self) -> str:
        return f"{self.kind} {self.version}"

    @property
    def differing(self) -> tuple[str, ...]:
        """Deliveries that were measured to behave otherwise than declared, in words.

        >>> hooks = {"root file": True, "hook": True}
        >>> PlannedDeliveries(
        ...     kind="codex", version="1", declared=hooks, measured={**hooks, "hook": False}
        ... ).differing
        ('hook: declared to reach the model, measured not to',)
        """
        measured = self.measured or self.declared
        return tuple(
            f"{name}: declared to reach the model, measured not to"
            if reaches
            else f"{name}: declared not to reach the model, measured to"
            for name, reaches in self.declared.items()
            if measured[name] is not reaches
        )

    def doubts(self) -> Iterator[str]:
        """What somebody who relies on its deliveries must know; nothing when all were measured as declared."""
        if self.measured is None:
            yield (
                f"{self.agent}: which deliveries reach its model was not measured before the campaign was planned "
                f"(`trialfleet agents check {self.kind}`)"
            )
        for one in self.differing:
            yield f"{self.agent}: {one}"
