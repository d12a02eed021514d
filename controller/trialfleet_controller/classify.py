"""What it means that a runner is gone and left no end. Pure and condition-blind: it sees no task, no condition."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from trialfleet_runner.contract import End, HaltScope, Loss, LossClass

MESSAGE_LIMIT = 2000  # characters of a runner's last words that travel into the ledger

_ASKED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_UNANSWERED = 75  # EX_TEMPFAIL: the runner's word for a store that did not answer
_ANOTHERS = 3  # the runner's word for an attempt that another runner has claimed
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


@dataclass(frozen=True, slots=True)
class Departure:
    """How a runner went: `code` as subprocess has it (−9: killed by signal 9), None when nobody saw it go.

    `words`: the tail of what it wrote to stderr. `rebooted`: the machine that ran it has restarted since.
    `unreachable`: it ran where this controller cannot look, and its time is over. `named`: what the place that ran
    it says itself, complete but for how far the attempt had come. `last_words`: an end that the runner could not
    write, to be adopted unless the ledger has one.
    """

    code: int | None = None
    words: str = ""
    rebooted: bool = False
    unreachable: bool = False
    named: Loss | None = None
    last_words: End | None = None

    @property
    def unplanned(self) -> Loss | None:
        """Why no attempt may follow, and no verdict of this one counts: what ran is not what the plan has."""
        return self.named if self.named is not None and self.named.halt is HaltScope.CAMPAIGN else None


def classify(gone: Departure, *, started: bool, patched: bool) -> Loss:
    """The loss of an attempt without an end. `started`: start.json exists; `patched`: patch.json exists."""
    if gone.named is not None:
        return gone.named.model_copy(update={"agent_started": started, "patched": patched})
    loss, message = _cause(gone)
    words = gone.words.strip()[-MESSAGE_LIMIT:]
    return Loss(
        loss=loss,
        message=f"{message}: {words}" if words else message,
        agent_started=started,
        patched=patched,
    )


def _cause(gone: Departure) -> tuple[LossClass, str]:
    if gone.rebooted:
        return LossClass.NODE_LOST, "the machine restarted while the attempt ran"
    if gone.unreachable:
        return LossClass.NODE_LOST, "no end within the attempt's time, on a machine that cannot be reached"
    if any(text in gone.words for text in _FULL):
        return LossClass.HOST_FULL, "the host's disk is full"
    if gone.code is None:
        return LossClass.TERMINATED, "the runner was killed, with its controller or alone"
    if gone.code == _UNANSWERED:
        return LossClass.STORE, "the store did not answer the runner"
    if gone.code == _ANOTHERS:
        return LossClass.TERMINATED, "another runner held the attempt, and has gone as well"
    if gone.code == 0:
        return LossClass.RUNNER, "the runner exited 0 and left no end"
    number = -gone.code if gone.code < 0 else gone.code - 128
    if number in set(signal.Signals):
        name = signal.Signals(number).name
        told = "told to stop" if number in _ASKED else "killed"
        return LossClass.TERMINATED, f"the runner was {told} ({name})"
    return LossClass.RUNNER, f"the runner exited {gone.code}"
