"""Makes a diff of an agent's changes, and applies it to a pristine tree. Git never runs inside a workspace.

The workspace is read file by file and compared with the template's manifest; the diff is made between two commits
in the runner's own git folder. Nothing that an agent does to `.git`, attributes, filters, hooks or file names has
an effect, and commits, stashes and ignore rules make no difference.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trialfleet_repository.cache import scratch
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.git import GitError, git, read_blobs
from trialfleet_repository.languages import is_junk
from trialfleet_repository.trees import EntryKind, Tree, TreeEntry, TreeError, check, check_path, resolve
from trialfleet_repository.workspace import FAST_IMPORT, Template, init_bare, modify, quoted
from trialfleet_repository.workspace_scan import MAX_BYTES, Changes, survey

_DIFF = (
    "diff",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--diff-algorithm=myers",
)

# Attributes are of files alone; links fall to the driver of this name.
_NO_TEXT = ("-c", "diff.default.binary=true")

# Names that mean `.git` on other systems (".git ", "GIT~1") mean nothing here; git would refuse the whole patch.
_ANY_NAME = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")


class PatchError(Exception):
    """The diff does not apply to this tree, or would leave it."""


@dataclass(frozen=True)
class WorkspacePatch:
    """What an agent left: `diff` travels; the changes at `excluded` stay behind; `odd` names what is no file
    that could travel (pipes, sockets, links that leave, too large, unreadable)."""

    diff: str
    changed: tuple[str, ...]
    excluded: tuple[str, ...]
    odd: tuple[str, ...]


def diff(workspace: Path, template: Template, exclusions: Exclusions) -> WorkspacePatch:
    """Compare the workspace after the agent's run with its original."""
    found = survey(workspace, template.manifest, exclusions.made)
    changes, excluded = _split(found.changes, exclusions)
    kept, unfit = _fitting(changes, template)
    return WorkspacePatch(
        diff=between(template, kept),
        changed=tuple(sorted(kept)),
        excluded=tuple(sorted(excluded)),
        odd=tuple(sorted({*found.odd, *unfit}))[:1000],
    )


def between(template: Template, changes: Changes) -> str:
    """The unified diff of the template's commit and the same with the changes; "" for none.

    Files and links that are not UTF-8 become binary hunks, so that the diff is always text.
    """
    if not changes:
        return ""
    text, other = _by_encoding(template, changes)
    with _beside(template) as folder:
        stream = _commit("text", 1, "refs/heads/main^0", text) + _commit("other", 2, ":1", other)
        git((*FAST_IMPORT, "--force"), git_dir=folder, stdin=stream)
        raw = git((*_DIFF, "refs/heads/main", "refs/heads/text"), git_dir=folder) if text else b""
        if other:
            (folder / "info").mkdir()
            (folder / "info/attributes").write_text("* -diff\n")
            raw += git((*_NO_TEXT, *_DIFF, "refs/heads/text", "refs/heads/other"), git_dir=folder)
    return raw.decode("utf-8")


def changes_of(diff: str, template: Template, exclusions: Exclusions) -> dict[str, TreeEntry | None]:
    """The changes that a diff makes to the template's tree, without those that stay behind. Nothing is written
    outside a scratch folder: `write_changes` brings them to a checkout.

    Raises `PatchError` when it does not apply or the result would not be a safe tree.
    """
    if not diff.strip():
        return {}
    with _beside(template) as folder:
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        try:
            git((*_ANY_NAME, "read-tree", "refs/heads/main"), git_dir=folder, env=index)
            git(
                (*_ANY_NAME, "apply", "--cached", "--whitespace=nowarn", "-"),
                git_dir=folder,
                env=index,
                stdin=diff.encode(),
            )
            compare = ("diff-index", "--cached", "-z", "--no-renames", "refs/heads/main")
            rows = git(compare, git_dir=folder, env=index)
            changes = _read_rows(folder, rows)
            kept, _ = _fitting(_split(changes, exclusions)[0], template)
            check(_result(template, kept))
        except GitError as error:
            raise PatchError(f"the patch does not apply: {error}") from None
        except TreeError as error:
            raise PatchError(f"the patch would make an unsafe tree: {error}") from None
    return kept


def applied(tree: Tree, changes: Changes) -> dict[str, TreeEntry]:
    kept = {path: entry for path, entry in tree.items() if path not in changes}
    return kept | {path: entry for path, entry in changes.items() if entry is not None}


def _split(changes: Changes, exclusions: Exclusions) -> tuple[dict[str, TreeEntry | None], list[str]]:
    kept = {path: entry for path, entry in changes.items() if not exclusions.excludes(path)}
    return kept, [path for path in changes if path not in kept and not is_junk(path)]


