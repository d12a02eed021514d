"""What the kinds of environments mean for a repository, and what of it decides the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import ToolEnvironmentRef
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_ledger.task import TaskFile, ToolEnvironment
from trialfleet_repository.languages.ecmascript.preset import lacks_lock, lock_place
from trialfleet_repository.languages.ecmascript.test_script import call_of
from trialfleet_repository.trees import TreeEntry, unpack
from trialfleet_tasks.presets.preset import inputs, preset
from trialfleet_tasks.task_environment import PlannedEnvironment
from trialfleet_tasks.taskfile import load_task_file


def tree(**files: str) -> dict[str, TreeEntry]:
    """`a__b_c` is a/b.c."""
    return {name.replace("__", "/").replace("_", "."): TreeEntry(text.encode()) for name, text in files.items()}


_NPM_CI = ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")


def package(**facts: object) -> dict[str, TreeEntry]:
    return {"package.json": TreeEntry(json.dumps(facts).encode())}


@pytest.mark.parametrize(
    ("facts", "results"),
    [
        ({"scripts": {"test": "tsc && vitest run"}, "devDependencies": {"jest": "1", "vitest": "1"}}, "vitest"),
        ({"scripts": {"test": "node --test test/"}, "devDependencies": {"jest": "1"}}, "node"),
        ({"devDependencies": {"mocha": "1"}}, "mocha"),
        ({"dependencies": {"jest": "1"}}, "jest"),
        ({"scripts": {"test": "react-scripts test"}, "devDependencies": {"mocha": "1"}}, "jest"),
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
    ("results", "called", "named"),
    [("vitest", "x", "Vitest"), ("gradle", "./gradlew", "JUnit"), ("junit", "./run-tests", "run-tests")],
)
def test_the_test_framework_that_a_placebo_names(results: ResultFormat, called: str, named: str) -> None:
    ref = ToolEnvironmentRef.model_construct()  # of any content
    found = PlannedEnvironment(ref=ref, source=b"", test_command=(called,), results=results, env={})
    assert found.test_framework == named


@pytest.mark.parametrize(
    ("lock", "manager"),
    [("package-lock.json", "npm"), ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")],
)
def test_the_lock_file_names_the_package_manager(lock: str, manager: str) -> None:
    files = package(dependencies={"a": "1"}) | {lock: TreeEntry(b"")}
    found = preset(ToolEnvironment(kind="node"), files)
    assert [manager in argv for argv in found.fetch] == [True]
    assert found.tools.keys() == {"node", manager}
    assert "--ignore-scripts" in found.fetch[0]
    permitted = preset(ToolEnvironment(kind="node", install_scripts=True), files)
    assert "--ignore-scripts" not in permitted.fetch[0]


@pytest.mark.parametrize(
    ("kind", "files", "words"),
    [
        ("node", package(dependencies={"a": "1"}), "no lock file"),
        (
            "node",
            package(devDependencies={"ava": "6"}) | tree(yarn_lock=""),
            "run by ava, whose results are not read",
        ),
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


def test_a_lock_beside_the_task_file_lies_where_npm_would_write_it() -> None:
    facts = {"dependencies": {"a": "1"}}
    files = package(workspaces=["packages/*"]) | {
        "packages/cart/package.json": TreeEntry(json.dumps(facts).encode()),
        "other/package.json": TreeEntry(json.dumps(facts).encode()),
    }
    assert lacks_lock(files, "packages/cart")
    place = lock_place(files, "packages/cart")
    assert (place, lock_place(package(**facts), ".")) == ("package-lock.json", "package-lock.json")
    assert lock_place({"other/package.json": files["other/package.json"]}, "other") == "other/package-lock.json"
    runner_of_all = package(workspaces=["packages/*"], devDependencies={"mocha": "10"})
    assert lacks_lock(runner_of_all | {"packages/cart/package.json": TreeEntry(b"{}")}, "packages/cart")
    locked = files | {place: TreeEntry(b"{}")}
    assert not lacks_lock(locked, "packages/cart")
    found = preset(ToolEnvironment(kind="node", directory="packages/cart", lock="lock.json"), locked)
    assert found.fetch == ((*_NPM_CI, "--package-lock"),), "the repository's .npmrc may say that there is none"
    assert found.directory == "."


def test_the_test_script_says_how_its_runner_is_called() -> None:
    script = "npm run lint && NODE_ENV=test TZ=$HOME mocha --require test/env -R dot --timeout=9000 --exit test/"
    found = preset(ToolEnvironment(kind="node"), package(scripts={"test": script}))
    called = ("node_modules/.bin/mocha", "--require", "test/env", "--timeout=9000", "--exit", "--reporter")
    expected = ("env", "NODE_ENV=test", *called)
    assert found.test_command[: len(expected)] == expected, "no shell fills in what TZ is"
    assert "NODE_ENV" not in found.variables, "agents have these, too"
    found = preset(ToolEnvironment(kind="node"), package(scripts={"test": "vitest -c unit.config.ts --coverage"}))
    assert found.test_command[1:4] == ("run", "-c", "unit.config.ts")
    found = preset(ToolEnvironment(kind="node"), package(scripts={"test": "react-scripts test --env=jsdom"}))
    assert found.test_command[1:4] == ("test", "--env=jsdom", "--watchAll=false")
    for odd in ("mocha 'open", "mocha -r", "mocha -r --exit", "; | &&"):
        options, _ = call_of("mocha", odd)
        assert options == (("--exit",) if "--exit" in odd else ()), odd


@pytest.mark.parametrize(
    ("asked", "configuration", "off"),
    [
        ("^4.1.5", "typecheck: { enabled: true }", True),
        ("~0.34", "typecheck: {}", False),
        ("^4.1.5", "globals", False),
    ],
)
def test_types_are_not_checked_as_tests(asked: str, configuration: str, off: bool) -> None:
    files = package(scripts={"test": "vitest run"}, devDependencies={"vitest": asked}) | {
        "p/a/vitest.config.mts": TreeEntry(configuration.encode()),
        "yarn.lock": TreeEntry(b""),
    }
    found = preset(ToolEnvironment(kind="node"), files)
    assert ("--typecheck.enabled=false" in found.test_command) is off
    beside = preset(ToolEnvironment(kind="node", directory="q"), files | {"q/package.json": TreeEntry(b"{}")})
    assert "--typecheck.enabled=false" not in beside.test_command


def test_a_runner_that_is_not_read_beside_one_that_is() -> None:
    files = package(scripts={"test": "node --test"}, devDependencies={"tap": "18"}) | tree(yarn_lock="")
    assert preset(ToolEnvironment(kind="node"), files).results == "node"
    files = package(devDependencies={"tap": "18"}) | tree(yarn_lock="")
    given = ToolEnvironment(kind="node", test_command=("tap", "-R", "junit", "{tests}"), results="junit")
    assert preset(given, files).test_command[0] == "tap"


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
    for wrong in ({"kind": "commands"}, {}):
        with pytest.raises(ValueError, match="environment"):
            kind(wrong)


def test_what_no_language_has_is_refused_where_it_stands(tmp_path: Path) -> None:
    task = {"id": "a", "source": {"kind": "path", "pre_fix": "a", "fixed": "b"}, "prompt_source": "commit_message"}
    file = tmp_path / "tasks.yaml"

    def refusal(environment: dict[str, object]) -> str:
        file.write_text(json.dumps({"repo": {"environment": environment}, "tasks": [task]}))
        with pytest.raises(OperatorError) as caught:
            load_task_file(file)
        return str(caught.value)

    words = refusal({"kind": "cobol"})
    assert "repo.environment.kind: there is no kind of environment 'cobol'" in words
    assert "choose from python, go, node, rust, java, commands" in words
    assert "environment.lock: kind go takes no lock file" in refusal({"kind": "go", "lock": "a.txt"})
    assert "npm install --package-lock-only" in refusal({"kind": "node", "lock": "a.json"})
    commands = {"kind": "commands", "test_command": ["prove"]}
    assert "environment.results: there is no format of results 'tap'" in refusal(commands | {"results": "tap"})
