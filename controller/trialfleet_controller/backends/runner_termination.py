"""Classifies a runner that has gone without writing an end. Pure; it sees neither the task nor the condition."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from trialfleet_ledger.attempt_ends import EndEvent, loss_of_event
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.records.attempt import End, Intent, Patch
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS, HaltScope, Loss, LossClass, Stop
from trialfleet_ledger.store.full_disk import says_full

_ASKED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@dataclass(frozen=True, slots=True)
class RunnerTermination:
    """How a runner ended: `code` as subprocess has it (−9: killed by signal 9); None: nobody saw it end.

    `words`: the tail of its stderr. `rebooted`: the machine that ran it has restarted since. `unreachable`: it ran
    where this controller cannot look, and its time is over. `named`: the loss as the backend names it, complete
    except for how far the attempt had come. `last_words`: an end that the runner could not write, to be adopted
    unless the ledger has one. `exhausted`: the agent was beyond its limits when its pod was evicted: a verdict.
    `requeued`: no runner of the attempt has begun or can begin; the same attempt is to be launched again.
    """

    code: int | None = None
    words: str = ""
    rebooted: bool = False
    unreachable: bool = False
    named: Loss | None = None
    last_words: End | None = None
    exhausted: bool = False
    requeued: bool = False

    @property
    def unplanned(self) -> Loss | None:
        """Why no attempt may follow and no verdict of this one counts: what ran does not match the plan."""
        return self.named if self.named is not None and self.named.halt is HaltScope.CAMPAIGN else None


def classify(gone: RunnerTermination, *, started: bool, patched: bool) -> Loss:
    """The loss of an attempt without an end. `started`: start.json exists; `patched`: patch.json exists."""
    if gone.named is not None:
        return gone.named.model_copy(update={"agent_started": started, "patched": patched})
    loss, message = _cause(gone)
    permanent = gone.code == RunnerExit.REFUSED and loss is LossClass.SETUP
    words = gone.words.strip()[-MESSAGE_CHARS:]
    return Loss(
        loss=loss,
        message=f"{message}: {words}" if words else message,
        agent_started=started,
        patched=patched,
        halt=HaltScope.CAMPAIGN if permanent else HaltScope.NONE,
    )


def stopped_by_operator(gone: RunnerTermination, why: str) -> RunnerTermination:
    """The termination of a runner that its controller had asked to stop. It counts only if the runner left no
    verdict; what halts the campaign stays what it is."""
    if gone.named is not None or gone.code == RunnerExit.REFUSED:
        return gone
    loss = loss_of_event(EndEvent.OPERATOR_STOP)
    assert loss is not None, "the operator is a witness"
    return replace(gone, named=Loss(loss=loss, message=why, agent_started=False))


def explained(end: End, named: Loss | None) -> End:
    """Last words with the cause that the backend names: a runner that was told to stop does not know why."""
    if named is None or end.loss is None or end.loss.loss is not LossClass.TERMINATED:
        return end
    cause = {"loss": named.loss, "message": named.message, "halt": named.halt, "by_patch": named.by_patch}
    return end.model_copy(update={"loss": end.loss.model_copy(update=cause)})


def exhausted_patch(intent: Intent, at: float) -> Patch:
    """The patch of an agent that was evicted beyond its limits and left none: no change, and why it stopped. The
    next attempt scores it, and so writes the verdict."""
    return Patch(
        trial=intent.trial,
        attempt=intent.attempt,
        nonce=intent.nonce,
        at=at,
        diff="",
        diff_sha256=sha256(b""),
        stop=Stop.DISK,
        metrics=Metrics(),
        delivery=Delivery(),
    )


_BY_CODE: dict[int, tuple[LossClass, str]] = {
    RunnerExit.COMMITTED: (LossClass.RUNNER, "the runner exited 0 and left no end"),
    RunnerExit.REFUSED: (LossClass.SETUP, "no attempt can run there until the operator fixes this"),
    RunnerExit.ANOTHERS: (LossClass.TERMINATED, "another runner held the attempt, and has ended too"),
    RunnerExit.UNANSWERED: (LossClass.STORE, "the store did not answer the runner"),
}


def _cause(gone: RunnerTermination) -> tuple[LossClass, str]:
    if gone.rebooted:
        return LossClass.NODE_LOST, "the machine restarted while the attempt ran"
    if gone.unreachable:
        return LossClass.NODE_LOST, "no end within the attempt's time, on a machine that cannot be reached"
    if says_full(gone.words):
        return LossClass.HOST_FULL, "the host's disk is full"
    if gone.code is None:
        return LossClass.TERMINATED, "the runner was killed, with its controller or alone"
    if gone.code in _BY_CODE:
        return _BY_CODE[gone.code]
    number = -gone.code if gone.code < 0 else gone.code - 128
    if number in set(signal.Signals):
        name = signal.Signals(number).name
        told = "told to stop" if number in _ASKED else "killed"
        return LossClass.TERMINATED, f"the runner was {told} ({name})"
    return LossClass.RUNNER, f"the runner exited {gone.code}"
