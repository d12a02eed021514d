"""Files that a command writes again on each call into a folder that the user names.

A record in the folder lists the digests of what was written. A file is replaced only if it is still what the
record says: never somebody's file of the same name, and never one that was edited since.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError

RECORD = ".trialfleet-outputs.json"


def replace_outputs(folder: Path, contents: Mapping[str, bytes], *, what: str = "files") -> None:
    """Write files (name -> content) into `folder`, which is created if absent. Raises `OperatorError`, before
    anything is written, for a file that trialfleet did not write or that was edited since, and for a link; and
    where `what` cannot be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder, contents)
    except OSError as error:
        raise OperatorError(
            f"cannot write the {what}: {error.strerror}", where=str(folder), hint="give a folder with --out"
        ) from error


def _replace(folder: Path, contents: Mapping[str, bytes]) -> None:
    known = _read_record(folder)
    for name, data in contents.items():
        _refuse_foreign(folder / name, data, known.get(name, ()))
    digests = {name: sha256(data) for name, data in contents.items()}
    both = {name: sorted({*known.get(name, ()), digest}) for name, digest in digests.items()}
    _write_record(folder, known | both)  # first: a process that is killed leaves no file without a record
    for name, data in contents.items():
        write_whole(folder / name, data)
    _write_record(folder, known | {name: [digest] for name, digest in digests.items()})


def _refuse_foreign(path: Path, data: bytes, digests: tuple[str, ...] | list[str]) -> None:
    if not path.exists() and not path.is_symlink():
        return
    if path.is_symlink() or not path.is_file():
        reason = "a link or a folder of this name exists"
    elif path.read_bytes() == data or sha256(path.read_bytes()) in digests:
        return
    else:
        reason = "this file exists, and trialfleet did not write it, or it was edited since"
    raise OperatorError(
        f"{reason}; it is not overwritten",
        where=str(path),
        hint=f"give another folder with --out, or move it away: `mv {shlex.quote(str(path))} …`",
    )


def _read_record(folder: Path) -> dict[str, list[str]]:
    """Name -> SHA-256 of the contents that were written. Empty if there is no record that can be read."""
    try:
        record = json.loads((folder / RECORD).read_bytes())
        return {str(name): [str(digest) for digest in digests] for name, digests in record["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_record(folder: Path, files: Mapping[str, list[str]]) -> None:
    path = folder / RECORD
    if path.is_symlink() or (path.exists() and not _read_record(folder)):
        raise OperatorError(
            "this is no record of files that trialfleet wrote; it is not overwritten",
            where=str(path),
            hint="give another folder with --out",
        )
    record = {"id": "trialfleet-outputs", "version": 1, "files": dict(sorted(files.items()))}
    write_whole(path, json.dumps(record, indent=1).encode() + b"\n")
