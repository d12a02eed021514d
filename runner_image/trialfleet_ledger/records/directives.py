"""Records about a whole campaign that are written while it is driven."""

from __future__ import annotations

from pydantic import model_validator

from trialfleet_ledger.records.base import BoundRecord, Count, Dollars, Moment, Name, ProcessId, Reps, Seconds


class Amendment(BoundRecord):
    """`amendments/<k>.json`: more reps, another cost cap or wall-clock limit (the latest holds), or a halt lifted.
    `epoch`: of the controller that wrote it."""

    number: Count
    at: Moment
    reps: Reps | None = None
    cost_usd_campaign: Dollars | None = None
    wall_clock_s: Seconds | None = None
    after_look: bool = False
    lifts: tuple[Count, ...] = ()  # numbers of halts
    epoch: Count = 0


class Halt(BoundRecord):
    """`halts/<k>.json`: why nothing more of that scope starts: of a task in all conditions, of a condition in all
    tasks, or, without either, of the whole campaign."""

    number: Count
    at: Moment
    task: Name | None = None
    condition: Name | None = None
    reason: str

    @model_validator(mode="after")
    def _one_scope(self) -> Halt:
        if self.task is not None and self.condition is not None:
            raise ValueError("a halt is of a task or of a condition, not of both")
        return self

    @property
    def of_campaign(self) -> bool:
        return self.task is None and self.condition is None

    @property
    def scope(self) -> str:
        """For people."""
        if self.condition is not None:
            return f"condition {self.condition}"
        return "the campaign" if self.task is None else f"task {self.task}"

    def covers(self, task: str, condition: str) -> bool:
        """Whether trials of this cell are halted."""
        return self.task in (None, task) and self.condition in (None, condition)


class Cancel(BoundRecord):
    """`cancel.json`."""

    at: Moment
    now: bool  # True: running attempts are stopped and marked as losses
    by: str


class Look(BoundRecord):
    """`looks/<k>.json`: results were shown before all trials had ended. Counts are of that moment; the numbers
    used `complete_blocks` blocks. An extension after a look is labelled."""

    number: Count
    at: Moment
    planned: Count
    terminal: Count
    complete_blocks: Count
    by: str  # what showed the results


class Epoch(BoundRecord):
    """`epochs/<k>.json`: the controller that drives the campaign. `journal`: how many entries the journal had when
    the controller began."""

    number: Count
    at: Moment
    host: str
    boot_id: str
    pid: ProcessId
    nonce: str
    journal: Count = 0
    machine: str | None = None  # `machine_id`; None: it has none
