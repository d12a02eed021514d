"""A full disk on the controller's side: the operator's to mend, no bug."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

from trialfleet_runner.errors import OperatorError


@contextmanager
def disk_room(folders: str) -> Generator[None]:
    """Turns the block's "disk full" and "quota spent" into an `OperatorError`. `folders`: where it writes, for
    errors that name no file."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OperatorError(
            f"the disk is full, or a quota is spent: {error.strerror}",
            where=str(error.filename or folders),
            hint="make room (`trialfleet gc`, `trialfleet doctor`) and call again: nothing is lost",
        ) from error
