"""What steers a campaign from outside: amendments, halts, the wish to cancel, and who has looked."""

from __future__ import annotations

from trialfleet_controller import keys
from trialfleet_controller.records import Records
from trialfleet_runner.campaign import Amendment, Cancel, Halt, Look


class Directives(Records):
    """The numbered records of one campaign, and its `cancel.json`."""

    def amendments(self) -> tuple[Amendment, ...]:
        return self._all("amendments", Amendment)

    def amend(
        self, *, reps: int | None, after_look: bool, lifts: tuple[int, ...], cost_usd: float | None = None
    ) -> Amendment:
        def record(number: int) -> Amendment:
            return Amendment(
                number=number,
                at=self._clock(),
                reps=reps,
                cost_usd_campaign=cost_usd,
                after_look=after_look,
                lifts=lifts,
                epoch=epoch,
            )

        epoch = max(map(keys.number_of, self._numbers("epochs")), default=0)
        return self._append("amendments", "amendment", record)

    def looks(self) -> int:
        return len(self._numbers("looks"))

    def look(self, *, planned: int, terminal: int, complete_blocks: int, by: str) -> None:
        """Somebody saw results before all were in. One record per state seen: looking twice at the same numbers is
        one look."""

        def record(number: int) -> Look:
            return Look(
                number=number,
                at=self._clock(),
                planned=planned,
                terminal=terminal,
                complete_blocks=complete_blocks,
                by=by,
            )

        found = self._numbers("looks")
        newest = self._read(found[-1], Look) if found else None
        if newest is None or (newest.terminal, newest.complete_blocks) != (terminal, complete_blocks):
            self._append("looks", "look", record)

    def halts(self) -> tuple[Halt, ...]:
        """Those in force: a lifted one is history."""
        lifted = {number for amendment in self.amendments() for number in amendment.lifts}
        return tuple(halt for halt in self._all("halts", Halt) if halt.number not in lifted)

    def halt_known(self, task: str | None, *, epoch: int) -> bool:
        """Whether a halt of this scope is in force, or one was lifted by a later controller than that of `epoch`.
        Clocks of controllers and runners do not agree, so no times are compared."""
        lifted = {number: amendment.epoch for amendment in self.amendments() for number in amendment.lifts}
        return any(
            halt.number not in lifted or lifted[halt.number] > epoch
            for halt in self._all("halts", Halt)
            if halt.task == task
        )

    def halt(self, task: str | None, reason: str) -> Halt:
        def record(number: int) -> Halt:
            return Halt(number=number, at=self._clock(), task=task, reason=reason)

        return self._append("halts", "halt", record)

    def cancelled(self) -> Cancel | None:
        now = self._read(keys.cancel(self.campaign, now=True), Cancel)
        return now or self._read(keys.cancel(self.campaign), Cancel)

    def cancel(self, *, now: bool, by: str) -> Cancel:
        wanted = Cancel(at=self._clock(), now=now, by=by)
        if not self._create("cancel", keys.cancel(self.campaign), wanted) and now:
            there = self._read(keys.cancel(self.campaign), Cancel)
            if there is not None and not there.now:
                self._create("cancel", keys.cancel(self.campaign, now=True), wanted)
        return self.cancelled() or wanted
