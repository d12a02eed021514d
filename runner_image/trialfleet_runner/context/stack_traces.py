"""Frames of stack traces in outputs of Go, JavaScript, Rust, Java and Kotlin: which code a failure came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class TraceStyle:
    """How one language prints a trace, whose frames go from the innermost outwards. `frame`: a line that names
    code, with its `path`, or its `name` and `file`. `between`: lines between the frames of one trace. `cause`: a
    line after which the frames of a deeper trace follow."""

    frame: re.Pattern[str]
    between: re.Pattern[str] = re.compile(r"(?!)")
    cause: re.Pattern[str] = re.compile(r"(?!)")


_GO = TraceStyle(
    re.compile(r"\s+(?P<path>[^\s:][^\n:]*\.go):\d+(?: \+0x[0-9a-f]+)?$"),
    between=re.compile(r"\S[^\n]*\)$|created by "),
)
_JAVASCRIPT = TraceStyle(
    re.compile(
        r"\s*(?:(?:at |❯ )(?:[^\n]*? \(?)?|\S[^\n]*? \(|(?=file://))(?:file://)?"
        r"(?P<path>[^\s()'\"`]+\.[cm]?[jt]sx?)(?:\?[^\s:]*)?:\d+:\d+\)?(?: \{)?$"
    ),
    cause=re.compile(r"\s*(?:\[cause\]|Caused by): "),
)
_RUST_PANIC = TraceStyle(re.compile(r"(?:thread '.*panicked at |.*', )(?P<path>[^\s',]+\.rs):\d+:\d+:?$"))
_RUST = TraceStyle(
    re.compile(r"\s+at (?P<path>[^\s']+\.rs):\d+(?::\d+)?$"),
    between=re.compile(r"\s*\d+: "),
)
_JVM = TraceStyle(
    re.compile(
        r"(?:\[ERROR\] )?\s*at (?:[^\s()/]*/)*(?P<name>[\w.$<>]+)"
        r"\((?P<file>[\w.$-]+\.(?:java|kt|groovy|scala)):\d+\)"
    ),
    between=re.compile(r"\s*\.\.\. \d+ "),
    cause=re.compile(r"(?:\[ERROR\] )?\s*(?:Caused by|Suppressed): "),
)
STYLES = (_GO, _RUST_PANIC, _RUST, _JVM, _JAVASCRIPT)
_LONGEST = 1000  # characters of a line that are looked at


def traces(output: str) -> Iterator[list[str]]:
    """Paths of the frames, outermost first, one list per trace. A frame of Java or Kotlin gives the end of its
    file's path, which follows from the name of its class.

    >>> list(traces("\\tat org.x.Cart$Row.of(Cart.java:3)\\n\\tat org.x.CartTest.adds(CartTest.java:9)"))
    [['org/x/CartTest.java', 'org/x/Cart.java']]
    """
    for style in STYLES:
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
