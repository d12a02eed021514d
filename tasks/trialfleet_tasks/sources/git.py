"""Exact trees of a git repository: read as objects, so no hook, filter or attribute has a say."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from trialfleet_agents.context_files import named
from trialfleet_git.view import source_folder
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.cache import Cache, built_once, locked
from trialfleet_repository.git import GitError, TooLarge, git, locate_repository, read_blobs
from trialfleet_repository.trees import (
    MAX_BYTES,
    MAX_FILES,
    EntryKind,
    Tree,
    TreeEntry,
    TreeError,
    check,
    check_path,
    without_leaving_links,
)
from trialfleet_repository.workspace import fast_import, init_bare
from trialfleet_tasks.settings import mirror_of, plain_url

_URL = re.compile(
    r"(https?|ssh|file)://[^\s]+|[\w.-]+@[\w.-]+:[^\s]+|/.*", re.DOTALL
)  # a path may hold any character
_PROTOCOLS = "https:http:ssh:file"
_SHA256_DIGITS = 64  # of a commit's name
ENTRY_KINDS = {
    b"100644": EntryKind.FILE,
    b"100664": EntryKind.FILE,
    b"100755": EntryKind.EXEC,
    b"120000": EntryKind.LINK,
}


def repository(
    url: str, commits: tuple[str, ...], *, cache: Cache, mirrors: Mapping[str, Path], where: str = "url"
) -> Path:
    """A git folder that has the commits: the user's mirror of `url`, or a clone in the cache.

    Raises `OperatorError` naming the url, `where` it is written, and the way out.
    """
    mirror = mirror_of(url, mirrors)
    if mirror is not None:
        return _mirror(mirror, url, commits)
    if not _URL.fullmatch(url):
        raise OperatorError(
            f"{url!r} is not a URL that can be cloned",
            where=where,
            hint="use https://, ssh://, file://, an absolute path, or one that begins with ./",
        )
    with _clone(url, commits[0], cache, "") as folder:
        missing = [commit for commit in commits if not has_commit(folder, commit)]
        if missing:
            _fetch(folder, url, missing)
    return folder


def with_history(url: str, commit: str, *, cache: Cache, mirrors: Mapping[str, Path]) -> Path | None:
    """A git folder with the commit and its history: the user's mirror, or a clone in the cache; None if neither is
    available. The clone gets nothing later than `commit`."""
    mirror = mirror_of(url, mirrors)
    if mirror is not None:
        folder = _mirror(mirror, url, (commit,))
        return None if (folder / "shallow").exists() else folder
    with _clone(url, commit, cache, "-history") as folder:
        if not has_commit(folder, commit):
            try:
                whole = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", _address(url), commit)
                git(whole, git_dir=folder, protocols=_PROTOCOLS, timeout_s=3600)
            except GitError:
                return None
    return folder


@contextmanager
def _clone(url: str, commit: str, cache: Cache, kind: str) -> Generator[Path]:
    """The cache's clone of `url`, empty at first, for this process alone. A commit's name tells the hash of its
    repository."""
    form = "sha256" if len(commit) == _SHA256_DIGITS else "sha1"
    name = f"{sha256(os.fsencode(plain_url(url)))[:32]}{kind}{'' if form == 'sha1' else '-sha256'}.git"
    folder = cache.git / name
    with locked(folder):
        if not (folder / "HEAD").exists():
            git(("init", "--bare", "--quiet", "--template=", f"--object-format={form}", str(folder)))
        yield folder


def orphan(tree: Tree, folder: Path) -> Path:
    """A git folder at `folder` whose only commit is the tree, built unless it is there."""
    with built_once(folder) as fresh:
        if fresh is not None:
            init_bare(fresh)
            git(
                ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet"),
                git_dir=fresh,
                stdin=fast_import(tree),
            )
    return folder


def has_commit(folder: Path, commit: str) -> bool:
    """Whether the commit is there."""
    try:
        return git(("cat-file", "-t", commit), git_dir=folder).strip() == b"commit"
    except GitError:
        return False


def read_tree(folder: Path, commit: str, *, where: str, unread: Iterable[str] = ()) -> dict[str, TreeEntry]:
    """Every file and link of a commit; submodules are left out, links that leave the tree too.

    What `unread` names (patterns as in `strip_extra`) is listed as empty files: it is removed anyway, and large
    data is what clones lack most often.
    Raises `OperatorError` when an object is missing (a shallow or filtered clone) or the tree is hostile.
    """
    listing = git(("ls-tree", "-r", "-z", "--full-tree", commit), git_dir=folder)
    rows: list[tuple[str, EntryKind, bytes]] = []
    for row in listing.split(b"\0")[:-1]:
        facts, _, name = row.partition(b"\t")
        mode, _, blob = facts.split(b" ")
        if mode in ENTRY_KINDS:
            rows.append((name.decode("utf-8", "surrogateescape"), ENTRY_KINDS[mode], blob))
    try:
        if len(rows) > MAX_FILES:
            raise TooLarge(f"{len(rows)} files are more than {MAX_FILES}")
        for path, _, _ in rows:
            check_path(path)
        empty = set(named((path for path, _, _ in rows), unread))
        blobs = read_blobs(folder, {blob for path, _, blob in rows if path not in empty}, limit=MAX_BYTES)
        tree = {p: TreeEntry(blobs[blob], kind) for p, kind, blob in rows if p not in empty}
        return dict(check(without_leaving_links({**tree, **dict.fromkeys(empty, TreeEntry(b""))})))
    except TreeError as error:
        raise OperatorError(f"commit {commit[:12]}: {error}", where=where) from None
    except TooLarge as error:
        raise OperatorError(
            f"commit {commit[:12]}: {error}",
            where=where,
            hint=f"use a repository of at most {MAX_FILES} files and {MAX_BYTES} bytes: each trial copies it",
        ) from None
    except (GitError, KeyError) as error:
        place = source_folder(folder)
        raise OperatorError(
            f"commit {commit[:12]} is incomplete in {place}: {error}",
            where=where,
            hint=f"use a full clone, or complete it: git -C {place} fetch --unshallow --refetch --no-filter",
        ) from None


def message(folder: Path, commit: str) -> str:
    """The commit's message; git turns the encoding that the commit names into UTF-8."""
    return git(("log", "-1", "--format=%B", commit, "--"), git_dir=folder).decode("utf-8", "replace").strip()


