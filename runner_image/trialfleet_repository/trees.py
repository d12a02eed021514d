"""A file tree as a value, and its one canonical tar.

A tree maps relative paths to entries. It never holds an absolute path, `..`, a `.git`, an entry below a file or
link, or a link that leaves it: `check` is the one gate, and everything that makes a tree passes through it.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from trialfleet_ledger.archives import ArchiveError, read_members
from trialfleet_ledger.canonical import sha256

ROOT = "."  # the repository's folder, as a relative path
MAX_FILES = 100_000
MAX_BYTES = 2**30
_HEADERS = 4096  # bytes of a member of a tar, next to its content
MTIME = 946_684_800  # 2000-01-01: in the past, so that git never takes a fresh checkout for racy


class EntryKind(StrEnum):
    FILE = "file"
    EXEC = "exec"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file's bytes, or a link's target."""

    data: bytes
    kind: EntryKind = EntryKind.FILE


Tree = Mapping[str, TreeEntry]


class TreeError(ValueError):
    """These entries are not a tree that may be written anywhere."""


def check_path(path: str) -> str:
    """The path itself when it is a plain relative one. Raises `TreeError`.

    >>> check_path("a/b.py")
    'a/b.py'
    """
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise TreeError(f"path {path!r} is not a plain relative path")
    if any(part.lower() == ".git" for part in parts):
        raise TreeError(f"path {path!r} goes into a .git")
    if len(os.fsencode(path)) > 4000 or any(len(os.fsencode(part)) > 255 for part in parts):
        raise TreeError(f"path {path[:80]!r}… is too long")
    return path


def check(tree: Tree) -> Tree:
    """The tree itself when it is safe to write into an empty folder. Raises `TreeError`."""
    if len(tree) > MAX_FILES:
        raise TreeError(f"{len(tree)} files are more than {MAX_FILES}")
    if sum(len(entry.data) for entry in tree.values()) > MAX_BYTES:
        raise TreeError(f"more than {MAX_BYTES} bytes")
    folders: set[str] = set()
    for path in tree:
        check_path(path)
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    for path in folders & tree.keys():
        raise TreeError(f"{path!r} is a file or link and a folder")
    links = links_of(tree)
    for path in links:
        if resolve(path, links) is None:
            raise TreeError(f"link {path!r} leaves the tree")
    return tree


def links_of(tree: Tree) -> dict[str, str]:
    return {path: os.fsdecode(entry.data) for path, entry in tree.items() if entry.kind is EntryKind.LINK}


def resolve(path: str, links: Mapping[str, str]) -> str | None:
    """Where `path` leads when every link on the way is followed; None when it leaves the tree or never ends.

    >>> resolve("x/up/../..", {"x/up": ".."}) is None, resolve("x/up/a", {"x/up": ".."})
    (True, 'a')
    """
    done: list[str] = []
    todo = path.split("/")[::-1]
    followed = 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                return None
            done.pop()
            continue
        target = links.get("/".join([*done, part]))
        if target is None:
            done.append(part)
            continue
        followed += 1
        if target.startswith("/") or not target or "\0" in target or followed > 40 or len(todo) > 4000:
            return None
        todo.extend(target.split("/")[::-1])
    return "/".join(done)


def follow_links(tree: Tree) -> dict[str, TreeEntry]:
    """The files of the tree by every path that leads to one: a link to a file counts as that file, a link to a
    folder as the files below it. A link that leads to nothing of the tree is left out. Raises `TreeError` for more
    paths than a tree may have.

    >>> sorted(follow_links({"a/x": TreeEntry(b""), "b": TreeEntry(b"a", EntryKind.LINK)}))
    ['a/x', 'b/x']
    """
    links = links_of(tree)
    files = {path: entry for path, entry in tree.items() if path not in links}
    led = linked_files(links, files).values()
    found = {path: files[source] for one in led for path, source in one.items()} | files
    return dict(sorted(found.items()))


def read_files(tree: Tree) -> dict[str, bytes]:
    """The bytes of each file, as `follow_links` finds them."""
    return {path: entry.data for path, entry in follow_links(tree).items()}


def with_links(files: Tree, declared: Tree) -> dict[str, TreeEntry]:
    """`files` with the links of `declared`, each in the place of the copies that stand for it: it stays a link if
    these are as the files to which it leads, or if it leads to nothing of the tree.

    >>> made = with_links({"a": TreeEntry(b"x"), "b": TreeEntry(b"x")}, {"a": TreeEntry(b"x"), "b": link_to("a")})
    >>> made["b"].kind.value
    'link'
    """
    links = links_of(declared)
    led_before = linked_files(links, declared.keys() - links.keys())
    placed = sorted(files)
    copies = {link: {*_list_below(placed, link), *({link} & files.keys())} for link in links}
    while True:
        gone = set[str]().union(*(copies[link] for link in links))
        led_now = linked_files(links, files.keys() - gone)
        kept = {
            link: links[link]
            for link, led in led_now.items()
            if copies[link] == led.keys()
            and led == led_before[link]
            and all(files[path] == files[file] for path, file in led.items())
        }
        if kept == links:
            return {path: files[path] for path in files if path not in gone} | {
                link: declared[link] for link in kept
            }
        links = kept  # one that does not stay changes what others lead to


