"""Files that a command writes again on each call into a folder that the user names.

A record in the folder lists the digests of what was written, and by what. A file is replaced, or removed if it is
not made any more, only if it is still what the record says: never somebody's file of the same name, and never one
that was edited since.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError

RECORD = ".trialfleet-outputs.json"


@dataclass(frozen=True)
class OutputFile:
    """`digests`: SHA-256 of the contents that may be there; `what`: the files that it is one of."""

    digests: tuple[str, ...]
    what: str


def replace_outputs(folder: Path, contents: Mapping[str, bytes], *, what: str = "files") -> tuple[Path, ...]:
    """Write files (name -> content) into `folder`, which is created if absent, and remove those that an earlier
    call wrote as `what`, with one of the same suffixes, and that are not among them. Returns those of them that
    were edited since: they stay. Raises `OperatorError`, before anything is written, for a file that trialfleet
    did not write or that was edited since, and for a link; and where `what` cannot be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _replace(folder, contents, what)
    except OSError as error:
        raise OperatorError(
            f"cannot write the {what}: {error.strerror}", where=str(folder), hint="give a folder with --out"
        ) from error


def _replace(folder: Path, contents: Mapping[str, bytes], what: str) -> tuple[Path, ...]:
    known = _read_record(folder)
    nothing = OutputFile((), what)
    for name, data in contents.items():
        _refuse_foreign(folder / name, data, known.get(name, nothing).digests)
    made = {name: OutputFile((sha256(data),), what) for name, data in contents.items()}
    both = {
        name: OutputFile((*known.get(name, nothing).digests, *one.digests), what) for name, one in made.items()
    }
    _write_record(folder, known | both)  # first: a process that is killed leaves no file without a record
    for name, data in contents.items():
        write_whole(folder / name, data)
    stale = _list_stale(known, contents, what)
    left = {name: one for name, one in stale.items() if not _remove_unchanged(folder / name, one.digests)}
    gone = stale.keys() - left.keys()
    _write_record(folder, {name: one for name, one in (known | made).items() if name not in gone})
    return tuple(folder / name for name in left)


def _list_stale(
    known: Mapping[str, OutputFile], contents: Mapping[str, bytes], what: str
) -> dict[str, OutputFile]:
    """Names with a folder in them are no names that this module wrote."""
    suffixes = {Path(name).suffix for name in contents}
    return {
        name: one
        for name, one in known.items()
        if name not in contents and one.what == what and Path(name).suffix in suffixes and Path(name).name == name
    }


def _remove_unchanged(path: Path, digests: tuple[str, ...]) -> bool:
    """Whether it is gone."""
    if not path.exists() and not path.is_symlink():
        return True
    if path.is_symlink() or not path.is_file() or sha256(path.read_bytes()) not in digests:
        return False
    path.unlink()
    return True


def _refuse_foreign(path: Path, data: bytes, digests: tuple[str, ...]) -> None:
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


def _read_record(folder: Path) -> dict[str, OutputFile]:
    """By name. Empty if there is no record that can be read."""
    try:
        record = json.loads((folder / RECORD).read_bytes())
        return {
            str(name): OutputFile(tuple(map(str, one["sha256"])), str(one["what"]))
            if record["version"] == 2
            else OutputFile(tuple(map(str, one)), "")  # version 1 did not say what had made it
            for name, one in record["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_record(folder: Path, files: Mapping[str, OutputFile]) -> None:
    path = folder / RECORD
    if path.is_symlink() or (path.exists() and not _read_record(folder)):
        raise OperatorError(
            "this is no record of files that trialfleet wrote; it is not overwritten",
            where=str(path),
            hint="give another folder with --out",
        )
    entries = {name: {"sha256": sorted({*one.digests}), "what": one.what} for name, one in sorted(files.items())}
    record = {"id": "trialfleet-outputs", "version": 2, "files": entries}
    write_whole(path, json.dumps(record, indent=1).encode() + b"\n")
