"""The folders of the user who runs this, who may have none."""

from __future__ import annotations

from pathlib import Path

from trialfleet_ledger.errors import OperatorError

_NOWHERE = Path("/nonexistent")  # as Debian writes it for users without a home


def home_folder() -> Path:
    """`$HOME`, or what the machine's list of users says; a folder that does not exist where neither names one."""
    try:
        return Path.home()
    except RuntimeError:
        return _NOWHERE


def expand_home(path: str, *, where: str) -> Path:
    """A path in which `~` and `~user` at its start are replaced. Raises `OperatorError` for a user without a home.

    >>> str(expand_home("runs", where="store")), str(expand_home("./~runs", where="store"))
    ('runs', '~runs')
    """
    if not path.startswith("~"):  # pathlib would take ./~runs for the home of a user
        return Path(path)
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise OperatorError(
            f"no home folder is known for {path.partition('/')[0]!r}",
            where=where,
            hint=f"write the whole path, or ./{path} for a folder of that name",
        ) from None