def link_to(target: str) -> TreeEntry:
    """A link as an entry."""
    return TreeEntry(os.fsencode(target), EntryKind.LINK)


def is_at_or_below(path: str, folder: str) -> bool:
    """Whether the path is that of the folder or of something in it."""
    return path == folder or path.startswith(f"{folder}/")


def linked_files(
    links: Mapping[str, str], files: Collection[str], chosen: Collection[str] | None = None
) -> dict[str, dict[str, str]]:
    """Link -> the paths that lead through it, each with the file where it leads, also through links below the
    folder to which it leads. `chosen`: the links that are asked for; None: all. No folder holds itself. Raises
    `TreeError` for too many.

    >>> linked_files({"a": "b", "b/c": "../d"}, ["b/x", "d/y"])["a"]
    {'a/x': 'b/x', 'a/c/y': 'd/y'}
    """
    known = frozenset(files)
    listed = sorted({*files, *links})
    found = {link: dict[str, str]() for link in (links if chosen is None else chosen)}
    left = MAX_FILES
    for link, led in found.items():
        todo: list[tuple[str, str, tuple[str, ...]]] = [(link, link, ())]
        while todo:
            path, real, passed = todo.pop()
            target = resolve(real, links)
            if target in known:
                led[path] = target
            elif target and target not in passed and not is_at_or_below(real, target):
                for own in _list_below(listed, target):
                    below = f"{path}/{own[len(target) + 1 :]}"
                    if own in links:
                        todo.append((below, own, (*passed, target)))
                    else:
                        led[below] = own
                    left -= 1
            left -= 1
            if left < 0:
                raise TreeError(f"links lead to more than {MAX_FILES} files")
    return found


def _list_below(listed: Sequence[str], folder: str) -> Sequence[str]:
    """Of sorted paths."""
    start = bisect_left(listed, f"{folder}/")
    return listed[start : bisect_left(listed, f"{folder}0", start)]  # "0" is next to "/"


def without_leaving_links(tree: Tree) -> dict[str, TreeEntry]:
    """The tree without the links that leave it: what a source may bring and no workspace may hold."""
    links = links_of(tree)
    return {p: e for p, e in tree.items() if e.kind is not EntryKind.LINK or resolve(p, links) is not None}


def changed(old: Tree, new: Tree) -> tuple[str, ...]:
    """Sorted paths that differ, also by being absent from one side."""
    return tuple(sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path)))


def is_folder(tree: Tree, path: str) -> bool:
    """Whether files lie below `path`."""
    prefix = path.rstrip("/") + "/"
    return any(name.startswith(prefix) for name in tree)


# --- tar --------------------------------------------------------------------------------------------


