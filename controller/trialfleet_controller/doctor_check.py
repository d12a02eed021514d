"""What `trialfleet doctor` says of one thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class DoctorCheck:
    """One finding. `missing`: campaigns cannot run. `warning`: they run with a disadvantage. `fix`: what to do."""

    name: str
    result: Result
    found: str
    fix: str | None = None
