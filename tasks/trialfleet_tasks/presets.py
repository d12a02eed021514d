"""What the kinds of environments mean: how a language's dependencies are fetched, and its tests run and read."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, cast

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records import ResultFormat
from trialfleet_runner.task import ToolEnvironment
from trialfleet_runner.trees import Tree, pack

Commands = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ToolPreset:
    """Everything that a `ToolEnvironment` may leave out. Fields as there; `drop`, `links` as in the reference."""

    tools: Mapping[str, str]
    inputs: tuple[str, ...]
    test_command: tuple[str, ...]
    results: ResultFormat
    fetch: Commands = ()
    warm: Commands = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    links: Mapping[str, str] = field(default_factory=dict[str, str])


def preset(environment: ToolEnvironment, tree: Tree) -> ToolPreset:
    """What the kind means for this repository, with what the task file says in its place.

    Raises `OperatorError` when the repository lacks what the kind needs."""
    found = _KINDS[environment.kind](environment, tree)
    names = ("tools", "inputs", "fetch", "warm", "keep", "test_command", "results")
    given = {name: getattr(environment, name) for name in names if getattr(environment, name) is not None}
    return replace(found, **given)


def inputs(patterns: tuple[str, ...], tree: Tree) -> bytes:
    """The files that decide what is fetched, as a tar.

    >>> from trialfleet_runner.trees import TreeEntry, unpack
    >>> sorted(unpack(inputs(("go.mod",), {"go.mod": TreeEntry(b""), "a.go": TreeEntry(b"")})))
    ['go.mod']
    """
    return pack({path: entry for path, entry in tree.items() if _matches(path, patterns)})


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """By the whole path or by its last name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in (path, path.rpartition("/")[2]))


def _go(_: ToolEnvironment, tree: Tree) -> ToolPreset:
    if "go.mod" not in tree and "go.work" not in tree:
        raise OperatorError(
            "the repository has no go.mod",
            where="environment",
            hint="choose commits since it has Go modules, or use kind commands",
        )
    vendored = "vendor/modules.txt" in tree
    return ToolPreset(
        tools={"go": ""},
        inputs=("go.mod", "go.sum", "go.work", "go.work.sum"),
        fetch=() if vendored else (("go", "mod", "download"),),
        warm=(("go", "test", "-count=1", "-run=^$", "./..."),),
        variables={
            "GOMODCACHE": "{environment}/modules",
            "GOCACHE": "{home}/.cache/go-build",
            "GOPROXY": "off",
            "GOFLAGS": "-buildvcs=false",
            "GOTOOLCHAIN": "local",
            "GOTELEMETRY": "off",
        },
        links={"build": "{home}/.cache/go-build"},
        test_command=("go", "test", "-json", "-count=1", "{tests}"),
        results="go",
    )


