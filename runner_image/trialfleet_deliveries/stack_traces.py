"""Frames of stack traces in outputs of all languages but Python: which code a failure came from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trialfleet_repository.languages import LANGUAGES
from trialfleet_repository.languages.traces import TraceStyle

_LONGEST = 1000  # characters of a line that are looked at


def traces(output: str) -> Iterator[list[str]]:
    """Paths of the frames, outermost first, one list per trace. A frame that names a class gives the end of its
    file's path, which follows from the name of its class.

    >>> list(traces("\\tat org.x.Cart$Row.of(Cart.java:3)\\n\\tat org.x.CartTest.adds(CartTest.java:9)"))
    [['org/x/CartTest.java', 'org/x/Cart.java']]
    """
    styles = (style for language in LANGUAGES.values() for style in language.traces)
    for style in sorted(styles, key=lambda style: style.loose):
        yield from _traces(output, style)


def _traces(output: str, style: TraceStyle) -> Iterator[list[str]]:
    found: list[list[str]] = [[]]  # the trace and its causes, each innermost first
    for line in output.splitlines():
        line = line[:_LONGEST]
        frame = style.frame.match(line)
        if frame:
            found[-1].append(_path(frame))
        elif found[0] and style.cause.match(line):
            found.append([])
        elif not style.between.match(line):
            yield from _whole(found)
            found = [[]]
    yield from _whole(found)


def _whole(found: list[list[str]]) -> Iterator[list[str]]:
    if found[0]:
        yield [path for part in found for path in reversed(part)]


def _path(frame: re.Match[str]) -> str:
    facts = frame.groupdict()
    if "path" in facts:
        return str(facts["path"])
    package = facts["name"].rpartition(".")[0].rpartition(".")[0].replace(".", "/")
    return f"{package}/{facts['file']}" if package else str(facts["file"])
