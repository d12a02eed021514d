"""What an attempt gets of an environment: laid into a workspace that a patch may have changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import ToolEnvironmentRef
from trialfleet_repository.environments.environment import tool_environment_ref
from trialfleet_repository.environments.tool_environment import (
    Furnishings,
    compiled_beside,
    find_tool,
    furnish,
    programs,
    variables_of,
)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """With node_modules, a lock and a cache."""
    built = tmp_path / "environment"
    for name in (
        "kept/node_modules/plain/index.js",
        "kept/node_modules/@scope/one/index.js",
        "kept/web/node_modules/inner/index.js",
        "build/ab/object",
        "build/.cargo-lock",
        "build/trim.txt",
    ):
        (built / name).parent.mkdir(parents=True, exist_ok=True)
        (built / name).write_text(name)
    (built / "kept/Cargo.lock").write_text("lock")
    (built / "kept/node_modules/own").symlink_to("../packages/own")
    facts = Furnishings(
        variables={"CACHE": "{home}/.cache", "MODULES": "{environment}/modules", "ROOT": "{workspace}"},
        links={"build": "{home}/.cache"},
        kept=("node_modules", "web/node_modules", "Cargo.lock"),
    )
    (built / "environment.json").write_bytes(canonical_json(facts))
    return built


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "packages" / "own").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return tmp_path


def test_what_is_kept_is_laid_into_the_workspace(environment: Path, place: Path) -> None:
    workspace, home = place / "workspace", place / "home"
    furnish(environment, workspace, home)
    modules = workspace / "node_modules"
    assert (modules / "plain/index.js").read_text() == "kept/node_modules/plain/index.js"
    assert (modules / "@scope/one").is_symlink()
    assert not (modules / "@scope").is_symlink(), "a test may write beside a package"
    assert (modules / "own").resolve() == workspace / "packages/own", "packages of the workspace are its own"
    assert not (workspace / "web").exists(), "a folder that this commit lacks"
    assert (workspace / "Cargo.lock").read_text() == "lock"
    assert (home / ".cache/ab/object").is_symlink()
    assert not (home / ".cache/.cargo-lock").exists(), "each attempt locks its own"
    assert time.time() - int((home / ".cache/trim.txt").read_text()) < 60, "or Go would remove an old one's links"
    (home / ".cache/ab/new").write_text("x")
    (modules / ".vite").mkdir()
    furnish(environment, workspace, place / "other")  # what is there stays


def test_links_of_a_patch_are_not_followed(environment: Path, place: Path) -> None:
    outside = place / "outside"
    outside.mkdir()
    workspace = place / "workspace"
    (workspace / "web").symlink_to(outside)
    (workspace / "node_modules").symlink_to(outside)
    (workspace / "Cargo.lock").symlink_to(outside / "lock")
    furnish(environment, workspace, place / "home")
    assert list(outside.iterdir()) == []


def test_what_maven_compiles_lies_beside_its_modules_and_never_behind_a_link(
    environment: Path, tmp_path: Path
) -> None:
    """Neither reports, nor another tool's folders of these names, nor what a test has linked to."""
    workspace = tmp_path / "workspace"
    for name in (
        "target/classes/A.class",
        "target/surefire-reports/a.xml",
        "core/target/test-classes/B.class",
        "docs/target/classes/a.html",
    ):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    for module in ("", "core", "linked"):
        (workspace / module).mkdir(exist_ok=True)
        (workspace / module / "pom.xml").touch()
    (workspace / "core/target/classes").symlink_to(tmp_path)
    (workspace / "linked/target").symlink_to(workspace / "docs/target")
    assert compiled_beside(environment, workspace) == ()
    maven = Furnishings(variables={}, links={"m2": "{home}/.m2/repository"}, kept=())
    (environment / "environment.json").write_bytes(canonical_json(maven))
    found = sorted(map(str, compiled_beside(environment, workspace)))
    assert found == ["core/target/test-classes", "target/classes"]


def test_variables_name_places_as_the_program_sees_them(environment: Path, tmp_path: Path) -> None:
    found = variables_of(environment, seen="/e", home="/home/agent", workspace="/workspace")
    assert found == {"CACHE": "/home/agent/.cache", "MODULES": "/e/modules", "ROOT": "/workspace"}
    assert variables_of(tmp_path, seen="/e", home="/h", workspace="/w") == {}, "a Python environment has none"


def reference(**changed: object) -> ToolEnvironmentRef:
    facts = {"kind": "go", "digest": "0" * 64, "tools": {"go": "1.22.1"}, "inputs": "1" * 64, **changed}
    return tool_environment_ref(ToolEnvironmentRef.model_validate(facts))


def test_the_digest_covers_what_is_fetched_and_how() -> None:
    different = (
        reference(),
        reference(inputs="2" * 64),
        reference(tools={"go": "1.22.2"}),
        reference(fetch=(("true",),)),
        reference(variables={"A": "b"}),
    )
    assert len({each.digest for each in different}) == len(different)
    same = (reference(), reference(tree="3" * 64), reference(repository="4" * 64))
    assert len({each.digest for each in same}) == 1, "neighbouring commits share an environment"


def test_another_version_of_a_tool_than_planned_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"planned for git 0\.1; this machine has \d"):
        programs({"git": "0.1"})
    with pytest.raises(OperatorError, match="no program no-such-tool"):
        programs({"no-such-tool": "1"})


def test_a_program_is_asked_once_for_its_version_until_another_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program = tmp_path / "some-tool"

    def install(version: str) -> None:
        made = tmp_path / "fresh"
        made.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\necho some-tool {version}\n")
        made.chmod(0o755)
        made.replace(program)

    for version in ("1.2", "1.3"):
        install(version)
        assert [find_tool("some-tool"), find_tool("some-tool")] == [(program, version)] * 2
    assert (tmp_path / "log").read_text().splitlines() == ["asked"] * 2


def test_rustup_without_the_component_has_no_such_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    rustup = tmp_path / "rustup"
    rustup.write_text("#!/bin/sh\necho \"error: 'some-tool' is not installed for the toolchain\" >&2\nexit 1\n")
    rustup.chmod(0o755)
    (tmp_path / "some-tool").symlink_to(rustup)
    with pytest.raises(OperatorError, match="'some-tool' is not installed for the toolchain"):
        find_tool("some-tool")