def _mirror(mirror: Path, url: str, commits: tuple[str, ...]) -> Path:
    try:
        folder = locate_repository(mirror).git_dir
    except GitError:
        raise OperatorError(
            f"{mirror} is not a git clone", where=f"mirror of {url}", hint="create it with `git clone --bare`"
        ) from None
    missing = [commit for commit in commits if not has_commit(folder, commit)]
    if missing:
        shallow = (folder / "shallow").exists()
        raise OperatorError(
            f"{mirror} {'is a shallow clone and ' if shallow else ''}lacks commit {missing[0]}",
            where=f"mirror of {url}",
            hint=f"deepen it: git -C {mirror} fetch --unshallow"
            if shallow
            else f"update it: git -C {mirror} fetch --all",
        )
    return folder


def _fetch(folder: Path, url: str, commits: list[str]) -> None:
    """Fetch the commits alone, or everything if the server does not serve single commits."""
    _download(folder, url, commits)
    missing = [commit for commit in commits if not has_commit(folder, commit)]
    if missing:
        raise OperatorError(
            f"the repository has no commit {missing[0]}",
            where=url,
            hint="check the SHA; was the branch rewritten?",
        )


def _download(folder: Path, url: str, commits: list[str]) -> None:
    quiet = ("fetch", "--quiet", "--no-write-fetch-head")
    try:
        address = _address(url)
        try:
            only = (*quiet, "--no-tags", "--depth=1", "--", address, *commits)
            git(only, git_dir=folder, protocols=_PROTOCOLS, timeout_s=1800)
        except GitError:
            whole = (*quiet, "--", address, "+refs/*:refs/fetched/*")
            git(whole, git_dir=folder, protocols=_PROTOCOLS, timeout_s=3600)
    except GitError as error:
        raise OperatorError(
            f"the repository cannot be cloned: {error}",
            where=url,
            hint="check the address and the network, or name a local clone: --mirror URL=DIR",
        ) from None


def _address(url: str) -> str:
    """What git may fetch from. A repository on this machine is fetched through a view: git would start a server in
    it, under its configuration. Raises `GitError` for a folder that is no repository."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "file":
        return url
    folder = Path("/", unquote(rest)) if separator else Path(url)
    if not separator and not folder.is_absolute():
        return url  # user@host:path
    if folder.is_file():
        return str(folder)  # a bundle
    with_suffix = folder.with_name(f"{folder.name}.git")
    return str(locate_repository(folder if folder.is_dir() else with_suffix).git_dir)
