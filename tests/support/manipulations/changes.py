"""Changes that an agent makes in its workspace, as values: files, links, archives and removals."""

from __future__ import annotations

import importlib.util
import io
import marshal
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from trialfleet_repository.trees import EntryKind, TreeEntry
from trialfleet_repository.workspace_scan import Changes

Texts = Mapping[str, str]
DATA_KINDS = ("data", "link", "linked place")


def text_file(text: str, *, executable: bool = False) -> TreeEntry:
    return TreeEntry(text.encode(), EntryKind.EXEC if executable else EntryKind.FILE)


def link_to(path: str, target: str) -> TreeEntry:
    """A relative link at `path` to `target`, which is another path of the workspace.

    >>> link_to("a/b.py", "notes/c.py").data
    b'../notes/c.py'
    """
    up = "../" * path.count("/")
    return TreeEntry(f"{up}{target}".encode(), EntryKind.LINK)


def zip_of(files: Texts) -> TreeEntry:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return TreeEntry(buffer.getvalue())


def bytecode_of(text: str) -> TreeEntry:
    """A compiled module that needs no source next to it, for the Python that runs this."""
    head = importlib.util.MAGIC_NUMBER + bytes(12)
    return TreeEntry(head + marshal.dumps(compile(text, "<module>", "exec")))


def replaced_data(path: str, text: str, place: str, kind: str) -> Changes:
    """Another content of a data file, by one of `DATA_KINDS`; `place`: the folder of what a link leads to."""
    folder, _, name = path.rpartition("/")
    away = below(place, name)
    match kind:
        case "data":
            return {path: text_file(text)}
        case "link":
            return {path: link_to(path, away), away: text_file(text)}
        case "linked place":
            return {path: None, folder: link_to(folder, place), away: text_file(text)}
        case _:
            raise AssertionError(kind)


def below(folder: str, path: str) -> str:
    """
    >>> below(".", "a.py"), below("src", "a.py")
    ('a.py', 'src/a.py')
    """
    return str(PurePosixPath(folder) / path)


def write_as_agent(changes: Changes, workspace: Path) -> None:
    """Write the changes as a program in the workspace would: what is in their place goes."""
    for path, entry in sorted(changes.items()):
        target = workspace / path
        for folder in reversed(target.relative_to(workspace).parents[:-1]):
            if (workspace / folder).is_symlink() or (workspace / folder).is_file():
                (workspace / folder).unlink()  # a link or file in a folder's place
        if target.is_symlink() or target.exists():
            _remove(target)
        if entry is None:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind is EntryKind.LINK:
            target.symlink_to(entry.data.decode())
        else:
            target.write_bytes(entry.data)
            target.chmod(0o755 if entry.kind is EntryKind.EXEC else 0o644)


def _remove(target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink()
