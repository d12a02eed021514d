"""The main source sets of the modules that a fix changes, and of the modules that they depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from trialfleet_repository.languages.manifest_files import folders_above
from trialfleet_repository.languages.project_files import ProjectFiles, reach_files

SUFFIXES = (".java", ".kt")
_MAIN = re.compile(r"(?:\A|/)src/main/(?:java|kotlin|resources)/")
_SOURCE_SET = re.compile(r"(?:\A|/)src/(?!main/)\w{1,99}/(?:java|kotlin|resources)/")
_PACKAGE = re.compile(rb"^[ \t]{0,99}package[ \t]+([\w.`]{1,300})", re.M)
_DEPENDENCY = re.compile(rb"<dependency>(.{0,4000}?)</dependency>", re.S)
_ARTIFACT = re.compile(rb"<artifactId>\s{0,99}([\w.-]{1,200})\s{0,99}</artifactId>")
_PARENT = re.compile(rb"<parent>.{0,4000}?</parent>", re.S)
_FOR_TESTS = re.compile(rb"<scope>\s{0,99}test\s{0,99}</scope>|<type>\s{0,99}test-jar")
_PROJECT = re.compile(
    rb"^[ \t]{0,99}(\w{1,99})\b[^\n]{0,99}?\bproject\s{0,9}\(?[^\n\"':]{0,99}[\"']([\w:./-]{1,200})[\"']", re.M
)
_OUTPUT = re.compile(
    r"((?:[\s\S]*?/)?)(?:target/classes|build/(?:classes/(?:java|kotlin)|resources)/main)/([\s\S]+)\Z"
)
_BUILDS = ("pom.xml", "build.gradle", "build.gradle.kts")


def find_jvm_product(project: ProjectFiles) -> frozenset[str]:
    modules = _JvmModules(project)
    changed = [path for path in project.changed if path.endswith(SUFFIXES) or _MAIN.search(path)]
    folders = reach_files(dict.fromkeys(map(modules.module_of, changed)), modules.needed_by)
    roots = tuple(dict.fromkeys(root for path in changed for root in modules.source_root(path)))
    return frozenset(
        path
        for path in project.sources
        if (_is_main(path) and modules.module_of(path) in folders)
        or (path.endswith(SUFFIXES) and path.startswith(roots))
    )


def find_jvm_sources(path: str) -> tuple[str, ...]:
    """Of a compiled class, or of a copied resource.

    >>> find_jvm_sources("core/target/classes/a/B$C.class")
    ('core/src/main/java/a/B.java', 'core/src/main/kotlin/a/B.kt')
    >>> find_jvm_sources("build/resources/main/a.properties"), find_jvm_sources("src/main/java/a/B.java")
    (('src/main/resources/a.properties',), ())
    """
    match = _OUTPUT.match(path)
    if match is None:
        return ()
    module, inside = match.groups()
    if not inside.endswith(".class"):
        return (f"{module}src/main/resources/{inside}",)
    name = inside.removesuffix(".class").partition("$")[0]
    return tuple(
        f"{module}src/main/{folder}/{name}{end}" for folder, end in (("java", ".java"), ("kotlin", ".kt"))
    )


def _is_main(path: str) -> bool:
    """Existing resources, too."""
    return _MAIN.search(path) is not None


class _JvmModules:
    def __init__(self, project: ProjectFiles) -> None:
        self.project = project

    @cached_property
    def _builds(self) -> dict[str, list[bytes]]:
        builds: dict[str, list[bytes]] = {}
        for name in _BUILDS:
            for folder, data in self.project.manifests(name):
                builds.setdefault(folder, []).append(data)
        return builds

    def module_of(self, path: str) -> str:
        """The folder of the nearest build file."""
        above = folders_above(path.rpartition("/")[0] or ".")
        return next((folder for folder in above if folder in self._builds), ".")

    def needed_by(self, folder: str) -> Iterator[str]:
        """Modules of the project that one depends on, apart from those for tests."""
        for data in self._builds.get(folder, ()):
            for dependency in _DEPENDENCY.findall(data):
                for artifact in _ARTIFACT.findall(dependency)[:1] if not _FOR_TESTS.search(dependency) else ():
                    yield from self._by_artifact.get(artifact, ())
            for configuration, name in _PROJECT.findall(data):
                place = name.decode().strip(":").replace(":", "/")
                if b"test" not in configuration.lower() and place in self._builds:
                    yield place

    @cached_property
    def _by_artifact(self) -> dict[bytes, list[str]]:
        """Folders of Maven's modules by the first artifact that their poms name, the parent's apart."""
        folders: dict[bytes, list[str]] = {}
        for folder, data in self.project.manifests("pom.xml"):
            match = _ARTIFACT.search(_PARENT.sub(b"", data))
            if match:
                folders.setdefault(match[1], []).append(folder)
        return folders

    def source_root(self, path: str) -> Iterator[str]:
        """Where packages begin, of a changed file outside of the usual source sets: its folder ends in its
        package."""
        if not path.endswith(SUFFIXES) or _MAIN.search(path) or _SOURCE_SET.search(path):
            return
        for data in self.project.texts(path):
            match = _PACKAGE.search(data)
            package = match[1].decode(errors="replace").replace("`", "").replace(".", "/") if match else ""
            folder = path.rpartition("/")[0]
            if package and folder.endswith(f"/{package}"):
                yield folder.removesuffix(package)
