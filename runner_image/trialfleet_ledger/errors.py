"""The errors of what an operator can fix."""

from __future__ import annotations


class OperatorError(Exception):
    """Something the operator can fix: bad input, a missing program, an unreachable store.

    The message names the file (and line or field) and the way out. The command line prints it
    without a traceback and exits 2.

    >>> str(OperatorError("reps must be at least 1", where="campaign.yaml: reps", hint="set reps: 25"))
    'campaign.yaml: reps: reps must be at least 1\\n  fix: set reps: 25'
    """

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message, self.where, self.hint = message, where, hint
        text = f"{where}: {message}" if where else message
        super().__init__(f"{text}\n  fix: {hint}" if hint else text)


class FieldError(ValueError):
    """A validator's refusal of a field that people write, with the fix: `yamlfile` shows both.

    >>> FieldError("reps are odd", hint="give an even number").hint
    'give an even number'
    """

    def __init__(self, message: str, *, hint: str) -> None:
        self.hint = hint
        super().__init__(message)


class ProgramError(Exception):
    """A program of this machine, such as git, failed where it does not fail by itself: it cannot start, read or
    write. The message is its own. The command line prints it as it prints an `OperatorError`."""
