"""What every record has in common.

Every record is frozen, refuses unknown keys and carries its schema version. Times are seconds since the
epoch (UTC, float), durations seconds, sizes bytes, money US dollars. JSON Schemas are in `docs/reference/schema/`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal[1] = 1
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# Bounds of numbers that people write: beyond them a number is a slip, and a loop over it would never end.
Reps = Annotated[int, Field(ge=1, le=100_000)]
BoundedCount = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=10_000_000)]  # 115 days
# Of numbers that programs write into a store: what every reader can count with, and every clock can show.
LARGEST_COUNT = 2**53
Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
Ordinal = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
ProcessId = Annotated[int, Field(ge=0, lt=2**31)]
Moment = Annotated[float, Field(ge=0, le=253_402_214_400)]  # the last day of the year 9999
Probability = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Whole = Annotated[int, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]
Number = Annotated[float, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]
Dollars = Annotated[float, Field(gt=0, le=1e9)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class Frozen(BaseModel):
    """Base of every value that crosses a border."""

    # Schemas are built on first use: a process uses few of them, and building all costs 0.2 s
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def build_models(base: type[Frozen]) -> None:
    """Build the validators of the subclasses of `base` that are imported, which wait for their first use."""
    for model in base.__subclasses__():
        model.model_rebuild()
        build_models(model)


class Record(Frozen):
    """Base of every stored file."""

    schema_version: Literal[1] = SCHEMA


class BoundRecord(Record):
    """Base of every record of a campaign but its plan. `plan`: the SHA-256 of `campaign.json`; None: no campaign
    wrote the record."""

    plan: Sha256 | None = None
