"""From what went wrong around an attempt to its loss."""

from __future__ import annotations

from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS, HaltScope, Loss, LossClass
from trialfleet_ledger.store.full_disk import is_full, says_full
from trialfleet_sandbox.watch import free_space

FULL_BYTES, FULL_INODES = 2**20, 200  # less than this is no room


class Lost(Exception):
    """The attempt ends without a verdict. The handler adds whether the agent had started."""

    def __init__(
        self, loss: LossClass, message: str, *, halt: HaltScope = HaltScope.NONE, by_patch: bool = False
    ) -> None:
        self.loss, self.message, self.halt, self.by_patch = loss, message, halt, by_patch
        super().__init__(message)


def from_exception(error: Exception, *, agent_started: bool) -> Loss:
    """The loss for an exception. An `OperatorError` halts the campaign with its own message. An unexpected
    exception halts it as a broken harness, but not after the start of the agent, which may have left what breaks
    us.

    >>> from_exception(OSError(28, "No space left on device"), agent_started=True).loss.value
    'host_full'
    """
    if _says_full(error):
        lost = Lost(LossClass.HOST_FULL, f"the host's disk is full: {error}")
    elif isinstance(error, Lost):
        lost = error
    elif isinstance(error, OperatorError):
        lost = Lost(LossClass.SETUP, str(error), halt=HaltScope.CAMPAIGN)
    else:
        what = f"the runner broke: {type(error).__name__}: {error}"
        lost = Lost(LossClass.RUNNER, what, halt=HaltScope.NONE if agent_started else HaltScope.CAMPAIGN)
    return Loss(
        loss=lost.loss,
        message=storable(lost.message),
        agent_started=agent_started,
        halt=lost.halt,
        by_patch=lost.by_patch,
    )


def refuse_full(folder: Path, room: int = FULL_BYTES) -> None:
    """Before a program runs: raises `Lost(host_full)` if the file system has less than `room` bytes left. If a
    program has the space that its limit promises, the limit stops it, and a full disk is its own fault."""
    why = find_full(folder, room)
    if why is not None:
        raise Lost(LossClass.HOST_FULL, why)


def find_full(folder: Path, room: int = FULL_BYTES) -> str | None:
    """Why the file system of `folder` counts as full: less than `room` bytes are free, or hardly an inode. None:
    it does not."""
    free, inodes = free_space(folder)
    if free < FULL_BYTES or inodes < FULL_INODES:
        return f"the host's disk is full: {folder} has {free} bytes and {inodes} inodes left"
    if free < room:
        words = f"{folder} has {free / 2**20:.0f} MiB left, less than the limit of {room / 2**20:.0f} MiB"
        return f"{words}: free some, or lower limits.disk"
    return None


def storable(text: str) -> str:
    """Text that JSON in UTF-8 can hold: file names need not be UTF-8.

    >>> storable("a\\udcff")
    'a\\\\udcff'
    """
    return text[:MESSAGE_CHARS].encode(errors="backslashreplace").decode()


def _says_full(error: Exception) -> bool:
    """Whether we, or a program that we called, found no room."""
    if isinstance(error, OSError) and is_full(error):
        return True
    if isinstance(error, Lost) and error.loss in {LossClass.PROVIDER, LossClass.CONTAMINATED}:
        return False  # a provider's or a file's words
    return says_full(f"{error} {getattr(error, 'stderr', None) or ''}")
