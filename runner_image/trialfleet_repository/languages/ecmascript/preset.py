"""Packages of Node, installed by npm, pnpm, Yarn or Bun."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_repository.languages.built_paths import BUILT_TESTS, MAKES
from trialfleet_repository.languages.ecmascript import vitest_configuration as vitest
from trialfleet_repository.languages.ecmascript.build_steps import BuildBeforeTests, find_build
from trialfleet_repository.languages.ecmascript.test_script import (
    PACKAGES,
    UNREAD,
    call_of,
    runners_of,
    test_script,
)
from trialfleet_repository.languages.manifest_files import file_in, folders_above
from trialfleet_repository.languages.preset import ToolPreset, VersionOf, name_place
from trialfleet_repository.trees import ROOT, Tree

if TYPE_CHECKING:
    from trialfleet_ledger.task import ToolEnvironment

# pnpm runs the release that `packageManager` names, and refuses one that its registry has not signed: some mirrors
# drop signatures. This machine's own reads the lock then, if it can.
_PNPM = """pnpm install "$@" || exec env npm_config_manage_package_manager_versions=false pnpm install "$@\""""
_FETCH: Mapping[str, tuple[str, ...]] = {  # by lock file, in the order in which they count
    "package-lock.json": ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),
    "npm-shrinkwrap.json": ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),
    "pnpm-lock.yaml": ("sh", "-c", _PNPM, "pnpm", "--frozen-lockfile", "--ignore-scripts"),
    "bun.lock": ("bun", "install", "--frozen-lockfile", "--ignore-scripts"),
    "bun.lockb": ("bun", "install", "--frozen-lockfile", "--ignore-scripts"),
    "yarn.lock": ("yarn", "install", "--frozen-lockfile", "--ignore-scripts"),
}
MANAGERS = {lock: "pnpm" if argv[0] == "sh" else argv[0] for lock, argv in _FETCH.items()}
# The repository's settings may say that there is no lock
CI_OF_LOCK = (*_FETCH["package-lock.json"], "--package-lock")
# Coverage is not measured: its table would be the end of every output, and a threshold would decide the exit code.
# Vitest 0 takes `--coverage.enabled=false` for true.
_TESTS: Mapping[str, tuple[ResultFormat, tuple[str, ...]]] = {
    "vitest": (
        "vitest",
        (
            "node_modules/.bin/vitest",
            "run",
            "--no-coverage",
            "--reporter=default",
            "--reporter=junit",
            "--outputFile.junit={junit}",
            "{tests}",
        ),
    ),
    "jest": (
        "jest",
        ("node_modules/.bin/jest", "--ci", "--coverage=false", "--json", "--outputFile={junit}",
         "--runTestsByPath", "{tests}"),
    ),
    "react-scripts": (
        "jest",
        ("node_modules/.bin/react-scripts", "test", "--watchAll=false", "--ci", "--coverage=false", "--json",
         "--outputFile={junit}", "--runTestsByPath", "{tests}"),
    ),
    "mocha": (
        "mocha",
        # This option's older name is known to all versions. Before 9.2 the report is printed.
        ("node_modules/.bin/mocha", "--reporter", "json", "--reporter-options", "output={junit}", "{tests}"),
    ),
    "bun": ("bun", ("bun", "test", "--reporter=junit", "--reporter-outfile={junit}", "{tests}")),
    "node": (
        "node",
        ("node", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout",
         "--test-reporter={environment}/node_reporter.mjs", "--test-reporter-destination={junit}", "{tests}"),
    ),
}  # fmt: skip
# Yarn from version 2 on. Yarn 1 would not read its lock, but resolve every version again without a word. A release
# that the repository names (`yarnPath`, `packageManager`) answers here too. By default it makes no node_modules.
_NOT_YARN_1 = """case $(yarn --version) in
1.*) echo "yarn.lock is of Yarn 2 or newer, which this Yarn 1 cannot read" >&2; exit 1 ;;
esac
exec yarn "$@\""""
_BERRY = ("sh", "-c", _NOT_YARN_1, "yarn", "install", "--immutable", "--mode=skip-build")
_BERRY_VARIABLES = {
    "YARN_NODE_LINKER": "node-modules",
    "YARN_INSTALL_STATE_PATH": "{environment}/install-state.gz",
    "YARN_ENABLE_TELEMETRY": "0",
}


