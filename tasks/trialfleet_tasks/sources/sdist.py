"""Trees of two releases on a package index. Archives are read, never built: no code of theirs runs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import zipfile
import zlib
from typing import BinaryIO, cast

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import SdistSource
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.package_index import fetch_sdist
from trialfleet_repository.trees import (
    MAX_BYTES,
    MAX_FILES,
    EntryKind,
    Tree,
    TreeEntry,
    TreeError,
    check,
    is_folder,
    read_tar,
    without_leaving_links,
)


def read(source: SdistSource, *, cache: Cache, where: str) -> tuple[dict[str, TreeEntry], dict[str, TreeEntry]]:
    """(pre-fix tree, fixed tree). Raises `OperatorError`."""
    fixed = release(source.fixed, source.fixed_sha256, cache=cache, where=f"{where}: source.fixed")
    older = release(source.pre_fix, source.pre_fix_sha256, cache=cache, where=f"{where}: source.pre_fix")
    return with_older_files(fixed, older, source.files, where=f"{where}: source.files"), fixed


def with_older_files(newer: Tree, older: Tree, files: tuple[str, ...], *, where: str) -> dict[str, TreeEntry]:
    """The newer tree with the named files as in the older one; what the older lacks is removed."""
    tree = dict(newer)
    for path in files:
        if is_folder(newer, path) or is_folder(older, path):
            raise OperatorError(f"{path!r} is a folder", where=where, hint="name the files")
        if path not in newer and path not in older:
            raise OperatorError(f"{path!r} is in neither release", where=where, hint="check the path")
        if newer.get(path) == older.get(path):
            raise OperatorError(
                f"{path!r} is the same in both releases", where=where, hint="remove it from the list"
            )
        tree.pop(path, None)
        if path in older:
            tree[path] = older[path]
    return tree


def release(requirement: str, digest: str, *, cache: Cache, where: str) -> dict[str, TreeEntry]:
    """Tree of `name==version`'s source archive, its one root folder stripped. Kept in the cache by digest."""
    kept = cache.sdists / digest
    data = kept.read_bytes() if kept.exists() else b""
    if sha256(data) != digest:
        name, _, version = requirement.partition("==")
        _, data = fetch_sdist(name, version, digest, where=where)
        if sha256(data) != digest:
            raise OperatorError(
                f"{requirement} has SHA-256 {sha256(data)}, not {digest}",
                where=where,
                hint="correct the digest, if you trust the index",
            )
        write_whole(kept, data)
    try:
        return unpack_archive(data)
    except TreeError as error:
        raise OperatorError(f"{requirement} cannot be unpacked: {error}", where=where) from None


def unpack_archive(data: bytes) -> dict[str, TreeEntry]:
    """Tree of a .tar.* or .zip. Raises `TreeError` for what must not be written anywhere."""
    if zipfile.is_zipfile(io.BytesIO(data)):
        members = _read_zip(data)
    else:
        members = read_tar(_decompressing(data), lambda _: None)
    roots = {path.partition("/")[0] for path in members}
    if len(roots) != 1 or roots & {"", ".", ".."} or any("/" not in path for path in members):
        raise TreeError("not one root folder")
    tree = {path.partition("/")[2]: entry for path, entry in members.items()}
    inside = {path: entry for path, entry in tree.items() if not _in_git(path)}
    return dict(check(without_leaving_links(inside)))


def _decompressing(data: bytes) -> BinaryIO:
    """A stream of the tar. `read_tar` bounds what is read of it."""
    file = io.BytesIO(data)
    for mark, opened in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open)):
        if data.startswith(mark):
            return cast("BinaryIO", opened(file))
    return file


def _in_git(path: str) -> bool:
    return any(part.lower() == ".git" for part in path.split("/"))


def _read_zip(data: bytes) -> dict[str, TreeEntry]:
    try:
        return _zip_members(data)
    except TreeError:
        raise
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise TreeError(f"not a zip of a repository: {error}") from None  # RuntimeError: it is encrypted


def _zip_members(data: bytes) -> dict[str, TreeEntry]:
    tree: dict[str, TreeEntry] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        if len(infos) > MAX_FILES or sum(info.file_size for info in infos) > MAX_BYTES:
            raise TreeError("more files or bytes than a repository may have")
        for info in infos:
            mode = info.external_attr >> 16
            content = archive.read(info)
            if stat.S_ISLNK(mode):
                tree[info.filename] = TreeEntry(os.fsencode(content.decode("utf-8", "replace")), EntryKind.LINK)
            else:
                tree[info.filename] = TreeEntry(content, EntryKind.EXEC if mode & 0o100 else EntryKind.FILE)
    return tree
