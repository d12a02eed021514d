"""Where `nearest` starts from: a path of the repository, read out of the frozen failure output."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Literal

from trialfleet_deliveries.stack_traces import traces
from trialfleet_repository.languages import LANGUAGES, is_test_path
from trialfleet_repository.trees import ROOT

if TYPE_CHECKING:  # runners of attempts need not pay for the task file's models
    from trialfleet_ledger.task import AnchorPath

WORKSPACE = "/workspace"
_CLASSIC = re.compile(r'^\s*(?:E\s+)?File "([^"\n]+)", line \d+')
_PYTEST = re.compile(r"^([^\s:][^:\n]*\.py):\d+: ?(?:in \S|[A-Za-z_][\w.]*(?:$|: )|$)")
_PLACED = re.compile(r"^\s*([^\s:][^:\n]*\.py):\d+(?=:|$)")
_SECTION = re.compile(r"^(?:_{3,} .* _{3,}|={70})$")  # of pytest, of unittest
_BANNER = re.compile(r"^={3,} (.*?) ={3,}$")


def repository_path(path: str, paths: Collection[str], directory: str = ROOT) -> str | None:
    """A frame's path as a path of the repository; None when it is none (standard library, dependencies).
    `directory`: folder of the repository that the tests were called in."""
    normal = posixpath.normpath(path.removeprefix(f"{WORKSPACE}/"))
    places = (normal, posixpath.normpath(f"{directory}/{normal}"))
    return next((place for place in places if place in paths), None)


def _file_of_class(path: str, paths: Collection[str], directory: str) -> str | None:
    """The only file whose path ends like this, among those below `directory` if there are several.

    >>> _file_of_class("org/x/Cart.java", ["a/main/org/x/Cart.java", "b/main/org/x/Cart.java"], "b")
    'b/main/org/x/Cart.java'
    """
    found = [each for each in paths if each == path or each.endswith(f"/{path}")]
    if len(found) > 1:
        found = [each for each in found if each.startswith(f"{directory}/")]
    return found[0] if len(found) == 1 else None


def frames(output: str) -> Iterator[list[str]]:
    """Paths of the frames, outermost first, one list per failure: pytest's long and short style, and the
    tracebacks of Python and unittest. Warnings and the summary are not failures."""
    found: list[str] = []
    skipped = False
    for line in output.splitlines():
        banner = _BANNER.match(line)
        if banner:
            skipped = banner[1].startswith(("warnings summary", "short test summary"))
        if _SECTION.match(line) or banner:
            if found:
                yield found
            found = []
            continue
        frame = None if skipped else _CLASSIC.match(line) or _PYTEST.match(line)
        if frame:
            found.append(frame[1])
    if found:
        yield found


def frames_as_words(output: str) -> str:
    """`output` with the path of every frame and warning as plain words: where a program has been is not what
    somebody names.

    >>> frames_as_words("src/pkg/a.py:7: in f")
    'src pkg a 7: in f'
    """
    return "\n".join(map(_as_words, output.split("\n")))


def _as_words(line: str) -> str:
    match = _CLASSIC.match(line) or _PLACED.match(line)
    if match is None:
        return line
    start, end = match.span(1)
    words = re.sub(r"[/\\]+", " ", match[1].removesuffix(".py"))
    return f"{line[:start]}{words} {line[end:].lstrip(':')}"


def deepest_frame(output: str, paths: Collection[str], directory: str = ROOT) -> str | None:
    """The deepest frame of the repository outside its tests, of the first failure that has one: of Python, else of
    another language. `directory`: folder of the repository that the tests were called in."""
    for failure in chain(frames(output), traces(output)):
        own = [_in_repository(path, paths, directory) for path in failure]
        code = [path for path in own if path is not None and not is_test_path(path)]
        if code:
            return code[-1]
    return None


def _in_repository(path: str, paths: Collection[str], directory: str) -> str | None:
    if any(path.endswith(language.class_files) for language in LANGUAGES.values()):
        return _file_of_class(path, paths, directory)
    return repository_path(path, paths, directory)


def anchor_for(
    mode: Literal["traceback", "test_file", "targets", "oracle"] | AnchorPath,
    *,
    prompt_source: Literal["failing_test", "issue", "commit_message"],
    paths: Collection[str],
    failure_output: str | None = None,
    test_file: str | None = None,
    targets: Collection[str] = (),
    predicted: str | None = None,
    directory: str = ROOT,
) -> str | None:
    """The anchor, a path of the repository, or None: no node covers the task. `predicted`: the file that most
    likely needs the edit, by the task's own words. `directory`: folder that the tests were called in.

    A task whose test is hidden has no anchor except a fixed path or a predicted one: its traceback or test file
    would tell the agent what is hidden. `oracle` (the first fixed file) leaks by intent and is reported apart.
    """
    if not isinstance(mode, str):
        return mode.path
    if mode == "oracle":
        return next((path for path in sorted(targets) if not is_test_path(path)), None)
    if mode == "targets":
        return predicted
    if prompt_source != "failing_test":
        return None
    if mode == "test_file":
        return test_file
    return deepest_frame(failure_output or "", paths, directory)