def make_node_preset(environment: ToolEnvironment, tree: Tree, _: VersionOf) -> ToolPreset:
    package = environment.directory or ROOT
    folders = list(folders_above(package))
    place, lock = _lock(tree, package)
    if lacks_lock(tree, package) and environment.fetch is None:
        raise OperatorError(
            f"{name_place(environment.directory)} has no lock file of npm, pnpm, yarn or bun",
            where="environment",
            hint="give a `lock` beside the task file, or `fetch`, or choose commits with a lock file",
        )
    berry = lock == "yarn.lock" and _is_berry(tree, place)
    fetch = CI_OF_LOCK if environment.lock else _BERRY if berry else _FETCH[lock] if lock else None
    if fetch and environment.install_scripts:
        fetch = tuple(word for word in fetch if word not in {"--ignore-scripts", "--mode=skip-build"})
    default = "bun" if (lock or "").startswith("bun") else "node"
    named = _runner(tree, folders)
    if named is None and default == "node" and environment.test_command is None:
        _refuse_unread(tree, folders)
    runner = named or default
    results, test_command = _TESTS[runner]
    options, settings = _called_with(runner, tree, folders)
    call = (*(("env", *settings) if settings else ()), *_with_options(test_command, options))
    building = find_build(tree, package, _package(tree, package))
    return ToolPreset(
        tools=_tools(lock, results, berry=berry),
        inputs=("package.json", *_FETCH, ".npmrc", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml", "bunfig.toml"),
        directory=place,
        fetch=(fetch,) if fetch else (),
        keep=("node_modules",),
        variables={
            "CI": "true",
            "NO_COLOR": "1",
            "npm_config_offline": "true",
            "npm_config_cache": "{home}/.npm",
            "npm_config_update_notifier": "false",
            **(_BERRY_VARIABLES if berry else {}),
        },
        test_command=_after_build(building, call) if building else call,
        results=results,
    )


def lacks_lock(tree: Tree, package: str) -> bool:
    """Whether the package or its workspace has dependencies, and no lock file is at or above its folder."""
    root = str(PurePosixPath(lock_place(tree, package)).parent)
    declares = any(_declares(tree, folder, *_DECLARED) for folder in (package, root))
    return declares and _lock(tree, package)[1] is None


def lock_place(tree: Tree, package: str) -> str:
    """Where npm would write the lock: beside the manifest of the workspace, if the package belongs to one."""
    roots = [folder for folder in folders_above(package) if _package(tree, folder).get("workspaces")]
    return file_in(roots[-1] if roots else package, "package-lock.json")


def _lock(tree: Tree, package: str) -> tuple[str, str | None]:
    """The folder where dependencies are installed, and the name of the lock file there."""
    places = ((folder, name) for folder in folders_above(package) for name in _FETCH)
    return next((each for each in places if file_in(*each) in tree), (package, None))


def _tools(lock: str | None, results: ResultFormat, *, berry: bool) -> dict[str, str]:
    """Program -> the beginning of an acceptable version. Yarn 1 and newer ones do not read each other's locks."""
    manager = {MANAGERS[lock]: "1" if lock == "yarn.lock" and not berry else ""} if lock else {}
    return {"node": "", **manager, **({"bun": ""} if results == "bun" else {})}


def _is_berry(tree: Tree, place: str) -> bool:
    """Whether its lock is of Yarn 2 or newer."""
    lock = tree[file_in(place, "yarn.lock")].data
    classic = b"yarn lockfile v1" in lock
    return b"__metadata:" in lock or (not classic and file_in(place, ".yarnrc.yml") in tree)


def tested_package(tree: Tree, folder: str) -> str:
    """The nearest package, at or above a folder, whose tests are called there: it has a `test` script that does
    something, one like `test:unit` that calls a runner, or its own lock file. The root if there is no such
    package. Of packages that are installed together, the one whose script calls Vitest on several projects tests
    them all.

    >>> from trialfleet_repository.trees import TreeEntry
    >>> tested = TreeEntry(b'{"scripts": {"test": "vitest run"}}')
    >>> tree = {"package.json": tested, "a/package.json": tested, "b/package.json": TreeEntry(b"{}")}
    >>> tested_package(tree, "a/src"), tested_package(tree, "b/src")
    ('a', '.')
    """
    places = list(folders_above(folder))
    locked = next((place for place in places if _is_locked(tree, place)), ROOT)
    together = places[: places.index(locked) + 1]
    of_projects = (place for place in together if _tests_projects(tree, place))
    nearest = (place for place in places if place == ROOT or _is_tested(tree, place))
    return next(of_projects, None) or next(nearest)


def _is_tested(tree: Tree, folder: str) -> bool:
    if file_in(folder, "package.json") not in tree:
        return False
    script = _test_script(_package(tree, folder))
    return bool(script and "no test specified" not in script) or _is_locked(tree, folder)


def _is_locked(tree: Tree, folder: str) -> bool:
    return any(file_in(folder, name) in tree for name in _FETCH)


def _tests_projects(tree: Tree, folder: str) -> bool:
    return "vitest" in runners_of(_test_script(_package(tree, folder))) and vitest.has_projects(tree, folder)


def _runner(tree: Tree, folders: Sequence[str]) -> str | None:
    """The one that the `test` script of the nearest package names; else the one that is a dependency."""
    packages = [_package(tree, folder) for folder in folders]
    for facts in packages:
        named = runners_of(_test_script(facts))
        if named:
            return named[0]
    declared = _dependencies(packages)
    return next((runner for runner in PACKAGES if runner in declared), None)


def _dependencies(packages: Sequence[dict[str, Any]]) -> set[str]:
    return {name for facts in packages for part in _DECLARED for name in _table(facts.get(part))}


def _refuse_unread(tree: Tree, folders: Sequence[str]) -> None:
    """Raises `OperatorError` where a test runner is a dependency whose results nothing here reads."""
    declared = _dependencies([_package(tree, folder) for folder in folders])
    unread = next((name for name in UNREAD if name in declared), None)
    if unread is not None:
        raise OperatorError(
            f"its tests are run by {unread}, whose results are not read",
            where="environment",
            hint="give `test_command` with a reporter that writes JUnit XML to {junit}, and `results: junit`",
        )


def _called_with(runner: str, tree: Tree, folders: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options and settings of variables with which the nearest `test` script calls the runner.

    Types are not checked as tests: TypeScript would write beside Vitest's own modules, which are read-only.
    Vitest 0 does not check them in a run, and does not know the option."""
    scripts = (_test_script(_package(tree, folder)) for folder in folders)
    script = next((script for script in scripts if runner in runners_of(script)), "")
    options, settings = call_of(runner, script)
    old = any(re.match(r"\D*0\.", _version(tree, folder, runner)) for folder in folders)
    if runner == "vitest" and not old and vitest.has_type_tests(tree, folders[0]):
        options = (*options, "--typecheck.enabled=false")
    return options, settings


def _version(tree: Tree, folder: str, package: str) -> str:
    """The range that its manifest asks for; empty if none."""
    facts = _package(tree, folder)
    return next(
        (str(_table(facts.get(part))[package]) for part in _DECLARED if package in _table(facts.get(part))), ""
    )


def _with_options(command: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
    """After the program and its subcommand."""
    at = 1 if command[1].startswith(("-", "{")) else 2
    return (*command[:at], *options, *command[at:])


def _after_build(building: BuildBeforeTests, call: tuple[str, ...]) -> tuple[str, ...]:
    options = {MAKES: building.makes, "--reads=": building.reads, "--build=": building.commands}
    words = (f"{name}{value}" for name, values in options.items() for value in values)
    at = call.index("{tests}")
    start = ("node", f"{{environment}}/{BUILT_TESTS}", "--report={junit}")
    return (*start, *words, "--", *call[:at], "+tests", *call[at:])


_DECLARED = ("dependencies", "devDependencies")


def _test_script(facts: dict[str, Any]) -> str:
    return test_script({name: str(script) for name, script in _table(facts.get("scripts")).items()})


def _declares(tree: Tree, folder: str, *tables: str) -> bool:
    facts = _package(tree, folder)
    return any(_table(facts.get(name)) for name in tables)


def _package(tree: Tree, folder: str) -> dict[str, Any]:
    entry = tree.get(file_in(folder, "package.json"))
    try:
        return _table(json.loads(entry.data)) if entry else {}
    except (ValueError, RecursionError):
        return {}


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
