"""Packages below the root of a repository: where their tests are called, and what is fetched for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.environments.tool_environment import find_tool
from trialfleet_repository.test_call import CalledTests
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.presets.packages import in_package, package_of, package_of_most
from trialfleet_tasks.presets.preset import preset

TESTED = json.dumps({"scripts": {"test": "vitest run"}})
LIBRARY = json.dumps({"scripts": {"test:types": "tsc", "test:lib": "vitest", "test:lib:dev": "vitest --watch"}})
TURBO = json.dumps({"scripts": {"test": "turbo test"}})
PROJECTS = {"package.json": TESTED, "vitest.config.ts": "test: { projects: ['p/*'] }"}
UNTESTED = json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})


def tree(**files: str) -> dict[str, TreeEntry]:
    return {path: TreeEntry(text.encode()) for path, text in files.items()}


def given(files: Mapping[str, str]) -> dict[str, TreeEntry]:
    return tree(**files)


def reactor(top: str = "", a: str = "") -> dict[str, str]:
    """A project of Maven with two modules, and what stands in its poms besides."""
    parent = "<parent><artifactId>top</artifactId></parent>"
    names = "<module>a</module><module>b</module><artifactId>top</artifactId>"
    module = f"{parent}<artifactId>%s</artifactId>%s"
    return {"pom.xml": f"{names}{top}", "a/pom.xml": module % ("a", a), "b/pom.xml": module % ("b", "")}


def needs(name: str, more: str = "") -> str:
    return f"<dependencies><dependency><artifactId>{name}</artifactId>{more}</dependency></dependencies>"


def managed(name: str, more: str = "") -> str:
    return f"<dependencyManagement>{needs(name, more)}</dependencyManagement>"


IMPORT = "<scope>import</scope>"
MODULES: list[tuple[dict[str, str], str]] = [
    ({}, "a"),
    ({"a": needs("junit"), "top": f"<build>{needs('b')}</build>{managed('b')}"}, "a"),
    ({"a": managed("b")}, "a"),
    ({"a": needs("b")}, "."),
    ({"a": f"<build><plugins><plugin><artifactId>b</artifactId></plugin></plugins>{needs('x')}</build>"}, "."),
    ({"a": needs("${other}")}, "."),
    ({"a": managed("b", IMPORT)}, "."),
    ({"top": needs("b")}, "."),
    ({"top": managed("b", IMPORT)}, "."),
]


@pytest.mark.parametrize(
    ("kind", "files", "path", "package"),
    [
        ("go", {"go.mod": ""}, "a/b/x_test.go", "."),
        ("go", {"go.mod": "", "a/go.mod": ""}, "a/b/x_test.go", "a"),
        ("go", {}, "x_test.go", "."),
        ("node", {"package.json": TESTED, "a/package.json": UNTESTED}, "a/test/x.test.ts", "."),
        ("node", {"package.json": UNTESTED, "p/a/package.json": TESTED}, "p/a/test/x.test.ts", "p/a"),
        ("node", {"package.json": TESTED, "a/package.json": "{}", "a/yarn.lock": ""}, "a/x.test.ts", "a"),
        ("node", {"a/package.json": "["}, "a/x.test.ts", "."),
        ("node", {"package.json": TURBO, "p/a/package.json": LIBRARY}, "p/a/x.test.ts", "p/a"),
        ("node", {**PROJECTS, "p/a/package.json": TESTED}, "p/a/x.test.ts", "."),
        ("node", {**PROJECTS, "p/a/package.json": TESTED, "p/a/yarn.lock": ""}, "p/a/x.test.ts", "p/a"),
        ("node", {**PROJECTS, "package.json": TURBO, "p/a/package.json": TESTED}, "p/a/x.test.ts", "p/a"),
        ("node", {"package.json": TESTED, "vitest.config.ts": "{}", "a/package.json": TESTED}, "a/x.test.ts", "a"),
        (
            "node",
            {"package.json": TESTED, "vitest.workspace.ts": "", "a/package.json": TESTED},
            "a/x.test.ts",
            ".",
        ),
        ("rust", {"Cargo.toml": "[workspace]\nmembers = ['a']", "a/Cargo.toml": "[package]"}, "a/tests/x.rs", "."),
        ("rust", {"Cargo.toml": "[workspace]\nexclude = ['a']", "a/Cargo.toml": "[package]"}, "a/src/x.rs", "a"),
        ("rust", {"Cargo.toml": "[package]", "a/Cargo.toml": "[package]"}, "a/tests/x.rs", "a"),
        ("rust", {"r/Cargo.toml": "[workspace]", "r/a/Cargo.toml": "[package]"}, "r/a/tests/x.rs", "r"),
        ("rust", {"a/Cargo.toml": "[["}, "a/tests/x.rs", "."),
        ("java", {"pom.xml": "<module>a</module>", "a/pom.xml": ""}, "a/src/test/java/XTest.java", "."),
        ("java", {"pom.xml": "", "a/pom.xml": ""}, "a/src/test/java/XTest.java", "a"),
        *(("java", reactor(**poms), "a/src/test/java/XTest.java", place) for poms, place in MODULES),
        ("java", {"j/settings.gradle": "", "j/a/build.gradle": ""}, "j/a/src/test/java/XTest.java", "j"),
        ("java", {"build.gradle": "", "a/build.gradle.kts": ""}, "a/src/test/java/XTest.java", "."),
        ("commands", {"a/go.mod": ""}, "a/x", "."),
    ],
)
def test_the_package_of_a_test(kind: str, files: Mapping[str, str], path: str, package: str) -> None:
    assert package_of(kind, given(files), path) == package


def test_tests_of_several_packages_are_those_of_most() -> None:
    files = given({"go.mod": "", "a/go.mod": ""})
    tests = ("x_test.go", "a/y_test.go", "a/b/z_test.go")
    assert package_of_most("go", files, tests) == "a"
    assert in_package("go", files, tests, "a") == tests[1:]
    assert in_package("go", files, tests, ".") == tests[:1], "the root's tests are not those of a package below it"
    assert package_of_most("go", files, ()) == "."
    assert in_package("commands", files, tests, "a") == tests[1:]


def test_a_package_is_installed_where_its_lock_is_and_tested_where_it_is() -> None:
    files = given({
        "package.json": UNTESTED, "pnpm-lock.yaml": "", "p/a/package.json": TESTED,
        "q/package.json": json.dumps({"scripts": {"test": "jest"}}), "q/package-lock.json": "",
    })  # fmt: skip
    shared = preset(ToolEnvironment(kind="node", directory="p/a"), files)
    assert (shared.directory, shared.fetch[0][3], shared.results) == (".", "pnpm", "vitest")
    own = preset(ToolEnvironment(kind="node", directory="q"), files)
    assert (own.directory, own.fetch[0][0], own.results) == ("q", "npm", "jest")
    with pytest.raises(OperatorError, match="no folder"):
        preset(ToolEnvironment(kind="node", directory="gone"), files)


@pytest.mark.parametrize(
    ("kind", "files", "manifest"),
    [
        ("go", {"a/go.mod": "module x"}, "go.mod"),
        ("rust", {"a/Cargo.toml": '[package]\nname = "x"'}, "Cargo.toml"),
        ("java", {"a/pom.xml": "<project/>"}, "pom.xml"),
    ],
)
def test_what_a_package_needs_is_fetched_in_its_folder(kind: str, files: Mapping[str, str], manifest: str) -> None:
    found = preset(ToolEnvironment.model_validate({"kind": kind, "directory": "a"}), given(files))
    assert found.directory == "a"
    with pytest.raises(OperatorError, match=rf"the repository has no .*{manifest}"):
        preset(ToolEnvironment.model_validate({"kind": kind}), given(files))


@pytest.mark.needs("gradle")
def test_gradle_by_the_wrapper_unless_its_version_is_here() -> None:
    build = {"build.gradle": ""}
    own = preset(ToolEnvironment(kind="java"), given(build))
    assert (own.test_command[0], own.results, set(own.tools)) == ("gradle", "gradle", {"java", "gradle"})
    url = "distributionUrl=https\\://services.gradle.org/distributions/gradle-0.9-bin.zip\n"
    wrapped = build | {"gradlew": "", "gradle/wrapper/gradle-wrapper.properties": url}
    found = preset(ToolEnvironment(kind="java"), given(wrapped))
    assert (found.fetch[0][:2], set(found.tools)) == (("sh", "gradlew"), {"java"})
    chosen = preset(ToolEnvironment(kind="java", tools={"java": "", "gradle": "8"}), given(wrapped))
    assert (chosen.fetch[0][0], chosen.tools) == ("gradle", {"java": "", "gradle": "8"})


@pytest.mark.needs("gradle")
def test_a_build_in_kotlin_needs_a_gradle_that_reads_it() -> None:
    files = given({"build.gradle.kts": "plugins { java }"})
    version = find_tool("gradle")[1]
    if int(version.partition(".")[0]) >= 5:
        assert preset(ToolEnvironment(kind="java"), files).results == "gradle"
        return
    with pytest.raises(OperatorError, match=f"Gradle {version} cannot read a build in Kotlin") as refused:
        preset(ToolEnvironment(kind="java"), files)
    assert "Gradle 5 or newer" in str(refused.value)


def test_a_command_is_called_in_its_folder_and_finds_the_program_above_it(tmp_path: Path) -> None:
    call = CalledTests(("node_modules/.bin/vitest", "run", "{tests}"), "vitest", "p/a")
    assert call.selected(["p/a/x.test.ts::adds", "p/a/x.test.ts::is zero"], tmp_path) == ("x.test.ts",)
    (tmp_path / "node_modules/.bin").mkdir(parents=True)
    (tmp_path / "node_modules/.bin/vitest").touch()
    (tmp_path / "p/a").mkdir(parents=True)
    words = call.argv(("x.test.ts",), "/r", "/e", frozenset(), tmp_path)
    assert words == ("../../node_modules/.bin/vitest", "run", "x.test.ts")
    assert call.there(words)[-4:] == ("./p/a", *words)
    with_settings = CalledTests(("env", "TZ=UTC", "node_modules/.bin/vitest", "run"), "vitest", "p/a")
    words = with_settings.argv((), "/r", "/e", frozenset(), tmp_path)
    assert words == ("env", "TZ=UTC", "../../node_modules/.bin/vitest", "run")
    (tmp_path / "p/a/node_modules/.bin").mkdir(parents=True)
    (tmp_path / "p/a/node_modules/.bin/vitest").touch()
    assert call.argv((), "/r", "/e", frozenset(), tmp_path)[0] == "node_modules/.bin/vitest", "the nearest"
