"""What an operator can fix, among the errors that reach the command line: a store that does not answer, a package
that is not installed, a file system that refuses."""

from __future__ import annotations

import errno
import os
import re
import traceback
from importlib import metadata

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.full_disk import is_full
from trialfleet_ledger.store.protocol import START_STORE, StoreError

# Package of ours -> the extra that its requirements are in.
_EXTRAS = {
    "trialfleet_analysis": "analysis",
    "trialfleet_controller": "controller",
    "trialfleet_targets": "targets",
    "trialfleet_tasks": "controller",
}
_PREFERRED = ("controller", "analysis", "targets", "bedrock", "bulk", "metrics")  # where several bring a package
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^;]*;.*extra == ['\"]([a-z]+)['\"]")
_WAYS_OUT = {
    errno.EACCES: "change its owner or its permissions, or name another place",
    errno.EPERM: "change its owner or its permissions, or name another place",
    errno.EROFS: "name a place that can be written: --out or `store` for results, $TRIALFLEET_CACHE and "
    "$TRIALFLEET_SCRATCH for what a command keeps for itself",
    errno.ENOTDIR: "a file is where a folder is needed: move it away, or name another place",
    errno.EISDIR: "a folder is where a file is needed: move it away, or name another place",
    errno.EEXIST: "move it away, or name another place",
    errno.ENAMETOOLONG: "use a shorter path",
    errno.ELOOP: "a symbolic link points to itself: remove it",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENFILE: "close other programs: this machine's table of open files is full",
    errno.EIO: "check the disk: the file system cannot read or write there",
    errno.ESTALE: "mount the network file system again",
}
_ROOM = "free disk space there, or name another place"


def operator_error(error: Exception) -> OperatorError | None:
    """The error as the operator needs it; None for a bug."""
    match error:
        case OperatorError():
            return error
        case StoreError():
            return OperatorError(
                str(error),
                hint=error.hint or START_STORE,
            )
        case ModuleNotFoundError():
            return missing_extra(error)
        case OSError():
            return _of_file_system(error)
        case _:
            return None


def missing_extra(error: ModuleNotFoundError) -> OperatorError | None:
    """None where no extra of ours brings the module."""
    wanted = (error.name or "").partition(".")[0].replace("_", "-")
    bringing = {extra for name, extra in _optional() if name == wanted or wanted.startswith(f"{name}-")}
    extras = [extra for extra in _PREFERRED if extra in bringing]
    if not extras:
        return None
    frames = traceback.extract_tb(error.__traceback__)
    files = [frame.filename for frame in reversed(frames)]
    ours = (extra for file in files for package, extra in _EXTRAS.items() if f"/{package}/" in file)
    extra = next((one for one in ours if one in extras), extras[0])
    return OperatorError(
        f"this command needs the Python package {wanted}, which is not installed",
        hint=f"pip install 'trialfleet[{extra}]'",
    )


def _optional() -> list[tuple[str, str]]:
    """(distribution, extra) of this installation's own requirements."""
    matches = map(_REQUIREMENT.match, metadata.requires("trialfleet") or ())
    return [(found[1].lower().replace("_", "-"), found[2]) for found in matches if found is not None]


def _of_file_system(error: OSError) -> OperatorError | None:
    """
    >>> str(operator_error(OSError(20, "Not a directory", "/etc/passwd/x"))).partition(":")[0]
    '/etc/passwd/x'
    """
    hint = _ROOM if is_full(error) else _WAYS_OUT.get(error.errno or 0)
    if hint is None:
        return None
    places = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return OperatorError(error.strerror or str(error), where=" -> ".join(places) or None, hint=hint)
