"""Read-only access to the objects of a git repository. Nothing is executed, checked out or downloaded."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from trialfleet_git.discovery import UnreadableRepository
from trialfleet_git.environment import environment
from trialfleet_git.view import GitRepository, open_repository_view, source_folder
from trialfleet_targets.errors import TargetsError

TIMEOUT_S = 300.0
_WORDS = 500
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class RepositoryError(TargetsError):
    """git refused; the message is its own, capped and without control characters."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="see `git fsck` in the repository")


_GIT_IS_MISSING = TargetsError("git is not installed", hint="install git 2.30 or newer")


@dataclass(frozen=True, slots=True)
class GitTreeEntry:
    """One row of a tree. `mode`: git's, as text. Bytes of a name that are not UTF-8 become surrogates."""

    path: str
    mode: str
    blob: str

    @property
    def link(self) -> bool:
        return self.mode == "120000"

    @property
    def submodule(self) -> bool:
        return self.mode == "160000"


@dataclass(frozen=True)
class Repository:
    """`folder`: as the operator named it. `source`: the repository, which git reads through a view."""

    folder: Path
    source: GitRepository

    @classmethod
    def open(cls, folder: Path | str) -> Repository:
        """A checkout, one of its folders, a linked work tree or a bare repository.

        Raises `TargetsError` without git, and for what is no repository.
        """
        where = Path(folder)
        if not where.is_dir():
            what = "is not a folder" if where.exists() else "does not exist"
            raise TargetsError(what, where=printable(str(folder)), hint="name the folder of a git repository")
        try:
            source = open_repository_view(where.absolute())
        except UnreadableRepository as error:
            raise TargetsError(
                f"git cannot read it: {printable(str(error))}",
                where=printable(str(folder)),
                hint="see `git status` there",
            ) from None
        except FileNotFoundError:
            raise _GIT_IS_MISSING from None
        if source is None:
            raise TargetsError(
                "is not a git repository",
                where=printable(str(folder)),
                hint="name a checkout or a bare repository; `git init` and one commit make one",
            )
        return cls(where, source)

    @property
    def git_dir(self) -> Path:
        return self.source.git_dir

    @property
    def name(self) -> str:
        return printable(str(self.folder))

    def git(self, *args: str, stdin: bytes = b"", timeout_s: float = TIMEOUT_S) -> bytes:
        """Standard output of `git <args>` on this repository. Raises `RepositoryError`."""
        return _run(self.git_dir, args, stdin=stdin, timeout_s=timeout_s)

    def resolve(self, at: str | None = None) -> str:
        """The commit that `at` (a commit, branch, tag or any of git's revisions; default: HEAD) stands for.

        Raises `TargetsError` for an empty history and for what names no commit.
        """
        asked = "HEAD" if at is None else at
        if _looks_like_revision(asked):
            wanted = f"{asked}^{{commit}}"
            with suppress(RepositoryError):
                return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", wanted).decode().strip()
        if at is None or not self.has_commits:
            raise TargetsError(
                "has no commit yet", where=self.name, hint="commit something first, or name one with --at"
            )
        raise TargetsError(
            f"'{printable(asked, 100)}' names no commit", where=f"{self.name}: --at",
            hint="give a commit, a branch or a tag that `git log` knows there",
        )  # fmt: skip

    @property
    def has_commits(self) -> bool:
        try:
            return bool(self.git("rev-list", "--all", "--max-count=1").strip())
        except RepositoryError:
            return False

    @cached_property
    def shallow(self) -> bool:
        return self.source.shallow

    @cached_property
    def shallow_ends(self) -> frozenset[str]:
        """The commits at which a shallow clone ends: their parents are not there."""
        if not self.shallow:
            return frozenset()
        try:
            return frozenset((self.git_dir / "shallow").read_text("ascii").split())
        except (OSError, UnicodeDecodeError) as error:
            raise RepositoryError(f"where the shallow clone ends cannot be read: {error}") from None

    @property
    def boundary(self) -> str:
        """What of the same commit differs between clones: where this one's history ends."""
        return " ".join(sorted(self.shallow_ends))

    @property
    def partial(self) -> bool:
        """Whether objects may be missing on purpose (`git clone --filter`)."""
        return self.source.is_partial

    def tree(self, commit: str) -> list[GitTreeEntry]:
        """Every file, link and submodule of a commit, in the order of their paths' bytes."""
        listing = self.git("ls-tree", "-r", "-z", "--full-tree", commit)
        rows: list[GitTreeEntry] = []
        for row in listing.split(b"\0")[:-1]:
            attributes, _, name = row.partition(b"\t")
            mode, _, blob = attributes.decode().split(" ")
            rows.append(GitTreeEntry(name.decode("utf-8", "surrogateescape"), mode, blob))
        return rows

    def missing(self, commit: str) -> frozenset[str]:
        """Objects of a commit's tree that a partial clone lacks; asking for one would make git download it."""
        if not self.partial:
            return frozenset()
        output = self.git("rev-list", "--objects", "--missing=print", "--no-walk", f"{commit}^{{tree}}")
        return frozenset(line[1:].decode() for line in output.splitlines() if line.startswith(b"?"))

    def sizes(self, blobs: Sequence[str]) -> dict[str, int]:
        """Object name -> bytes. An object that is missing or no blob is left out."""
        ask = "".join(f"{blob}\n" for blob in blobs).encode()
        rows = (row.split() for row in self.git("cat-file", "--batch-check", stdin=ask).decode().splitlines())
        return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}

    def contents(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Object name and content, in the given order. Raises `RepositoryError` for a missing one."""
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as complaints:
            names = list(blobs)
            asked.write("".join(f"{blob}\n" for blob in names).encode())
            asked.seek(0)
            with subprocess.Popen(
                ("git", "--git-dir", str(self.git_dir), "cat-file", "--batch"),
                stdin=asked, stdout=subprocess.PIPE, stderr=complaints, env=environment(), cwd="/",
            ) as process:  # fmt: skip
                assert process.stdout is not None
                try:
                    for _ in names:
                        head = process.stdout.readline()
                        if not head:
                            raise RepositoryError(_last_words(process, complaints))
                        name, *kind = head.decode(errors="replace").split()
                        if len(kind) != 2:
                            raise RepositoryError(f"object {printable(name)} is missing")
                        data = process.stdout.read(int(kind[1]) + 1)
                        if len(data) != int(kind[1]) + 1:
                            raise RepositoryError(f"object {printable(name)} cannot be read")
                        yield name, data[:-1]
                finally:
                    process.kill()


def _last_words(process: subprocess.Popen[bytes], complaints: IO[bytes]) -> str:
    """Why git ended before it had answered."""
    code = process.wait()
    complaints.seek(0)
    return printable(complaints.read().decode(errors="replace").strip()) or f"git ended with {code}"


def printable(text: str, limit: int = _WORDS) -> str:
    """Safe to print: control and direction characters and lone surrogates as escapes, at most `limit` characters.

    >>> printable("a\\x1b[31m\\nb")
    'a\\\\x1b[31m\\\\x0ab'
    """
    shown = _CONTROLS.sub(lambda found: _escape(ord(found[0])), text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as `surrogateescape` keeps it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _looks_like_revision(asked: str) -> bool:
    """No option, and nothing that `rev-parse` would read as several commits or as a range."""
    return bool(asked) and not asked.startswith(("-", "^")) and "\0" not in asked and len(asked) <= 1000


def _run(git_dir: Path, args: Sequence[str], *, stdin: bytes, timeout_s: float) -> bytes:
    try:
        ended = subprocess.run(
            ("git", "--git-dir", str(git_dir), *args),
            input=stdin, capture_output=True, env=environment(), cwd="/", timeout=timeout_s, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise _GIT_IS_MISSING from None
    except PermissionError as error:
        raise RepositoryError(printable(str(error))) from None
    except subprocess.TimeoutExpired:
        raise RepositoryError(f"git took longer than {timeout_s:.0f} s") from None
    if ended.returncode != 0:
        text = ended.stderr.decode(errors="replace").replace(str(git_dir), str(source_folder(git_dir)))
        lines = text.strip().splitlines()
        words = printable("\n".join(line for line in lines if not line.startswith("hint:")))
        raise RepositoryError(words or f"git ended with {ended.returncode}")
    return ended.stdout
