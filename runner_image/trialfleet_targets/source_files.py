"""Source files of a commit, read on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from itertools import islice
from pathlib import Path, PurePosixPath

from trialfleet_targets.disk_cache import DiskCache, key_of
from trialfleet_targets.encoding import decoded
from trialfleet_targets.parsing_pool import CRASHED, TIMED_OUT, parse_all
from trialfleet_targets.progress import Report, count_items, ignore_progress
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import LANGUAGES, FileFacts

_GRAMMARS = ("", "-python", "-javascript", "-typescript", "-go", "-rust", "-java")


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file that has not been read. `key`: of its facts in the `DiskCache`."""

    blob: str
    key: bytes
    test: bool


class SourceFiles(Mapping[str, SourceFile]):
    """Source files by path, in the order of paths. Content and facts are read on first use: a build that needs
    three files reads three."""

    def __init__(self, repository: Repository, rows: Mapping[str, FileRow], cache: DiskCache) -> None:
        self._repository, self._rows, self._cache = repository, rows, cache
        self._files: dict[str, SourceFile] = {}
        self._facts: dict[str, FileFacts] = {}
        self._texts: dict[str, str] = {}
        self._order, self._batch = list(rows), 1

    def __getitem__(self, path: str) -> SourceFile:
        if path not in self._files:
            row = self._rows[path]
            self._files[path] = _LazySourceFile(path, row.blob, row.test, self)
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def parse_missing(self, processes: int, few: int, report: Report = ignore_progress) -> None:
        """Parse the files that are not in the cache, in one process when there are at most `few`."""
        known = self._cache.known(row.key for row in self._rows.values())
        fresh = {path: row for path, row in self._rows.items() if row.key not in known}
        if fresh:
            read = contents(self._repository, fresh)
            counted = count_items(read, report, f"parsing {{}} of {len(fresh):,} files")
            answers = parse_all(counted, processes=1 if len(fresh) <= few else processes)
            self._cache.put({fresh[path].key: answer for path, answer in answers.items()})

    def facts(self, path: str) -> FileFacts:
        if path not in self._facts:
            row = self._rows[path]
            self._facts[path] = _facts(path, self._cache.get(row.key)) or self._reparsed(path)
        return self._facts[path]

    def text(self, path: str) -> str:
        """The content of a file. Each miss reads twice as many of the following files as the one before: reading
        one file stays cheap, and reading all of them starts git a few times."""
        if path not in self._texts:
            following = (one for one in self._order[self._order.index(path) :] if one not in self._texts)
            wanted = {one: self._rows[one] for one in islice(following, self._batch)}
            self._batch *= 2
            for one, data in contents(self._repository, wanted):
                self._texts[one] = data.decode("utf-8", "replace")
        return self._texts[path]

    def _reparsed(self, path: str) -> FileFacts:
        """Parse again when the cache lost or damaged the entry."""
        row = self._rows[path]
        answer = parse_all(contents(self._repository, {path: row}), processes=1).get(path)
        return _facts(path, answer) or FileFacts(LANGUAGES[PurePosixPath(path).suffix], problem="cannot be read")


class _LazySourceFile(SourceFile):
    """A `SourceFile` whose text and facts are read on first use."""

    __slots__ = ("_files",)
    _files: SourceFiles

    def __init__(self, path: str, blob: str, test: bool, files: SourceFiles) -> None:
        for name, value in (("path", path), ("blob", blob), ("test", test), ("_files", files)):
            object.__setattr__(self, name, value)

    @property
    def facts(self) -> FileFacts:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._files.facts(self.path)

    @property
    def text(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._files.text(self.path)


def contents(repository: Repository, rows: Mapping[str, FileRow]) -> Iterator[tuple[str, bytes]]:
    """Path and content of each; files with the same content after one another."""
    paths: dict[str, list[str]] = {}
    for path, row in rows.items():
        paths.setdefault(row.blob, []).append(path)
    for blob, data in repository.contents(paths):
        for path in paths[blob]:
            yield path, data


def facts_key(path: str, blob: str) -> bytes:
    """Facts depend on the content, the path (its language, whether it is an `__init__.py`) and the parser."""
    return key_of(parser_version(), path, blob)


@cache
def parser_version() -> str:
    """Version of the grammars and of the parsing code: facts of another version are not used."""
    digest = sha256()
    here = Path(__file__).parent
    for path in sorted((*here.glob("parsing*.py"), *here.glob("languages/*.py"), here / "syntax_facts.py")):
        digest.update(path.read_bytes())
    versions = [metadata.version(f"tree-sitter{name}") for name in _GRAMMARS]
    return f"{digest.hexdigest()[:16]} {' '.join(versions)}"


def _facts(path: str, answer: bytes | None) -> FileFacts | None:
    """None for an answer that is missing or damaged."""
    if answer is None:
        return None
    if answer in (TIMED_OUT, CRASHED):
        return FileFacts(LANGUAGES[PurePosixPath(path).suffix], problem=answer.decode())
    try:
        return decoded(answer) or FileFacts(LANGUAGES[PurePosixPath(path).suffix], problem="no grammar")
    except ValueError:
        return None
