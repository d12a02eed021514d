"""Projects of Maven and Gradle."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from trialfleet_repository.languages.jvm.preset import GRADLE_FILES
from trialfleet_repository.languages.manifest_files import file_in, folders_above
from trialfleet_repository.trees import ROOT, Tree

_MODULE = re.compile(rb"<module>\s*([^<>\s]+)\s*</module>")


def find_project(tree: Tree, folder: str) -> str:
    """Maven's: the outermost of the poms that name each other as modules. Gradle's: where its settings are."""
    found: str | None = None
    for place in folders_above(folder):
        pom = tree.get(file_in(place, "pom.xml"))
        if pom is not None and (found is None or _relative(found, place) in _modules(pom.data)):
            found = place
    return found or _gradle_project(tree, folder)


def _modules(pom: bytes) -> set[str]:
    return {str(PurePosixPath(name.decode(errors="replace"))) for name in _MODULE.findall(pom)}


def _gradle_project(tree: Tree, folder: str) -> str:
    places = list(folders_above(folder))
    with_settings = [place for place in places if any(file_in(place, name) in tree for name in GRADLE_FILES[:2])]
    with_build = [place for place in places if any(file_in(place, name) in tree for name in GRADLE_FILES[2:])]
    return next((found[index] for found, index in ((with_settings, 0), (with_build, -1)) if found), ROOT)


def _relative(folder: str, above: str) -> str:
    return folder if above == ROOT else folder.removeprefix(f"{above}/")
