"""From what went wrong around an attempt to its loss."""

from __future__ import annotations

import errno

from trialfleet_runner.contract import HaltScope, Loss, LossClass


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
    if isinstance(error, Lost):
        return Loss(loss=error.loss, message=error.message, agent_started=agent_started, halt=error.halt)
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Loss(
            loss=LossClass.HOST_FULL, message=f"the host's disk is full: {error}", agent_started=agent_started
        )
    return Loss(
        loss=LossClass.RUNNER,
        message=f"the runner broke: {type(error).__name__}: {error}"[:2000],
        agent_started=agent_started,
        halt=HaltScope.CAMPAIGN,
    )
