"""The agent's workspace: one orphan commit of a tree, made once per content and copied for every attempt."""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.child_program import ChildFailure, run_program
from trialfleet_ledger.errors import ProgramError
from trialfleet_repository.cache import Cache, built_once
from trialfleet_repository.git import git
from trialfleet_repository.trees import (
    EntryKind,
    Tree,
    TreeEntry,
    TreeError,
    check,
    link_to,
    links_of,
    resolve,
    write_folder,
)

FORMAT = 1  # of a template's folder: raise it when older ones must not be used
_COPY_S = 3600.0
_WHO = "developer <developer@localhost> 946684800 +0000"
_MESSAGE = "Import"
_MODES = {EntryKind.FILE: b"100644", EntryKind.EXEC: b"100755", EntryKind.LINK: b"120000"}
# Without the limit, fast-import starts a second program that writes loose objects. Level 6 and deltas take more
# than half of git's time and make a pack a tenth smaller.
FAST_IMPORT = (
    *("-c", "fastimport.unpackLimit=1", "-c", "pack.compression=1"),
    *("fast-import", "--quiet", "--depth=0"),
)
_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = {bare}
\ttrustctime = false
\tcheckStat = minimal
[gc]
\tauto = 0
"""


@dataclass(frozen=True)
class Template:
    """`tree/`: the workspace to copy, with its own .git. `pristine.git`: the same commit, out of the agent's
    reach. `manifest.json`: path -> [kind, size, SHA-256]."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def git_dir(self) -> Path:
        return self.folder / "pristine.git"

    @cached_property
    def manifest(self) -> Mapping[str, tuple[str, int, str]]:
        stored = json.loads((self.folder / "manifest.json").read_bytes())
        return {path: (kind, size, content) for path, (kind, size, content) in stored.items()}


def template_of(tree_digest: str, files_digest: str | None, *, cache: Cache) -> Path:
    """Where the template of these two objects lies, built or not."""
    name = digest({"format": FORMAT, "tree": tree_digest, "files": files_digest})
    return cache.workspaces / name


def ready(folder: Path) -> Template | None:
    """The template, when it has been built."""
    return Template(folder) if (folder / "manifest.json").exists() else None


def with_files(tree: Tree, files: Tree) -> dict[str, TreeEntry]:
    """The tree with a condition's files put over it; a file takes the place of a folder and the reverse.

    Raises `TreeError` when a file would lie below a link.
    """
    covered = {path for path in tree for added in files if path.startswith(added + "/")}
    for path in files:
        parent = path.rpartition("/")[0]
        while parent:
            if parent in tree:
                if tree[parent].kind is EntryKind.LINK:
                    raise TreeError(f"{path!r} would go through the link {parent!r}")
                covered.add(parent)
            parent = parent.rpartition("/")[0]
    merged = {path: entry for path, entry in tree.items() if path not in covered}
    return dict(check({**merged, **files}))


def place_through_links(files: Tree, tree: Tree) -> dict[str, TreeEntry]:
    """A condition's files, each at the place where its path leads in the tree: the repository may have had a link
    where a later revision has a folder. Raises `TreeError` when two of them lead to one place.

    >>> sorted(place_through_links({"docs/a.md": TreeEntry(b"")}, {"docs": TreeEntry(b"text", EntryKind.LINK)}))
    ['text/a.md']
    """
    links = {path: target for path, target in links_of(tree).items() if path not in files}
    placed = dict[str, TreeEntry]()
    for path, entry in files.items():
        folder, _, name = path.rpartition("/")
        target = resolve(folder, links)
        if target is None:
            raise TreeError(f"{path!r} would go through a link that leaves the tree")
        place = f"{target}/{name}".lstrip("/")
        if place != path and entry.kind is EntryKind.LINK:
            to = posixpath.normpath(posixpath.join(folder, os.fsdecode(entry.data)))
            entry = link_to(posixpath.relpath(to, target or "."))
        if placed.setdefault(place, entry) != entry:
            raise TreeError(f"{path!r} and another file of the condition would both be {place!r}")
    return placed


def build_template(folder: Path, tree: Tree, files: Tree | None = None) -> Template:
    """The template in `folder` (of `template_of`), built now unless it is there. Concurrent builders wait."""
    with built_once(folder) as fresh:
        if fresh is not None:
            _build(fresh, with_files(tree, place_through_links(files or {}, tree)))
    return Template(folder)


def clone(template: Template, dest: Path) -> None:
    """An independent copy at `dest`, which must not exist: no hard links, no alternates, mtimes kept."""
    if dest.exists():
        raise TreeError(f"{dest} exists")
    _copy(template.tree, dest)


def fast_import(tree: Tree) -> bytes:
    """The stream that makes one commit without parents.

    Format: git-fast-import(1). Paths are quoted C-style with octal bytes, so any name can be written.
    """
    parts = [b"commit refs/heads/main\n", f"author {_WHO}\ncommitter {_WHO}\n".encode()]
    parts += [b"data %d\n%s\n" % (len(_MESSAGE), _MESSAGE.encode())]
    for path in sorted(tree):
        parts += modify(path, tree[path])
    return b"".join(parts)


def modify(path: str, entry: TreeEntry) -> list[bytes]:
    head = b"M %s inline %s\ndata %d\n" % (_MODES[entry.kind], quoted(path), len(entry.data))
    return [head, entry.data, b"\n"]


def quoted(path: str) -> bytes:
    """A path as git quotes it.

    >>> quoted('a b"é')
    b'"a b\\\\"\\\\303\\\\251"'
    """
    raw = path.encode("utf-8", "surrogateescape")
    plain = b"".join(
        b"\\" + bytes([c]) if c in b'"\\' else bytes([c]) if 32 <= c < 127 else b"\\%03o" % c for c in raw
    )
    return b'"' + plain + b'"'


def init_bare(folder: Path, config: str | None = None) -> None:
    """A git folder of four names: cheaper than `git init`, and nothing of the machine's templates in it."""
    for part in ("objects/info", "objects/pack", "refs/heads"):
        (folder / part).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(config or _CONFIG.format(bare="true"))


def _build(folder: Path, tree: Tree) -> None:
    pristine = folder / "pristine.git"
    init_bare(pristine)
    git(FAST_IMPORT, git_dir=pristine, stdin=fast_import(tree))
    write_folder(tree, folder / "tree")
    own = folder / "tree" / ".git"
    _copy(pristine, own)
    (own / "config").write_text(_CONFIG.format(bare="false"))
    at = ("--work-tree", str(folder / "tree"))
    git((*at, "read-tree", "refs/heads/main"), git_dir=own)
    git((*at, "update-index", "-q", "--refresh"), git_dir=own)
    manifest = {p: (e.kind.value, len(e.data), sha256(e.data)) for p, e in sorted(tree.items())}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _copy(source: Path, dest: Path) -> None:
    command = ("cp", "-a", "--reflink=auto", "--", str(source), str(dest))
    ended = run_program(command, env={**os.environ, "LC_ALL": "C"}, timeout_s=_COPY_S)
    if isinstance(ended, ChildFailure):
        raise ProgramError(str(ended))
