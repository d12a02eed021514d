"""From what went wrong around an attempt to its loss."""

from __future__ import annotations

import errno

from trialfleet_runner.contract import HaltScope, Loss, LossClass

MESSAGE_CHARS = 2000
_FULL = ("No space left on device", "Disk quota exceeded")  # as programs that we call put it


class Lost(Exception):
    """The attempt ends without a verdict. Whether the agent had started is added where it is known."""

    def __init__(self, loss: LossClass, message: str, *, halt: HaltScope = HaltScope.NONE) -> None:
        self.loss, self.message, self.halt = loss, message, halt
        super().__init__(message)


def from_exception(error: Exception, *, agent_started: bool) -> Loss:
    """The loss that an exception stands for. An unexpected one is a broken harness: it halts the campaign.

    >>> from_exception(OSError(28, "No space left on device"), agent_started=True).loss.value
    'host_full'
    """
    if _says_full(error):
        lost = Lost(LossClass.HOST_FULL, f"the host's disk is full: {error}")
    elif isinstance(error, Lost):
        lost = error
    else:
        what = f"the runner broke: {type(error).__name__}: {error}"
        lost = Lost(LossClass.RUNNER, what, halt=HaltScope.CAMPAIGN)
    return Loss(loss=lost.loss, message=storable(lost.message), agent_started=agent_started, halt=lost.halt)


def storable(text: str) -> str:
    """Text that JSON in UTF-8 can hold: file names need not be UTF-8.

    >>> storable("a\\udcff")
    'a\\\\udcff'
    """
    return text[:MESSAGE_CHARS].encode(errors="backslashreplace").decode()


def _says_full(error: Exception) -> bool:
    """Whether we, or a program that we called, found no room."""
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return True
    if isinstance(error, Lost) and error.loss in {LossClass.PROVIDER, LossClass.CONTAMINATED}:
        return False  # a provider's or a file's words
    said = f"{error} {getattr(error, 'stderr', None) or ''}"
    return any(words in said for words in _FULL)
