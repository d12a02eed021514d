"""Running git so that nothing but its arguments decides what it does."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trialfleet_git.discovery import UnreadableRepository
from trialfleet_git.environment import environment
from trialfleet_git.view import GitRepository, open_repository_view, source_folder
from trialfleet_ledger.errors import OperatorError, ProgramError

_INSTALL = "install git 2.30 or newer"


class GitError(ProgramError):
    """git refused; the message is its own, capped."""


class TooLarge(GitError):
    """The objects are there, and more or larger than the caller takes."""


def git(
    args: Sequence[str],
    *,
    git_dir: Path | None = None,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    protocols: str = "",
    timeout_s: float = 600,
) -> bytes:
    """Standard output of `git <args>`. Raises `GitError` when it fails or takes longer than `timeout_s`.

    `git_dir`: a git folder of ours, or the view of another repository (`locate_repository`): git executes what its
    configuration says.
    """
    where = ("--git-dir", str(git_dir)) if git_dir is not None else ()
    try:
        ended = subprocess.run(
            ("git", *where, *args),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env=environment(env, protocols=protocols),
            cwd="/",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError:
        raise OperatorError("git is not installed", hint=_INSTALL) from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {_subcommand(args)} took longer than {timeout_s:.0f} s") from None
    if ended.returncode != 0:
        words = _name_source(ended.stderr.decode(errors="replace").strip()[-2000:], git_dir)
        raise GitError(f"git {_subcommand(args)}: {words or f'exit {ended.returncode}'}")
    return ended.stdout


def _name_source(words: str, git_dir: Path | None) -> str:
    return words if git_dir is None else words.replace(str(git_dir), str(source_folder(git_dir)))


def _subcommand(args: Sequence[str]) -> str:
    """
    >>> _subcommand(("-c", "core.bare=true", "fast-import", "--force"))
    'fast-import'
    """
    options = {at for at, word in enumerate(args) if word in ("-c", "-C")}
    return next((word for at, word in enumerate(args) if at not in options and at - 1 not in options), "")


def locate_repository(folder: Path) -> GitRepository:
    """The repository that `folder` is or lies in: a checkout, a linked work tree, a submodule, or a bare one.
    Raises `GitError` when it lies in none, and for one that cannot be read."""
    try:
        repository = open_repository_view(folder)
    except UnreadableRepository as error:
        raise GitError(str(error)) from None
    except FileNotFoundError:
        raise OperatorError("git is not installed", hint=_INSTALL) from None
    if repository is None:
        raise GitError(f"{folder} is not a git repository")
    return repository


def read_blobs(git_dir: Path, names: Iterable[bytes], *, limit: int) -> dict[bytes, bytes]:
    """Object name -> content. Raises `GitError` for one that is missing, or beyond `limit` bytes in all."""
    ordered = sorted(set(names))
    ask = b"".join(name + b"\n" for name in ordered)
    facts = git(("cat-file", "--batch-check=%(objecttype) %(objectsize)"), git_dir=git_dir, stdin=ask).splitlines()
    for name, fact in zip(ordered, facts, strict=True):
        if not fact.startswith(b"blob "):
            raise GitError(f"object {name.decode()} is missing")
    if sum(int(fact.split(b" ")[1]) for fact in facts) > limit:
        raise TooLarge(f"more than {limit} bytes")
    answer = git(("cat-file", "--batch"), git_dir=git_dir, stdin=ask)
    found: dict[bytes, bytes] = {}
    at = 0
    for name in ordered:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split(b" ")[2])
        found[name] = answer[end + 1 : end + 1 + size]
        at = end + 2 + size
    return found
