"""The files of a context as conditions deliver them: plain paths, without development commands."""

from __future__ import annotations

from collections.abc import Mapping

from trialfleet_deliveries.commands import Stripped, is_text, strip_files
from trialfleet_deliveries.nodes import inside
from trialfleet_ledger.errors import OperatorError


def strip_tree(files: Mapping[str, bytes] | None) -> Stripped:
    """`files` (path -> bytes) without commands. Raises `OperatorError` for a path that leaves the tree."""
    for path in files or {}:
        if inside(path) != path:
            raise OperatorError("must be a plain path inside the tree", where=f"context: {path!r}")
    return strip_files(files or {})


def decode_texts(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files that are text by their names. Raises `OperatorError` for one that is no UTF-8."""
    return {path: _decode(path, data) for path, data in files.items() if is_text(path)}


def _decode(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise OperatorError("is not UTF-8 text", where=f"context: {path}", hint="save it as UTF-8") from error
