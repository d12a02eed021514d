"""What the kinds of environments mean for a repository, and what of it decides the environment."""

from __future__ import annotations

import json

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_runner.task import TaskFile, ToolEnvironment
from trialfleet_runner.trees import TreeEntry, unpack
from trialfleet_tasks.presets.preset import inputs, preset


def tree(**files: str) -> dict[str, TreeEntry]:
    """`a__b_c` is a/b.c."""
    return {name.replace("__", "/").replace("_", "."): TreeEntry(text.encode()) for name, text in files.items()}


def package(**facts: object) -> dict[str, TreeEntry]:
    return {"package.json": TreeEntry(json.dumps(facts).encode())}


@pytest.mark.parametrize(
    ("facts", "results"),
    [
        ({"scripts": {"test": "tsc && vitest run"}, "devDependencies": {"jest": "1", "vitest": "1"}}, "vitest"),
        ({"scripts": {"test": "node --test test/"}, "devDependencies": {"jest": "1"}}, "node"),
        ({"devDependencies": {"mocha": "1"}}, "mocha"),
        ({"dependencies": {"jest": "1"}}, "jest"),
        ({"scripts": {"test": "bun --bun test --coverage"}, "devDependencies": {"jest": "1"}}, "bun"),
        ({"scripts": {"test": "bun run build && mocha"}}, "mocha"),
        ({"scripts": "nonsense", "devDependencies": [1]}, "node"),
    ],
)
def test_the_test_runner_of_a_package(facts: dict[str, object], results: ResultFormat) -> None:
    found = preset(ToolEnvironment(kind="node"), package(**facts) | tree(yarn_lock=""))
    assert found.results == results
    assert "{tests}" in found.test_command


@pytest.mark.parametrize(
    ("lock", "manager"),
    [("package-lock.json", "npm"), ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")],
)
def test_the_lock_file_names_the_package_manager(lock: str, manager: str) -> None:
    files = package(dependencies={"a": "1"}) | {lock: TreeEntry(b"")}
    found = preset(ToolEnvironment(kind="node"), files)
    assert [argv[0] for argv in found.fetch] == [manager]
    assert found.tools.keys() == {"node", manager}
    assert "--ignore-scripts" in found.fetch[0]
    permitted = preset(ToolEnvironment(kind="node", install_scripts=True), files)
    assert "--ignore-scripts" not in permitted.fetch[0]


@pytest.mark.parametrize(
    ("kind", "files", "words"),
    [
        ("node", package(dependencies={"a": "1"}), "no lock file"),
        ("go", {}, "no go.mod"),
        ("rust", {}, "no Cargo.toml"),
        ("java", {"build.xml": TreeEntry(b"")}, "no pom.xml"),
    ],
)
def test_a_repository_that_lacks_what_the_kind_needs(kind: str, files: dict[str, TreeEntry], words: str) -> None:
    with pytest.raises(OperatorError, match=words) as refused:
        preset(ToolEnvironment.model_validate({"kind": kind}), files)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("lock", "settings", "berry"),
    [
        ("# yarn lockfile v1\n", "", False),
        ("# yarn lockfile v1\n", "nodeLinker: pnp\n", False),
        ("__metadata:\n  version: 8\n", "", True),
        ("", "yarnPath: .yarn/releases/yarn-4.1.0.cjs\n", True),
    ],
)
def test_locks_of_yarn_1_and_of_its_followers(lock: str, settings: str, berry: bool) -> None:
    files = package(dependencies={"a": "1"}) | {"yarn.lock": TreeEntry(lock.encode())}
    files |= {".yarnrc.yml": TreeEntry(settings.encode())} if settings else {}
    found = preset(ToolEnvironment(kind="node"), files)
    assert found.tools == {"node": "", "yarn": "" if berry else "1"}
    assert (found.variables.get("YARN_NODE_LINKER") == "node-modules") == berry
    assert ("--immutable" in found.fetch[0]) == berry
    assert ("--frozen-lockfile" in found.fetch[0]) != berry
    permitted = preset(ToolEnvironment(kind="node", install_scripts=True), files)
    assert not {"--ignore-scripts", "--mode=skip-build"} & set(permitted.fetch[0])


def test_bun_tests_what_has_its_lock_and_no_other_runner() -> None:
    files = package(name="shop") | {"bun.lock": TreeEntry(b"")}
    assert preset(ToolEnvironment(kind="node"), files).results == "bun"
    other = package(scripts={"test": "bun test"}) | {"package-lock.json": TreeEntry(b"")}
    assert preset(ToolEnvironment(kind="node"), other).tools.keys() == {"node", "npm", "bun"}


def test_a_package_without_dependencies_needs_no_lock() -> None:
    assert preset(ToolEnvironment(kind="node"), package(name="shop")).fetch == ()


def test_the_task_file_replaces_what_a_kind_means() -> None:
    command = ("gotestsum", "{tests}")
    given = ToolEnvironment(kind="go", test_command=command, results="junit", tools={"go": "1.22"})
    found = preset(given, tree(go_mod="module x"))
    assert (found.test_command, found.results, found.tools) == (command, "junit", {"go": "1.22"})
    assert found.fetch[0] == ("go", "mod", "download")


def test_what_is_fetched_depends_on_manifests_alone() -> None:
    patterns = preset(ToolEnvironment(kind="go"), tree(go_mod="module x")).inputs
    files = tree(go_mod="a", go_sum="b", sub__go_mod="c", cart_go="d")
    assert unpack(inputs(patterns, files)).keys() == {"go.mod", "go.sum", "sub/go.mod"}
    assert inputs(patterns, files) == inputs(patterns, files | tree(cart_go="other"))
    assert inputs(patterns, files) != inputs(patterns, files | tree(go_sum="other"))


def test_an_environment_is_pythons_unless_it_says_otherwise() -> None:
    task = {"id": "a", "source": {"kind": "path", "pre_fix": "a", "fixed": "b"}, "prompt_source": "commit_message"}

    def kind(environment: object) -> str:
        file = TaskFile.model_validate_json(json.dumps({"repo": {"environment": environment}, "tasks": [task]}))
        assert file.repo.environment is not None
        return file.repo.environment.kind

    assert kind({"lock": "a.txt"}) == kind({"kind": "python", "lock": "a.txt"}) == "python"
    assert kind({"kind": "go"}) == "go"
    for wrong in ({"kind": "cobol"}, {"kind": "go", "lock": "a.txt"}, {"kind": "commands"}, {}):
        with pytest.raises(ValueError, match="environment"):
            kind(wrong)
