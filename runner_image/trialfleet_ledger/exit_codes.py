"""Every exit code of our programs. docs/reference/exit-codes.md says the same for people."""

from __future__ import annotations

from enum import IntEnum


class CommandExit(IntEnum):
    """Of the `trialfleet` command."""

    DONE = 0  # of `run` and `resume`: every planned trial is measured
    BUG = 1  # the interpreter's own, after a traceback
    OPERATOR = 2  # what the operator can fix
    NOT_COMPLETE = 3  # `run` and `resume`: the campaign is over, and trials of it are not measured
    INTERRUPTED = 130  # Ctrl-C, as shells have it: 128 + SIGINT
    OUTPUT_CLOSED = 141  # the reader of the output has gone, as with `| head`: 128 + SIGPIPE


class RunnerExit(IntEnum):
    """Of the process that runs one attempt. The controller uses it only if the ledger has no end."""

    COMMITTED = 0  # an end is in the ledger, written by this process or before it
    BUG = 1  # the interpreter's own, after a traceback
    REFUSED = 2  # only the operator can fix it, and every other attempt would end alike: the campaign halts
    ANOTHERS = 3  # another runner has claimed this attempt
    UNANSWERED = 75  # EX_TEMPFAIL: the store did not answer, so nothing is committed
    STOPPED = (
        143  # 128 + SIGTERM: an end is in the ledger, or nothing at all when the signal came before the claim
    )
