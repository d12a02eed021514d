"""Packages of Node, installed by npm, pnpm, Yarn or Bun."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_runner.task import ToolEnvironment
from trialfleet_runner.test_call import ROOT
from trialfleet_runner.trees import Tree
from trialfleet_tasks.presets.record import ToolPreset, said

_FETCH: Mapping[str, tuple[str, ...]] = {  # by lock file, in the order in which they count
    "package-lock.json": ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),
    "npm-shrinkwrap.json": ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),
    "pnpm-lock.yaml": ("pnpm", "install", "--frozen-lockfile", "--ignore-scripts"),
    "bun.lock": ("bun", "install", "--frozen-lockfile", "--ignore-scripts"),
    "bun.lockb": ("bun", "install", "--frozen-lockfile", "--ignore-scripts"),
    "yarn.lock": ("yarn", "install", "--frozen-lockfile", "--ignore-scripts"),
}
_TESTS: Mapping[str, tuple[ResultFormat, tuple[str, ...]]] = {
    "vitest": (
        "vitest",
        (
            "node_modules/.bin/vitest",
            "run",
            "--coverage.enabled=false",  # its table would be the end of every output
            "--reporter=default",
            "--reporter=junit",
            "--outputFile.junit={junit}",
            "{tests}",
        ),
    ),
    "jest": (
        "jest",
        ("node_modules/.bin/jest", "--ci", "--json", "--outputFile={junit}", "--runTestsByPath", "{tests}"),
    ),
    "mocha": (
        "mocha",
        ("node_modules/.bin/mocha", "--reporter", "json", "--reporter-option", "output={junit}", "{tests}"),
    ),
}
_OWN: tuple[ResultFormat, tuple[str, ...]] = (
    "node",
    ("node", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout",
     "--test-reporter={environment}/node_reporter.mjs", "--test-reporter-destination={junit}", "{tests}"),
)  # fmt: skip


def node(environment: ToolEnvironment, tree: Tree) -> ToolPreset:
    package = environment.directory or ROOT
    folders = list(folders_above(package))
    place, lock = next(
        ((folder, name) for folder in folders for name in _FETCH if _in(folder, name) in tree), (package, None)
    )
    if lock is None and environment.fetch is None and _declares(tree, package, "dependencies", "devDependencies"):
        raise OperatorError(
            f"{said(environment.directory)} has no lock file of npm, pnpm, yarn or bun",
            where="environment",
            hint="give `fetch`, or choose commits with a lock file",
        )
    fetch = _FETCH[lock] if lock else None
    if lock == "yarn.lock" and _in(place, ".yarnrc.yml") in tree:
        fetch = ("yarn", "install", "--immutable", "--mode=skip-build")
    if fetch and environment.install_scripts:
        fetch = tuple(word for word in fetch if word not in {"--ignore-scripts", "--mode=skip-build"})
    results, test_command = _TESTS.get(_runner(tree, folders), _OWN)
    return ToolPreset(
        tools={"node": "", **({fetch[0]: ""} if fetch else {})},
        inputs=("package.json", *_FETCH, ".npmrc", ".yarnrc.yml", "pnpm-workspace.yaml"),
        directory=place,
        fetch=(fetch,) if fetch else (),
        keep=("node_modules",),
        variables={
            "CI": "true",
            "NO_COLOR": "1",
            "npm_config_offline": "true",
            "npm_config_cache": "{home}/.npm",
            "npm_config_update_notifier": "false",
        },
        test_command=test_command,
        results=results,
    )


def folders_above(folder: str) -> Iterator[str]:
    """The folder itself first, the root last.

    >>> list(folders_above("packages/cart"))
    ['packages/cart', 'packages', '.']
    """
    yield folder
    while folder != ROOT:
        folder = str(PurePosixPath(folder).parent)
        yield folder


def tested_package(tree: Tree, folder: str) -> str:
    """The nearest package, at or above a folder, whose tests are called there: it has a `test` script that does
    something, or its own lock file. The root if there is no such package.

    >>> from trialfleet_runner.trees import TreeEntry
    >>> tested = TreeEntry(b'{"scripts": {"test": "vitest run"}}')
    >>> tree = {"package.json": tested, "a/package.json": tested, "b/package.json": TreeEntry(b"{}")}
    >>> tested_package(tree, "a/src"), tested_package(tree, "b/src")
    ('a', '.')
    """
    return next(place for place in folders_above(folder) if place == ROOT or _is_tested(tree, place))


def _is_tested(tree: Tree, folder: str) -> bool:
    if _in(folder, "package.json") not in tree:
        return False
    script = _test_script(_package(tree, folder))
    return bool(script and "no test specified" not in script) or any(_in(folder, name) in tree for name in _FETCH)


def _in(folder: str, name: str) -> str:
    return name if folder == ROOT else f"{folder}/{name}"


def _runner(tree: Tree, folders: list[str]) -> str:
    """The one that the `test` script of the nearest package names; else the one that is a dependency."""
    packages = [_package(tree, folder) for folder in folders]
    for facts in packages:
        script = _test_script(facts)
        named = [runner for runner in _TESTS if re.search(rf"\b{runner}\b", script)]
        if named or re.search(r"\bnode\b.*--test\b", script):
            return named[0] if named else "node"
    declared = {name for facts in packages for part in _DECLARED for name in _table(facts.get(part))}
    return next((runner for runner in _TESTS if runner in declared), "node")


_DECLARED = ("dependencies", "devDependencies")


def _test_script(facts: dict[str, Any]) -> str:
    return str(_table(facts.get("scripts")).get("test", ""))


def _declares(tree: Tree, folder: str, *tables: str) -> bool:
    facts = _package(tree, folder)
    return any(_table(facts.get(name)) for name in tables)


def _package(tree: Tree, folder: str) -> dict[str, Any]:
    entry = tree.get(_in(folder, "package.json"))
    try:
        return _table(json.loads(entry.data)) if entry else {}
    except (ValueError, RecursionError):
        return {}


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
