"""Running git so that nothing but its arguments decides what it does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.errors import OperatorError, ProgramError

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.quotePath=true",
    "core.pager=cat",
    "log.showSignature=false",
    "i18n.logOutputEncoding=UTF-8",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
    "init.defaultBranch=main",
    "credential.helper=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "transfer.fsckObjects=false",
    "uploadpack.allowAnySHA1InWant=true",
)
_KEPT = ("PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "SSH_AUTH_SOCK")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class GitError(ProgramError):
    """git refused; the message is its own, capped."""


class TooLarge(GitError):
    """The objects are there, and more or larger than the caller takes."""


@dataclass(frozen=True)
class GitRepository:
    """Where git keeps a repository. `git_dir`: HEAD and index, which each linked work tree has for itself.
    `common_dir`: objects, branches and tags. `work_tree`: the root of the checked-out files, None if bare."""

    git_dir: Path
    common_dir: Path
    work_tree: Path | None

    @property
    def root(self) -> Path:
        """The work tree; of a bare repository, its own folder."""
        return self.work_tree or self.git_dir

    @property
    def shallow(self) -> bool:
        return (self.common_dir / "shallow").exists()


def environment(extra: Mapping[str, str] | None = None, *, protocols: str = "") -> dict[str, str]:
    """Variables for git: no configuration of the machine or the user, no prompt, no lazy download, only the
    named protocols (colon-separated; none by default)."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}
    fixed = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": protocols or "none",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        "LC_ALL": "C.UTF-8",
    }
    for index, setting in enumerate(_SETTINGS):
        key, _, value = setting.partition("=")
        fixed[f"GIT_CONFIG_KEY_{index}"], fixed[f"GIT_CONFIG_VALUE_{index}"] = key, value
    return {**kept, **fixed, **(extra or {})}


def git(
    args: Sequence[str],
    *,
    git_dir: Path | None = None,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    protocols: str = "",
    timeout_s: float = 600,
) -> bytes:
    """Standard output of `git <args>`. Raises `GitError` when it fails or takes longer than `timeout_s`."""
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
        raise OperatorError("git is not installed", hint="install git 2.30 or newer") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {_subcommand(args)} took longer than {timeout_s:.0f} s") from None
    if ended.returncode != 0:
        words = ended.stderr.decode(errors="replace").strip()[-2000:]
        raise GitError(f"git {_subcommand(args)}: {words or f'exit {ended.returncode}'}")
    return ended.stdout


def _subcommand(args: Sequence[str]) -> str:
    """
    >>> _subcommand(("-c", "core.bare=true", "fast-import", "--force"))
    'fast-import'
    """
    options = {at for at, word in enumerate(args) if word in ("-c", "-C")}
    return next((word for at, word in enumerate(args) if at not in options and at - 1 not in options), "")


def locate_repository(folder: Path) -> GitRepository:
    """The repository that `folder` is or lies in: a checkout, a linked work tree, a submodule, or a bare one.
    Raises `GitError` when it lies in none."""
    start = folder.resolve()

    def ask(*words: str) -> Path:
        return Path(os.fsdecode(git(("-C", str(start), "rev-parse", *words)).removesuffix(b"\n")))

    git_dir = ask("--absolute-git-dir")
    common_dir = (start / ask("--git-common-dir")).resolve()
    is_checked_out = ask("--is-inside-work-tree") == Path("true")
    return GitRepository(git_dir, common_dir, ask("--show-toplevel") if is_checked_out else None)


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
