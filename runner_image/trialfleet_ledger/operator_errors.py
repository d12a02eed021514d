"""What an operator can fix, among the errors that reach the command line: a store that does not answer, a package
that is not installed, a file system that refuses."""

from __future__ import annotations

import os
import re

from trialfleet_ledger.errors import OperatorError, ProgramError
from trialfleet_ledger.store.full_disk import says_full
from trialfleet_ledger.store.protocol import START_STORE, StoreError
from trialfleet_ledger.store.rereading import WrongValue
from trialfleet_ledger.store.ways_out import FREE_SPACE, way_out

REINSTALL = "install trialfleet again, with its dependencies (a pod's image has only those of a pod)"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
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
            return missing_package(error)
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


def missing_package(error: ModuleNotFoundError) -> OperatorError | None:
    """None for a module that no requirement of ours brings."""
    from importlib import metadata

    wanted = _normalise((error.name or "").partition(".")[0])
    required = (found[0] for found in map(_NAME.match, metadata.requires("trialfleet") or ()) if found is not None)
    if not any(wanted == name or wanted.startswith(f"{name}-") for name in map(_normalise, required)):
        return None
    return OperatorError(f"this command needs the Python package {wanted}, which is not installed", hint=REINSTALL)


def _normalise(name: str) -> str:
    return name.lower().replace("_", "-")


def _unloadable(error: ImportError) -> OperatorError | None:
    """Of a compiled module that this machine cannot load; None for a name that a module lacks."""
    if not (error.path or "").endswith(".so"):
        return None
    return OperatorError(f"cannot be loaded: {error}", where=error.path, hint=_LOADS)


def _of_file_system(error: OSError) -> OperatorError | None:
    """
    >>> str(operator_error(OSError(20, "Not a directory", "/etc/passwd/x"))).partition(":")[0]
    '/etc/passwd/x'
    """
    if (hint := way_out(error)) is None:
        return None
    places = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return OperatorError(error.strerror or str(error), where=" -> ".join(places) or None, hint=hint)