def _result(template: Template, changes: Changes) -> Tree:
    """The tree after the changes; contents of unchanged files are left out, links are real."""
    before = {
        path: TreeEntry(_target(template, path), EntryKind.LINK)
        if kind == EntryKind.LINK
        else TreeEntry(b"", EntryKind(kind))
        for path, (kind, _, _) in template.manifest.items()
    }
    return applied(before, changes)


def _blocked(changes: Changes, template: Template) -> set[str]:
    """Changes in the place of a path that stays, and links in the place of folders."""
    stays = template.manifest.keys() - changes.keys()
    folders = {parent for path in stays for parent in _parents(path)}
    were = {parent for path in template.manifest for parent in _parents(path)}
    return {
        path
        for path, entry in changes.items()
        if entry is not None
        and (
            path in folders
            or not stays.isdisjoint(_parents(path))
            or (path in were and entry.kind is EntryKind.LINK)
        )
    }


def _fitting(changes: Changes, template: Template) -> tuple[dict[str, TreeEntry | None], list[str]]:
    """The changes that keep the tree safe, and a note about each other change: links out of the tree, files in the
    place of a path that stays (a test file became a folder), links in the place of folders (an import root could
    lead anywhere)."""
    blocked = _blocked(changes, template)
    free = {path: entry for path, entry in changes.items() if path not in blocked}
    result = _result(template, free)
    links = {p: os.fsdecode(e.data) for p, e in result.items() if e.kind is EntryKind.LINK}
    leaving = {path for path in links if path in free and resolve(path, links) is None}
    kept = {path: entry for path, entry in free.items() if path not in leaving}
    words = [f"{path} (a link that leaves the workspace)" for path in leaving]
    return kept, words + [f"{path} (in the place of what stays)" for path in blocked]


def _parents(path: str) -> list[str]:
    """Folders of a path, without the root.

    >>> _parents("a/b/c")
    ['a/b', 'a']
    """
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)]


def _by_encoding(template: Template, changes: Changes) -> tuple[Changes, Changes]:
    """(text, other). A file and what takes its place as a folder, or the reverse, go together."""
    other = {
        path
        for path, entry in changes.items()
        if not (_is_utf8(entry.data if entry else b"") and _is_utf8(_before(template, path)))
    }
    above = {parent for path in other for parent in _parents(path)}
    other |= {path for path in changes if path in above or not other.isdisjoint(_parents(path))}
    text = {path: entry for path, entry in changes.items() if path not in other}
    return text, {path: entry for path, entry in changes.items() if path in other}


def _before(template: Template, path: str) -> bytes:
    """The file's bytes or the link's target in the template; b"" for what it does not have."""
    kind = template.manifest.get(path, ("", 0, ""))[0]
    if not kind:
        return b""
    return _target(template, path) if kind == EntryKind.LINK else (template.tree / path).read_bytes()


def _target(template: Template, path: str) -> bytes:
    return os.fsencode((template.tree / path).readlink())


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def _beside(template: Template) -> Generator[Path]:
    """A git folder of our own that reads the template's objects and writes its own."""
    with scratch(template.folder.parent, ".patch-") as folder:
        own = folder / "git"
        init_bare(own)
        (own / "HEAD").write_text("ref: refs/heads/none\n")  # no commit whose attributes could be read
        (own / "objects/info/alternates").write_text(f"{template.git_dir / 'objects'}\n")
        (own / "refs/heads/main").write_bytes((template.git_dir / "refs/heads/main").read_bytes())
        yield own


def _commit(branch: str, mark: int, parent: str, changes: Changes) -> bytes:
    """Removals come first: a file may have become a folder."""
    head = f"commit refs/heads/{branch}\nmark :{mark}\ncommitter a <a@localhost> 0 +0000\ndata 0\nfrom {parent}\n"
    parts = [head.encode()]
    parts += [b"D %s\n" % quoted(path) for path in sorted(changes)]
    for path in sorted(changes):
        entry = changes[path]
        if entry is not None:
            parts += modify(path, entry)
    return b"".join(parts)


def _read_rows(folder: Path, rows: bytes) -> dict[str, TreeEntry | None]:
    kinds = {"100644": EntryKind.FILE, "100755": EntryKind.EXEC, "120000": EntryKind.LINK}
    found: dict[str, tuple[EntryKind, bytes] | None] = {}
    fields = rows.split(b"\0")
    for head, name in zip(fields[0:-1:2], fields[1::2], strict=True):
        _, mode, _, blob, status = head.decode().removeprefix(":").split(" ")
        path = check_path(name.decode("utf-8", "surrogateescape"))
        if status != "D" and mode not in kinds:
            raise TreeError(f"{path!r} would become neither file nor link")
        found[path] = None if status == "D" else (kinds[mode], blob.encode())
    blobs = read_blobs(folder, (kept[1] for kept in found.values() if kept), limit=2 * MAX_BYTES)
    return {path: TreeEntry(blobs[kept[1]], kept[0]) if kept else None for path, kept in found.items()}
