"""Context files under the names that an agent reads. A condition names what is said; its agent, in which file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from trialfleet_deliveries.markdown import LineKind, scan
from trialfleet_deliveries.nodes import NODE_NAMES, ROOT_NAMES, child_nodes, inside, root_file
from trialfleet_deliveries.skills import FOLDER
from trialfleet_ledger.errors import OperatorError

UNLOADED = "CONTEXT.md"  # no agent loads a file of this name
PROMPT = "prompt"  # where the root's text is for an agent that loads no file
# Code in backquotes, or an import: also emphasised, or as the text of a link.
_IMPORT = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`).{1,2000}?(?<!`)(?P=ticks)(?!`)|(?<![^\s*_\[])@(?P<path>(?:\\ |[^\s`'\"])+)"
)
_NO_RULE = re.compile(r"\W*(?:(?:see|read|follow|use|refer to)\b[\w\s]*)?\W*", re.IGNORECASE)  # beside an import
_DEEPEST = 5  # imports of imports
_READ = (LineKind.PROSE, LineKind.HEADING)  # lines whose imports count
_SILENT = (LineKind.BLANK, LineKind.COMMENT, LineKind.HEADING)


@dataclass(frozen=True)
class FileReading:
    """How an agent comes by context files. `root_file`: the root's, which it loads by itself; `nested`: a file of
    that name follows what is read in its folder; `in_prompt`: it loads none, and gets the root's text in its
    prompt. None of them: nothing is known, and files keep their names. `skills`: the folder of its skills.
    `nested_files`: names of further files that do as `nested` says."""

    root_file: str | None = None
    nested: bool = False
    in_prompt: bool = False
    skills: str = FOLDER
    nested_files: tuple[str, ...] = ()

    @property
    def nested_names(self) -> frozenset[str]:
        """Names of the files that follow what is read in their folder."""
        own = () if self.root_file is None else (posixpath.basename(self.root_file),)
        return frozenset((*own, *self.nested_files)) if self.nested else frozenset()

    @property
    def root_names(self) -> tuple[str, ...]:
        """The names that the root's context file may have, in the order of their rank."""
        own = () if self.root_file is None or self.root_file in ROOT_NAMES else (self.root_file,)
        return (*ROOT_NAMES, *own)


AS_NAMED = FileReading()


@dataclass(frozen=True)
class PlacedFiles:
    """`files`: path -> bytes of the workspace. `read_as`: path of the context -> path of the workspace, or
    `PROMPT`, of every node that another name carries. `told`: the text for the prompt."""

    files: dict[str, bytes]
    read_as: dict[str, str]
    told: str = ""


def placed(
    files: Mapping[str, bytes], reading: FileReading, *, delivered_otherwise: bool, hooked: Collection[str] = ()
) -> PlacedFiles:
    """The files as the agent reads them. The root's node takes the name that the agent loads, unless a file of
    that name is there. Nested nodes do as well where the agent delivers them, except when a hook or the prompt's
    pull sentence delivers them (`delivered_otherwise`): else they would arrive twice. For the same reason nodes
    that a hook pushes (`hooked`), and copies of them, get a name that the agent does not load, and what imports
    them names them without importing.

    A node that moves takes along what it imports (`@path`): agents differ in what they import.
    """
    said = _list_pushed(files, reading, hooked)
    files = _without_imports(files, said)
    root = root_file(files, reading.root_names)
    if reading.in_prompt:
        if root is None:
            return PlacedFiles(dict(files), {})
        return PlacedFiles(dict(files), {root: PROMPT}, imported(files, root).strip())
    moved: dict[str, str] = {}
    if reading.root_file is not None and root is not None and reading.root_file not in files:
        moved[root] = reading.root_file
    if reading.nested and reading.root_file is not None and not delivered_otherwise:
        name = posixpath.basename(reading.root_file)
        nodes = ((node, f"{posixpath.dirname(node)}/{name}") for node in child_nodes(files))
        moved |= {node: path for node, path in nodes if path not in files}
    twice = (path for path in said if posixpath.basename(path) in reading.nested_names)
    moved |= {path: free for path in twice if (free := _free_name(path, files, reading)) is not None}
    kept = {path: data for path, data in files.items() if path not in moved}
    return PlacedFiles(kept | {path: imported(files, node).encode() for node, path in moved.items()}, moved)


