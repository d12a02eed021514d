"""Source files of a commit, read when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from itertools import islice
from pathlib import Path, PurePosixPath

from trialfleet_targets.encoding import decoded
from trialfleet_targets.facts import FileFacts, Language
from trialfleet_targets.kept import Kept, key_of
from trialfleet_targets.parsing_pool import CRASHED, TIMED_OUT, parse_all
from trialfleet_targets.repository import Repository
from trialfleet_targets.resolve import is_barrel
from trialfleet_targets.snapshot import SourceFile

LANGUAGES = {
    ".py": Language.PYTHON,
    ".pyi": Language.PYTHON,
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), Language.JAVASCRIPT),
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), Language.TYPESCRIPT),
    ".go": Language.GO,
    ".rs": Language.RUST,
    ".java": Language.JAVA,
}
_GRAMMARS = ("", "-python", "-javascript", "-typescript", "-go", "-rust", "-java")


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a file without reading it. `key`: of its facts in `Kept`."""

    blob: str
    key: bytes
    test: bool


class Files(Mapping[str, SourceFile]):
    """Source files by path, in the order of paths. Content and facts are read when somebody asks for them, so
    that a build which needs those of three files pays for three."""

    def __init__(self, repository: Repository, rows: Mapping[str, Row], kept: Kept) -> None:
        self._repository, self._rows, self._kept = repository, rows, kept
        self._files: dict[str, SourceFile] = {}
        self._facts: dict[str, FileFacts] = {}
        self._texts: dict[str, str] = {}
        self._order, self._batch = list(rows), 1

    def __getitem__(self, path: str) -> SourceFile:
        if path not in self._files:
            row = self._rows[path]
            self._files[path] = _Lazy(path, row.blob, row.test, self)
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def learn(self, processes: int, few: int) -> None:
        """Facts of what is not kept yet, by one process when there are no more than `few`."""
        known = self._kept.known(row.key for row in self._rows.values())
        fresh = {path: row for path, row in self._rows.items() if row.key not in known}
        if fresh:
            answers = parse_all(contents(self._repository, fresh), processes=1 if len(fresh) <= few else processes)
            self._kept.put({fresh[path].key: answer for path, answer in answers.items()})

    def facts(self, path: str) -> FileFacts:
        if path not in self._facts:
            row = self._rows[path]
            self._facts[path] = _facts(path, self._kept.get(row.key)) or self._again(path)
        return self._facts[path]

    def text(self, path: str) -> str:
        """Each time that one is missing, twice as many of the next ones are read with it: who asks for one pays
        for one, and who asks for all starts git a few times."""
        if path not in self._texts:
            following = (one for one in self._order[self._order.index(path) :] if one not in self._texts)
            wanted = {one: self._rows[one] for one in islice(following, self._batch)}
            self._batch *= 2
            for one, data in contents(self._repository, wanted):
                self._texts[one] = data.decode("utf-8", "replace")
        return self._texts[path]

    def _again(self, path: str) -> FileFacts:
        """For a cache that lost or spoilt what it was given."""
        row = self._rows[path]
        answer = parse_all(contents(self._repository, {path: row}), processes=1).get(path)
        return _facts(path, answer) or FileFacts(_language(path), problem="cannot be read")


class _Lazy(SourceFile):
    """A `SourceFile` whose text and facts wait until they are asked for."""

    __slots__ = ("_files",)
    _files: Files

    def __init__(self, path: str, blob: str, test: bool, files: Files) -> None:
        for name, value in (("path", path), ("blob", blob), ("test", test), ("_files", files)):
            object.__setattr__(self, name, value)

    @property
    def facts(self) -> FileFacts:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._files.facts(self.path)

    @property
    def text(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._files.text(self.path)

    @property
    def barrel(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return is_barrel(self.facts)


def contents(repository: Repository, rows: Mapping[str, Row]) -> Iterator[tuple[str, bytes]]:
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
    """Of the grammars and of the code that reads their trees: facts of another version are not used."""
    digest = sha256()
    here = Path(__file__).parent
    for path in sorted((*here.glob("parsing*.py"), *here.glob("languages/*.py"), here / "facts.py")):
        digest.update(path.read_bytes())
    versions = [metadata.version(f"tree-sitter{name}") for name in _GRAMMARS]
    return f"{digest.hexdigest()[:16]} {' '.join(versions)}"


def _facts(path: str, answer: bytes | None) -> FileFacts | None:
    """None for an answer that is missing or spoilt."""
    if answer is None:
        return None
    if answer in (TIMED_OUT, CRASHED):
        return FileFacts(_language(path), problem=answer.decode())
    try:
        return decoded(answer) or FileFacts(_language(path), problem="no grammar")
    except ValueError:
        return None


def _language(path: str) -> Language:
    return LANGUAGES[PurePosixPath(path).suffix]
