"""What every reader of test results refuses or shortens: its input may come from a hostile program."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import cast

from trialfleet_repository.results.junit import MAX_BYTES, MAX_CASES, CaseOutcome, JunitCase

MAX_TEXT = 2**16  # characters that are kept of one case's text
_MAX_JSON_LINE = 2**20
_MAX_JSON_VALUES = 20 * MAX_CASES
_LOADED = "collection failure"  # what `JunitCase.at_collection` looks for


class ResultError(ValueError):
    """The report of a test runner cannot be read, or is too large."""


class BoundedText:
    """Text that is added in pieces; what exceeds `MAX_TEXT` characters is dropped."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        self._room = MAX_TEXT

    def add(self, text: str) -> None:
        if self._room > 0:
            self._text.write(text[: self._room])
            self._room -= len(text)

    def __bool__(self) -> bool:
        """Whether there is any text."""
        return self._room < MAX_TEXT

    def __str__(self) -> str:
        return self._text.getvalue()


class CaseList:
    """Cases whose texts are bounded, each and together. `add` raises `ResultError` when there are too many."""

    def __init__(self) -> None:
        self.cases: list[JunitCase] = []
        self._room = MAX_BYTES

    def add(self, unit: str, name: str, outcome: CaseOutcome, text: str = "", message: str = "") -> None:
        check_count(len(self.cases))
        kept = encodable(text[: min(MAX_TEXT, self._room)])
        self._room -= len(kept)
        self.cases.append(JunitCase(encodable(unit), encodable(name), None, outcome, message, kept))

    def not_loaded(self, unit: str, text: str) -> None:
        """A file or package that could not be compiled or loaded."""
        self.add(unit, "", "error", text, _LOADED)

    def outside_tests(self, unit: str, text: str) -> None:
        """A file or package that failed although it was loaded, and no test of it is to blame."""
        self.add(unit, "", "error", text, "failure outside the tests")


def check_size(data: bytes) -> None:
    """Raises `ResultError` for a report that is too large."""
    if len(data) > MAX_BYTES:
        raise ResultError(f"larger than {MAX_BYTES} bytes")


def check_count(count: int) -> None:
    """Raises `ResultError` when no further case can be kept."""
    if count >= MAX_CASES:
        raise ResultError(f"more than {MAX_CASES} test cases")


def lines_of(data: bytes) -> Iterator[str]:
    """The lines, one at a time, with their ends. Raises `ResultError` for too large a report."""
    check_size(data)
    for line in io.BytesIO(data):
        yield line.decode("utf-8", "replace")


def json_object(line: str) -> dict[str, object] | None:
    """The JSON object of a line; None when it is anything else or very long."""
    if not line.startswith("{") or len(line) > _MAX_JSON_LINE:
        return None
    return decoded_object(line)


def decoded_object(text: str | bytes) -> dict[str, object] | None:
    """The JSON object that the text is; None when it is anything else. Raises `ResultError` when its values would
    take too much memory: empty ones take thirty times the space of their text."""
    if isinstance(text, bytes) and sum(map(text.count, (b",", b"[", b"{"))) > _MAX_JSON_VALUES:
        raise ResultError(f"more than {_MAX_JSON_VALUES} values")
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return as_object(value)


def as_object(value: object) -> dict[str, object] | None:
    """The value when it is a JSON object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object]:
    """The value when it is a JSON array, otherwise an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value when it is a JSON string, otherwise an empty one."""
    return value if isinstance(value, str) else ""


def encodable(text: str) -> str:
    r"""The text with what UTF-8 cannot hold replaced: JSON can spell half of a surrogate pair.

    >>> encodable("a\ud800")
    'a?'
    """
    return text.encode("utf-8", "replace").decode("utf-8")
