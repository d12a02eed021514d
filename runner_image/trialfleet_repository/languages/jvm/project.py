"""Projects of Maven and Gradle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from trialfleet_repository.languages.jvm.preset import GRADLE_FILES
from trialfleet_repository.languages.manifest_files import file_in, folders_above
from trialfleet_repository.trees import ROOT, Tree

_MODULE = re.compile(rb"<module>\s*([^<>\s]+)\s*</module>")
_NAME = re.compile(rb"<artifactId>\s*([^<>\s]+)\s*</artifactId>")


def find_project(tree: Tree, folder: str) -> str:
    """Maven's: the module of the folder where it needs no other one, which then need not be built; else the
    outermost of the poms that name each other as modules. Gradle's: where its settings are."""
    poms: list[str] = []
    for place in folders_above(folder):
        pom = tree.get(file_in(place, "pom.xml"))
        if pom is not None and (not poms or _relative(poms[-1], place) in _modules(pom.data)):
            poms.append(place)
    if len(poms) > 1 and _is_alone(tree, poms):
        return poms[0]
    return poms[-1] if poms else _gradle_project(tree, folder)


def _is_alone(tree: Tree, poms: Sequence[str]) -> bool:
    """Whether a module, whose pom comes first among those above it, names no other project of the tree."""
    texts = {path: entry.data for path, entry in tree.items() if path.rpartition("/")[2] == "pom.xml"}
    above = [file_in(place, "pom.xml") for place in poms]
    others = {_own_name(texts[path]) for path in texts if path not in above}
    module, *parents = (texts[path] for path in above)
    names = _needed_names(module, own=True).union(*(_needed_names(parent, own=False) for parent in parents))
    return _own_name(module) in names and not any(b"$" in name or name in others for name in names)


def _needed_names(pom: bytes, *, own: bool) -> set[bytes]:
    """The artifacts that a pom makes a module depend on. `own`: it is the module's own pom; of one above it,
    what its plugins need is left out."""
    text, managed = _split(pom, b"dependencyManagement")
    imported = b"".join(one for one in managed.split(b"</dependency>") if b"<scope>import</scope>" in one)
    needed = text if own else _split(_split(text, b"build")[0], b"dependencies")[1]
    return {*_NAME.findall(needed), *_NAME.findall(imported)}


def _own_name(pom: bytes) -> bytes:
    name = _NAME.search(_split(pom, b"parent", b"dependencies", b"build")[0])
    return name[1] if name else b""


def _split(pom: bytes, *names: bytes) -> tuple[bytes, bytes]:
    """(The text without these elements, theirs).

    >>> _split(b"<a><b>1</b>2</a>", b"b")
    (b'<a>2</a>', b'1')
    """
    inside: list[bytes] = []
    for name in names:
        first, *rest = pom.split(b"<%s>" % name)
        pairs = [part.partition(b"</%s>" % name) for part in rest]
        inside += [one for one, _, _ in pairs]
        pom = first + b"".join(after for _, _, after in pairs)
    return pom, b"".join(inside)


def _modules(pom: bytes) -> set[str]:
    return {str(PurePosixPath(name.decode(errors="replace"))) for name in _MODULE.findall(pom)}


def _gradle_project(tree: Tree, folder: str) -> str:
    places = list(folders_above(folder))
    with_settings = [place for place in places if any(file_in(place, name) in tree for name in GRADLE_FILES[:2])]
    with_build = [place for place in places if any(file_in(place, name) in tree for name in GRADLE_FILES[2:])]
    return next((found[index] for found, index in ((with_settings, 0), (with_build, -1)) if found), ROOT)


def _relative(folder: str, above: str) -> str:
    return folder if above == ROOT else folder.removeprefix(f"{above}/")