def pack(tree: Tree) -> bytes:
    """The canonical tar: sorted names, mtime 0, uid and gid 0, modes 0644, 0755 and 0777 for links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(check(tree)):
            entry = tree[path]
            info = tarfile.TarInfo(path)
            if entry.kind is EntryKind.LINK:
                info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, os.fsdecode(entry.data)
                tar.addfile(info)
            else:
                info.mode = 0o755 if entry.kind is EntryKind.EXEC else 0o644
                info.size = len(entry.data)
                tar.addfile(info, io.BytesIO(entry.data))
    return buffer.getvalue()


def tree_digest(tree: Tree) -> str:
    """SHA-256 of the canonical tar: the name of the tree as an object."""
    return sha256(pack(tree))


def unpack(data: bytes) -> dict[str, TreeEntry]:
    """The tree of a tar that `pack` made. Raises `TreeError` for any other bytes."""
    return dict(check(read_tar(io.BytesIO(data), _refuse)))


def read_tar(file: BinaryIO, odd: Callable[[tarfile.TarInfo], None]) -> dict[str, TreeEntry]:
    """Files and links of an uncompressed tar, unchecked but bounded; `odd` is asked about every other kind of
    member. Raises `TreeError`.

    A hard link becomes a copy of the member it names; a name that stands twice means its last content.
    """
    tree: dict[str, TreeEntry] = {}
    try:
        for member, data in read_members(file, most=2 * MAX_FILES, most_bytes=MAX_BYTES + MAX_FILES * _HEADERS):
            _add_member(tree, member, data, odd)
            if len(tree) > MAX_FILES:
                raise TreeError("more files than a repository may have")
    except ArchiveError as error:
        raise TreeError(f"not a tar of a repository: {error}") from None
    return tree


def _add_member(
    tree: dict[str, TreeEntry], member: tarfile.TarInfo, data: bytes, odd: Callable[[tarfile.TarInfo], None]
) -> None:
    path = member.name.removeprefix("./").rstrip("/")
    if member.issym():
        tree[path] = TreeEntry(os.fsencode(member.linkname), EntryKind.LINK)
    elif member.islnk() and member.linkname.removeprefix("./") in tree:
        tree[path] = tree[member.linkname.removeprefix("./")]
    elif member.isreg():
        tree[path] = TreeEntry(data, EntryKind.EXEC if member.mode & 0o100 else EntryKind.FILE)
    elif not member.isdir():
        odd(member)


def _refuse(member: tarfile.TarInfo) -> None:
    raise TreeError(f"{member.name!r} is neither file, folder nor link")


# --- folders ----------------------------------------------------------------------------------------


def read_folder(root: Path, *, skip: Callable[[str], bool] = lambda _: False) -> dict[str, TreeEntry]:
    """Files and links below `root`, without any `.git`; links are kept when they stay inside, sockets and
    devices left out. `skip` sees the path of a file or folder."""
    tree: dict[str, TreeEntry] = {}
    total = 0
    for path, kind, size in _walk(root, skip):
        total += size
        if len(tree) >= MAX_FILES or total > MAX_BYTES:
            raise TreeError(f"{root}: more files or bytes than a repository may have")
        tree[path] = TreeEntry(read_entry(root / path), kind)
    return dict(check(without_leaving_links(tree)))


def list_folder(root: Path) -> dict[str, EntryKind]:
    """What `read_folder` would read, with the links that leave it; no file is opened. Raises `TreeError`."""
    kinds: dict[str, EntryKind] = {}
    for path, kind, _ in _walk(root, lambda _: False):
        kinds[path] = kind
        if len(kinds) > MAX_FILES:
            raise TreeError(f"{root}: more files than a repository may have")
    return kinds


def read_entry(path: Path) -> bytes:
    """A file's bytes, or a link's target."""
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def _walk(root: Path, skip: Callable[[str], bool]) -> Iterator[tuple[str, EntryKind, int]]:
    """Path, kind and size of every file and link."""
    todo = [""]
    while todo:
        folder = todo.pop()
        with os.scandir(root / folder) as children:
            for child in children:
                path = f"{folder}/{child.name}" if folder else child.name
                if child.name.lower() == ".git" or skip(path):
                    continue
                known = child.stat(follow_symlinks=False)
                if stat.S_ISLNK(known.st_mode):
                    yield path, EntryKind.LINK, 0
                elif stat.S_ISDIR(known.st_mode):
                    todo.append(path)
                elif stat.S_ISREG(known.st_mode):
                    yield path, EntryKind.EXEC if known.st_mode & 0o100 else EntryKind.FILE, known.st_size


def write_folder(tree: Tree, dest: Path) -> None:
    """Write into `dest`, which must be absent or empty; every file gets the same old mtime."""
    check(tree)
    dest.mkdir(parents=True, exist_ok=True)
    if any(dest.iterdir()):
        raise TreeError(f"{dest} is not empty")
    _write(tree, dest, sorted(tree))


def write_changes(changes: Mapping[str, TreeEntry | None], dest: Path) -> tuple[str, ...]:
    """Make the changes in a folder that `write_folder` or `clone` wrote and nobody has changed since; None
    removes. Returns the paths that were left out, because something that stays is in their place: the changes
    may have been made on another tree than this one.
    """
    for path in sorted((path for path in changes if _is_reachable(dest, path)), reverse=True):
        target = dest / path
        if target.is_symlink() or target.is_file():
            target.unlink()
        if changes[path] is None:
            _prune(target.parent, dest)
    added = {path: entry for path, entry in changes.items() if entry is not None}
    free = {path: added[path] for path in added if _is_reachable(dest, path) and not (dest / path).is_dir()}
    _write(free, dest, sorted(free), mtime=None)
    leaving = {path for path in links_of(free) if not (dest / path).resolve().is_relative_to(dest.resolve())}
    for path in leaving:
        (dest / path).unlink()
    return tuple(sorted(leaving | (added.keys() - free.keys())))


def _is_reachable(dest: Path, path: str) -> bool:
    """Whether the parents of `path` are folders or absent: no file, no link."""
    folder = dest
    for part in path.split("/")[:-1]:
        folder = folder / part
        if folder.is_symlink() or folder.is_file():
            return False
    return True


def _prune(folder: Path, root: Path) -> None:
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _write(tree: Tree, dest: Path, paths: Iterable[str], mtime: int | None = MTIME) -> None:
    made = {""}
    base = str(dest)
    for path in paths:
        parent = path.rpartition("/")[0]
        if parent not in made:
            (dest / parent).mkdir(parents=True, exist_ok=True)
            made.add(parent)
        entry = tree[path]
        target = f"{base}/{path}"
        if entry.kind is EntryKind.LINK:
            Path(target).symlink_to(os.fsdecode(entry.data))
        else:
            mode = 0o755 if entry.kind is EntryKind.EXEC else 0o644
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(entry.data)
                os.fchmod(descriptor, mode)
        if mtime is not None:
            os.utime(target, (mtime, mtime), follow_symlinks=False)