_NODE_FETCH: Mapping[str, tuple[str, ...]] = {  # by lock file, in the order in which they count
    "package-lock.json": ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),
    "npm-shrinkwrap.json": ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"),
    "pnpm-lock.yaml": ("pnpm", "install", "--frozen-lockfile", "--ignore-scripts"),
    "bun.lock": ("bun", "install", "--frozen-lockfile", "--ignore-scripts"),
    "bun.lockb": ("bun", "install", "--frozen-lockfile", "--ignore-scripts"),
    "yarn.lock": ("yarn", "install", "--frozen-lockfile", "--ignore-scripts"),
}
_NODE_TESTS: Mapping[str, tuple[ResultFormat, tuple[str, ...]]] = {
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
_NODE_OWN: tuple[ResultFormat, tuple[str, ...]] = (
    "node",
    ("node", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout",
     "--test-reporter={environment}/node_reporter.mjs", "--test-reporter-destination={junit}", "{tests}"),
)  # fmt: skip


def _node(environment: ToolEnvironment, tree: Tree) -> ToolPreset:
    lock = next((name for name in _NODE_FETCH if name in tree), None)
    if lock is None and environment.fetch is None and _declares(tree, "dependencies", "devDependencies"):
        raise OperatorError(
            "the repository has no lock file of npm, pnpm, yarn or bun",
            where="environment",
            hint="give `fetch`, or choose commits with a lock file",
        )
    fetch = _NODE_FETCH[lock] if lock else None
    if lock == "yarn.lock" and ".yarnrc.yml" in tree:
        fetch = ("yarn", "install", "--immutable", "--mode=skip-build")
    if fetch and environment.install_scripts:
        fetch = tuple(word for word in fetch if word not in {"--ignore-scripts", "--mode=skip-build"})
    runner = _node_runner(tree)
    results, test_command = _NODE_TESTS.get(runner, _NODE_OWN)
    return ToolPreset(
        tools={"node": "", **({fetch[0]: ""} if fetch else {})},
        inputs=("package.json", *_NODE_FETCH, ".npmrc", ".yarnrc.yml", "pnpm-workspace.yaml"),
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


def _node_runner(tree: Tree) -> str:
    """The one that the `test` script names; else the one that is a dependency."""
    facts = _package(tree)
    script = str(_table(facts.get("scripts")).get("test", ""))
    declared = {**_table(facts.get("dependencies")), **_table(facts.get("devDependencies"))}
    named = [runner for runner in _NODE_TESTS if re.search(rf"\b{runner}\b", script)]
    if named or re.search(r"\bnode\b.*--test\b", script):
        return named[0] if named else "node"
    return next((runner for runner in _NODE_TESTS if runner in declared), "node")


def _declares(tree: Tree, *tables: str) -> bool:
    facts = _package(tree)
    return any(_table(facts.get(name)) for name in tables)


def _package(tree: Tree) -> dict[str, Any]:
    entry = tree.get("package.json")
    try:
        return _table(json.loads(entry.data)) if entry else {}
    except (ValueError, RecursionError):
        return {}


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _rust(_: ToolEnvironment, tree: Tree) -> ToolPreset:
    if "Cargo.toml" not in tree:
        raise OperatorError(
            "the repository has no Cargo.toml at its root",
            where="environment",
            hint="use kind commands for a crate in a folder",
        )
    features = ("--all-features",) if _ci_says(tree, "--all-features") else ()
    members = sorted(set(_crates(tree)))
    return ToolPreset(
        tools={"cargo": "", "rustc": "", "rustdoc": ""},
        inputs=("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml", ".cargo/config.toml"),
        fetch=(("cargo", "fetch"),),
        # Cargo compares times of files: what it built of the workspace's own crates must not outlive the warming.
        warm=(
            ("cargo", "test", "--no-run", "--lib", "--bins", "--tests", *features),
            *(("cargo", "clean", "-p", name) for name in members),
        ),
        drop=(
            "target/*/incremental",
            *(f"target/*/.fingerprint/{name}-{'[0-9a-f]' * 16}" for name in members),
        ),
        keep=("Cargo.lock",),
        variables={
            "CARGO_HOME": "{environment}/cargo",
            "CARGO_TARGET_DIR": "{home}/target",
            "CARGO_NET_OFFLINE": "true",
            "CARGO_TERM_COLOR": "never",
            "CARGO_TERM_QUIET": "false",
            "CARGO_INCREMENTAL": "0",
            "CARGO_PROFILE_DEV_DEBUG": "0",
        },
        links={"target": "{home}/target"},
        test_command=(
            "sh", "-c", 'exec cargo test "$@" 2>&1', "cargo", "--no-fail-fast",
            "--message-format=json-render-diagnostics", "--lib", "--bins", "--tests", *features, "{tests}",
        ),
        results="libtest",
    )  # fmt: skip


def _crates(tree: Tree) -> Iterator[str]:
    for path, entry in tree.items():
        if path.rpartition("/")[2] == "Cargo.toml":
            try:
                name = tomllib.loads(entry.data.decode()).get("package", {}).get("name")
            except (ValueError, AttributeError):
                continue
            if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-]+", name):
                yield name


def _ci_says(tree: Tree, words: str) -> bool:
    return any(path.startswith(".github/workflows/") and words.encode() in e.data for path, e in tree.items())


_NONE_ELSEWHERE = ("-DfailIfNoTests=false", "-Dsurefire.failIfNoSpecifiedTests=false")  # in modules without it
_MAVEN = ("mvn", "-B", "-ntp", "-fae", "-Drat.skip", "-Dcheckstyle.skip", "-Denforcer.skip", "test")


def _java(_: ToolEnvironment, tree: Tree) -> ToolPreset:
    if "pom.xml" not in tree:
        raise OperatorError(
            "the repository has no pom.xml",
            where="environment",
            hint="kind java is Maven; for Gradle use kind commands with `results: junit`",
        )
    return ToolPreset(
        tools={"java": "", "mvn": ""},
        inputs=("pom.xml", ".mvn/*"),
        # Maven fetches some plugins only when tests run: those of one class do.
        fetch=((*_MAVEN, "-Dmaven.test.failure.ignore=true", *_one_test(tree), *_NONE_ELSEWHERE),),
        variables={"MAVEN_OPTS": "-Duser.home={home} -Dmaven.repo.local={home}/.m2/repository"},
        links={"m2": "{home}/.m2/repository"},
        test_command=(*_MAVEN, "-o", "-Dtest={tests}", *_NONE_ELSEWHERE),
        results="surefire",
    )


def _one_test(tree: Tree) -> tuple[str, ...]:
    """The first by its path: neighbouring commits have the same."""
    tests = sorted(path for path in tree if path.endswith("Test.java") and "src/test/java/" in path)
    return (f"-Dtest={PurePosixPath(tests[0]).stem}",) if tests else ()


def _commands(environment: ToolEnvironment, _: Tree) -> ToolPreset:
    assert environment.test_command is not None, "the task file's schema requires it"
    assert environment.results is not None, "the task file's schema requires it"
    program = environment.test_command[0]
    return ToolPreset(
        tools={} if "/" in program or environment.tools is not None else {program: ""},
        inputs=(),
        test_command=environment.test_command,
        results=environment.results,
    )


_KINDS: Mapping[str, Callable[[ToolEnvironment, Tree], ToolPreset]] = {
    "go": _go,
    "node": _node,
    "rust": _rust,
    "java": _java,
    "commands": _commands,
}
