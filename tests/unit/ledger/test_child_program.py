"""What programs print counts only when they end well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trialfleet_controller.images.build import working_builder
from trialfleet_ledger.child_program import ChildFailure, ChildOutput, run_program
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.environments.package_index import _uv_default as uv_default  # pyright: ignore[reportPrivateUsage]
from trialfleet_repository.environments.tool_environment import BrokenTool, find_tool


def install(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 1.2; echo not set up >&2; exit 1", "ends with exit code 1: not set up"),
        ("echo 1.2; exit 3", "ends with exit code 3: 1.2"),
        ("kill -9 $$", "ends with signal 9"),
        ("sleep 5", "takes longer than 1 s"),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", f"ends with exit code 1: {'x' * 300}"),
    ],
)
def test_a_program_that_fails_gives_no_output(tmp_path: Path, script: str, words: str) -> None:
    program = install(tmp_path / "bin", "tool", script)
    ended = run_program((program, "--version"), timeout_s=1)
    assert isinstance(ended, ChildFailure)
    assert str(ended) == f"`{program} --version` {words}"


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for program in (tmp_path / "absent", tmp_path, tmp_path / "text"):
        ended = run_program((program,))
        assert isinstance(ended, ChildFailure)
        assert ended.reason.startswith("does not start: ")
    assert run_program(("cat",), stdin=b"a") == ChildOutput(b"a", b"")


@pytest.mark.parametrize("name", ["cargo", "go", "node", "java", "mvn", "gradle", "npm"])
def test_a_tool_that_is_not_set_up_is_named_with_its_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program = install(tmp_path / "bin", name, f"echo 'error: {name} 1.2 is not set up' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(BrokenTool) as refused:
        find_tool(name)
    assert f"{name} does not work on this machine: `{program} " in refused.value.message
    assert refused.value.message.endswith(f"ends with exit code 1: error: {name} 1.2 is not set up")
    assert f"put another {name} first on PATH" in str(refused.value.hint)


def test_rustup_without_a_toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "error: rustup could not choose a version of rustup to run, " + "because none is configured; " * 30
    rustup = install(tmp_path / "bin", "rustup", f"echo '{text}' >&2; exit 1")
    (rustup.parent / "cargo").symlink_to(rustup)
    monkeypatch.setenv("PATH", f"{rustup.parent}:{os.environ['PATH']}")
    with pytest.raises(BrokenTool, match="ends with exit code 1: error: rustup could not choose"):
        find_tool("cargo")


def test_what_rustup_says_besides_the_path_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = install(tmp_path / "toolchain", "cargo", "echo cargo 1.80.0")
    rustup = install(tmp_path / "bin", "rustup", f"echo 'info: syncing' >&2; echo '{real}'")
    (rustup.parent / "cargo").symlink_to(rustup)
    monkeypatch.setenv("PATH", f"{rustup.parent}:{os.environ['PATH']}")
    assert find_tool("cargo") == (real, "1.80.0")


def test_uv_that_fails_is_not_a_missing_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = install(
        tmp_path / "bin", "uv", "echo 'error: failed to open the cache: Read-only file system' >&2; exit 2"
    )
    monkeypatch.setattr("trialfleet_repository.environments.package_index.uv_program", lambda: str(uv))
    uv_default.cache_clear()
    with pytest.raises(OperatorError, match="ends with exit code 2: error: failed to open the cache") as refused:
        uv_default()
    uv_default.cache_clear()
    assert "no package index" not in str(refused.value)


def test_a_builder_whose_daemon_does_not_answer_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("docker", "podman", "buildah"):
        install(tmp_path / "bin", name, "echo version 1; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    with pytest.raises(OperatorError, match="docker"):
        working_builder("auto")
