"""The formats of results, and what a test command of each is given as `{tests}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_repository.results.limits import as_object

Read = Callable[[str], bytes | None]  # the content of a file of the repository, None when there is no such file

_MAX_MANIFEST = 2**20
_MAX_DEPTH = 50
_SOURCE_ROOT = re.compile(r"(?:.*/)?(?:java|kotlin|groovy|scala)/(.+)")
_JVM_SOURCE = re.compile(r"\.(?:java|kt|groovy|scala)$")
_CRATE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]*")


def arguments(format: ResultFormat, tests: Sequence[str], read: Read) -> tuple[str, ...]:
    """What replaces `{tests}`: for ids (`unit::name`) or test files, the smallest units that the runner accepts.

    Surefire's classes are joined with commas by the caller. Raises `ValueError` for pytest, whose ids are its
    arguments.

    >>> arguments("go", ["pkg/a/x_test.go", "example.com/m/b::TestB/one"], lambda path: None)
    ('./pkg/a', 'example.com/m/b')
    >>> arguments("surefire", ["src/test/java/org/x/FooTest.java", "org.x.FooTest$Inner::adds"], lambda path: None)
    ('org.x.FooTest',)
    """
    units = [test.partition("::")[0] for test in tests]
    match format:
        case "pytest":
            raise ValueError("pytest is given ids, see test_call.selection")
        case "go":
            return _each_once(_go_package(unit) for unit in units)
        case "surefire":
            return _each_once(java_class(unit).partition("$")[0] for unit in units)
        case "gradle":
            classes = _each_once(java_class(unit).partition("$")[0] for unit in units)
            return tuple(word for name in classes for word in ("--tests", name))
        case "libtest":
            names = _each_once(filter(None, (_cargo_package(unit, read) for unit in _each_once(units))))
            return tuple(word for name in names for word in ("-p", name))
        case "bun":  # without the dot, a word is a part of a path
            return _each_once(f"./{unit}" for unit in units)
        case "junit" | "jest" | "mocha" | "vitest" | "node":
            return _each_once(units)


def java_class(unit: str) -> str:
    """The class of a source file, as Surefire names it; a class is returned as it is.

    >>> java_class("app/src/test/java/org/x/FooTest.java"), java_class("t/FooTest.kt"), java_class("org.x.FooTest")
    ('org.x.FooTest', 'FooTest', 'org.x.FooTest')
    """
    if not _JVM_SOURCE.search(unit):
        return unit
    match = _SOURCE_ROOT.fullmatch(unit)
    path = match[1] if match else PurePosixPath(unit).name
    return _JVM_SOURCE.sub("", path).replace("/", ".")


def _go_package(unit: str) -> str:
    """The folder of a file; an import path as it is.

    >>> _go_package("x_test.go"), _go_package("a/x_test.go"), _go_package("example.com/m")
    ('.', './a', 'example.com/m')
    """
    if not unit.endswith(".go"):
        return unit
    folder = str(PurePosixPath(unit).parent)
    return "." if folder == "." else f"./{folder}"


def _cargo_package(unit: str, read: Read) -> str | None:
    """Name and version in the nearest Cargo.toml above a source file that has a [package]: a dependency may have
    the same name. The version may be the workspace's; without one that can be read, the name alone."""
    path = PurePosixPath(unit)
    if path.is_absolute() or ".." in path.parts:
        return None
    above = list(path.parents)[:_MAX_DEPTH]
    for at, folder in enumerate(above):
        package = as_object(_manifest(read, folder).get("package")) or {}
        name, version = package.get("name"), package.get("version")
        if not isinstance(name, str) or not _CRATE.fullmatch(name):
            continue
        if as_object(version):
            version = next(
                filter(None, (_workspace_version(_manifest(read, outer)) for outer in above[at:])), None
            )
        return f"{name}@{version}" if isinstance(version, str) and _VERSION.fullmatch(version) else name
    return None


def _workspace_version(manifest: dict[str, object]) -> object:
    workspace = as_object(manifest.get("workspace")) or {}
    return (as_object(workspace.get("package")) or {}).get("version")


def _manifest(read: Read, folder: PurePosixPath) -> dict[str, object]:
    content = read(str(folder / "Cargo.toml"))
    if content is None or len(content) > _MAX_MANIFEST:
        return {}
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}


def _each_once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
