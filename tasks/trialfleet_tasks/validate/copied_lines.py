"""Lines of a fix that lie elsewhere in a task's environment, where an agent could copy them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath

from trialfleet_ledger.plurals import plural
from trialfleet_repository.languages import is_vendored
from trialfleet_repository.trees import Tree, TreeEntry

LINES = 3  # consecutive ones that a fix adds: single lines are common
AROUND = 5  # consecutive ones, of which a change makes one or more: they tell of a fix of one line
MAX_FILE_BYTES = 2**20
MAX_BYTES = 256 * 2**20  # read of one environment, at about 50 MiB/s
MAX_FILES = 100_000
_MAX_FIX_BYTES = 2**18  # of a file of the fix: what compares it takes time by the square of its lines
_MAX_RUNS = 2_000
_NAMED = 3
_SHORT = 8  # characters of a line that tells nothing
_IMPORT = re.compile(r"(?:import|from|use|using|package|#include|(?:const|let|var)\b.*=\s*require)\b")
_WORDS = re.compile(r"\w{2,}")
_COMMENT = re.compile(r"(?://|#|/?\*)")
_Lines = tuple[str, ...]


@dataclass(frozen=True)
class AddedLines:
    """Runs of `LINES` lines that a fix adds one after the other, and of `AROUND` lines with a change among them.
    `suffixes`: of the files that it changes."""

    runs: frozenset[_Lines]
    suffixes: frozenset[str]


@dataclass
class _Search:
    added: AddedLines
    starts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.starts = frozenset(run[0] for run in self.added.runs)

    def is_in(self, data: bytes) -> bool:
        lines = _telling_lines(data)
        if self.starts.isdisjoint(lines):
            return False
        return any(not self.added.runs.isdisjoint(_runs(lines, length)) for length in (LINES, AROUND))


def find_added_lines(before: Tree, fix: Mapping[str, TreeEntry | None]) -> AddedLines:
    """Of the fix, without lines that are blank, braces, comments or imports: these tell nothing, and a run goes on
    behind them. Runs that the changed files had before are not new."""
    runs: set[_Lines] = set()
    old: set[_Lines] = set()
    for path, entry in fix.items():
        if entry is None or len(entry.data) > _MAX_FIX_BYTES:
            continue
        was = _telling_lines(before[path].data) if path in before else []
        now = _telling_lines(entry.data)
        old |= {*_runs(was, LINES), *_runs(was, AROUND)}
        runs |= {*_runs(now, AROUND)}
        for tag, _, _, start, end in SequenceMatcher(None, was, now).get_opcodes():
            if tag in ("insert", "replace"):
                runs |= {*_runs(now[start:end], LINES)}
    new = sorted(runs - old)[:_MAX_RUNS]
    return AddedLines(frozenset(new), frozenset(PurePosixPath(path).suffix for path in fix))


def _runs(lines: Sequence[str], length: int) -> Iterator[_Lines]:
    return zip(*(lines[n:] for n in range(length)), strict=False)


@dataclass(frozen=True)
class CopiedLines:
    """Where lines of a fix lie. `searched`: files of the environment, where the search ended before the last."""

    places: tuple[str, ...] = ()
    searched: int | None = None

    @property
    def words(self) -> str | None:
        """As a sentence; None: there is nothing to say."""
        if self.places:
            rest = len(self.places) - _NAMED
            where = ", ".join(self.places[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
            return f"consecutive lines that only the fix has lie in {where}: an agent could copy them"
        if self.searched is not None:
            some = plural(self.searched, "file")
            return f"lines of the fix were searched in the first {some} of the environment alone"
        return None


def find_copied_lines(added: AddedLines, environment: Path, workspace: Tree) -> CopiedLines:
    """In files of the built environment, and of the workspace's vendored folders. Files with other endings, larger
    than `MAX_FILE_BYTES`, or compressed ones are not read; beyond `MAX_BYTES` or `MAX_FILES` the search ends."""
    if not added.runs:
        return CopiedLines()
    search = _Search(added)
    vendored = (path for path in workspace if is_vendored(path) and PurePosixPath(path).suffix in added.suffixes)
    found = [path for path in vendored if search.is_in(workspace[path].data[:MAX_FILE_BYTES])]
    left = MAX_BYTES
    for count, (file, size) in enumerate(_files_of(environment, added.suffixes)):
        left -= size
        if left < 0 or count >= MAX_FILES:
            return CopiedLines(tuple(found), count)
        if search.is_in(_read(file)):
            found.append(file.relative_to(environment).as_posix())
    return CopiedLines(tuple(found))


def _telling_lines(data: bytes) -> list[str]:
    lines = (line.strip() for line in data.decode(errors="replace").split("\n"))
    return [line for line in lines if _tells(line)]


def _tells(line: str) -> bool:
    """
    >>> [_tells(line) for line in ("return sum(prices)", "});", "} else {", "import os.path", "# the sum", "pass")]
    [True, False, False, False, False, False]
    """
    return (
        len(line) > _SHORT
        and not _COMMENT.match(line)
        and not _IMPORT.match(line)
        and _WORDS.search(line) is not None
    )


def _files_of(environment: Path, suffixes: frozenset[str]) -> Iterator[tuple[Path, int]]:
    """Those of a readable size, in the order of their paths, with it. No link is followed."""
    for place, folders, names in os.walk(environment):
        folders.sort()
        for name in sorted(names):
            file = Path(place, name)
            if file.suffix in suffixes:
                try:
                    facts = file.lstat()
                except OSError:  # it is gone, or not ours to read
                    continue
                if stat.S_ISREG(facts.st_mode) and facts.st_size <= MAX_FILE_BYTES:
                    yield file, facts.st_size


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # another user's
        return b""
