"""What an operator can fix, among the errors that reach the command line: a store that does not answer, a package
that is not installed, a file system that refuses."""

from __future__ import annotations

import os
import re
import traceback
from importlib import metadata

from trialfleet_ledger.errors import OperatorError, ProgramError
from trialfleet_ledger.store.full_disk import says_full
from trialfleet_ledger.store.protocol import START_STORE, StoreError
from trialfleet_ledger.store.rereading import WrongValue
from trialfleet_ledger.store.ways_out import FREE_SPACE, way_out

# Package of ours -> the extra that its requirements are in.
_EXTRAS = {
    "trialfleet_analysis": "analysis",
    "trialfleet_controller": "controller",
    "trialfleet_targets": "targets",
    "trialfleet_tasks": "controller",
}
_PREFERRED = ("controller", "analysis", "targets", "bedrock", "bulk", "metrics")  # where several bring a package
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^;]*;.*extra == ['\"]([a-z]+)['\"]")
_MEMORY = "end other programs, or raise the limit (`ulimit -v`, or that of the container)"
_LOADS = "install the package again; where memory is short, raise its limit (`ulimit -v`)"
_RESTORE = "restore it in the store; an object that is removed there is written again by `trialfleet run`"
_PROGRAM = "check that the program works here and can read and write its files, then repeat the command"


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
        case ImportError():
            return _unloadable(error)
        case MemoryError():
            return OperatorError("the memory of this machine, or its limit, is used up", hint=_MEMORY)
        case WrongValue():
            return OperatorError(str(error), hint=_RESTORE)
        case ProgramError():
            return OperatorError(str(error), hint=FREE_SPACE if says_full(str(error)) else _PROGRAM)
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


def _unloadable(error: ImportError) -> OperatorError | None:
    """Of a compiled module that this machine cannot load; None for a name that a module lacks."""
    if not (error.path or "").endswith(".so"):
        return None
    return OperatorError(f"cannot be loaded: {error}", where=error.path, hint=_LOADS)


def _optional() -> list[tuple[str, str]]:
    """(distribution, extra) of this installation's own requirements."""
    matches = map(_REQUIREMENT.match, metadata.requires("trialfleet") or ())
    return [(found[1].lower().replace("_", "-"), found[2]) for found in matches if found is not None]


def _of_file_system(error: OSError) -> OperatorError | None:
    """
    >>> str(operator_error(OSError(20, "Not a directory", "/etc/passwd/x"))).partition(":")[0]
    '/etc/passwd/x'
    """
    if (hint := way_out(error)) is None:
        return None
    places = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return OperatorError(error.strerror or str(error), where=" -> ".join(places) or None, hint=hint)