def _list_pushed(files: Mapping[str, bytes], reading: FileReading, hooked: Collection[str]) -> tuple[str, ...]:
    """Nodes that a hook pushes, and copies of them in the same folder. A file that does nothing but import the
    node is a copy, too."""
    names = sorted({*NODE_NAMES, *reading.nested_names})
    beside = ((node, f"{posixpath.dirname(node)}/{name}") for node in sorted(hooked) for name in names)
    return tuple(
        path
        for node, path in beside
        if path in files and (path == node or files[path] == files.get(node) or _points_at(files, path, node))
    )


def _without_imports(files: Mapping[str, bytes], pushed: Collection[str]) -> dict[str, bytes]:
    """`files`, in which the imports of those that a hook pushes are their paths alone: the agent would load what
    it imports, and the node would arrive twice."""
    return {path: data if path in pushed else _name_alone(path, data, pushed) for path, data in files.items()}


def _name_alone(path: str, data: bytes, pushed: Collection[str]) -> bytes:
    if not pushed or b"@" not in data:
        return data

    def name(named: str) -> str | None:
        return named if inside(posixpath.join(posixpath.dirname(path), named)) in pushed else None

    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    alone = replace_imports(text, name)
    return data if alone == text else alone.encode()


def _points_at(files: Mapping[str, bytes], path: str, node: str) -> bool:
    """Whether a file consists of headings, comments and lines that import `node` and say nothing else."""
    folder, imports = posixpath.dirname(path), False
    for line in scan(files[path].decode(errors="replace")):
        imported = [one for one in _IMPORT.finditer(line.text) if one["path"]]
        found = {inside(posixpath.join(folder, _path_of(one))) for one in imported}
        beside = _IMPORT.sub(lambda one: "" if one["path"] else one[0], line.text)
        is_silent = line.kind is LineKind.HEADING or (line.kind in _READ and _NO_RULE.fullmatch(beside))
        if is_silent and found == {node}:
            imports = True
        elif found or line.kind not in _SILENT:
            return False
    return imports


def _free_name(path: str, files: Mapping[str, bytes], reading: FileReading) -> str | None:
    """A name in the same folder that no file has and the agent does not load."""
    names = (name for name in (*NODE_NAMES, UNLOADED) if name not in reading.nested_names)
    free = (f"{posixpath.dirname(path)}/{name}" for name in names)
    return next((name for name in free if name not in files), None)


def imported(files: Mapping[str, bytes], path: str) -> str:
    """The text of a file with `@path` outside of code replaced by that file's text, where the tree has it.

    >>> imported({"CLAUDE.md": b"# A\\n\\nSee @docs/b.md and me@x.org.\\n", "docs/b.md": b"B.\\n"}, "CLAUDE.md")
    '# A\\n\\nSee B. and me@x.org.\\n'
    """
    return _imported(files, path, (path,))


def _imported(files: Mapping[str, bytes], path: str, through: tuple[str, ...]) -> str:
    try:
        text = files[path].decode()
    except UnicodeDecodeError as error:
        raise OperatorError("is not UTF-8 text", where=f"context: {path}", hint="save it as UTF-8") from error

    def read(named: str) -> str | None:
        target = inside(posixpath.join(posixpath.dirname(path), named))
        if target is None or target not in files or target in through or len(through) > _DEEPEST:
            return None
        return _imported(files, target, (*through, target)).strip()

    return replace_imports(text, read)


def replace_imports(text: str, read: Callable[[str], str | None]) -> str:
    r"""`text` with what `read` says of each path that it imports by `@path`; None: that stays. A blank of a path
    is escaped, and `#section` is no part of it.

    >>> replace_imports(r"# A **@a.md** `x @b.md` @my\ c.md#d, me@e.md", "<{}>".format)
    '# A **<a.md>** `x @b.md` <my c.md>, me@e.md'
    """

    def replaced(found: re.Match[str]) -> str:
        said = read(_path_of(found)) if found["path"] else None
        return found[0] if said is None else said + found["path"][len(_written(found)) :]

    lines = (_IMPORT.sub(replaced, line.text) if line.kind in _READ else line.text for line in scan(text))
    return "\n".join(lines)


def _written(found: re.Match[str]) -> str:
    return found["path"].partition("](")[0].rstrip(".,;:)*_")


def _path_of(found: re.Match[str]) -> str:
    return _written(found).partition("#")[0].replace("\\ ", " ")


def nested_unreached(files: Mapping[str, bytes], reading: FileReading, *, delivered_otherwise: bool) -> bool:
    """Whether there are nested nodes that nothing puts before the model of an agent that is known."""
    known = reading.root_file is not None or reading.in_prompt
    return known and not reading.nested and not delivered_otherwise and bool(child_nodes(files))
