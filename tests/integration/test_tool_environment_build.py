"""Environments of any commands, built for real: what the commands may see and do, what is left of a failure."""

from __future__ import annotations

import http.server
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import ToolEnvironmentRef
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import (
    bake,
    baked,
    build,
    retire,
    tool_environment_ref,
    unchanged,
)
from trialfleet_repository.environments.tool_environment import find_tool
from trialfleet_repository.trees import TreeEntry, pack
from trialfleet_runner.pod.probe import baked_versions

pytestmark = [pytest.mark.needs("bwrap")]
TREE = pack({"lock": TreeEntry(b"one"), "packages/own/a": TreeEntry(b"")})


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server on the machine's loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def reference(*fetch: str, warm: tuple[str, ...] = (), **changed: object) -> ToolEnvironmentRef:
    """`fetch`, `warm`: shell lines."""
    facts = {
        "kind": "commands",
        "digest": "0" * 64,
        "tools": {},
        "inputs": "1" * 64,
        "tree": sha256(TREE),
        "fetch": [("/bin/sh", "-c", line) for line in fetch],
        "warm": [("/bin/sh", "-c", line) for line in warm],
        **changed,
    }
    return tool_environment_ref(ToolEnvironmentRef.model_validate(facts))


def test_a_network_to_fetch_and_none_to_warm(tmp_path: Path, port: int) -> None:
    ask = f"/bin/bash -c '</dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo yes || echo no"
    ref = reference(f"({ask}) > {{environment}}/fetch", warm=(f"({ask}) > {{environment}}/warm",))
    built = build(ref, TREE, cache=Cache(tmp_path))
    assert ((built / "fetch").read_text(), (built / "warm").read_text()) == ("yes\n", "no\n")


def test_commands_see_nothing_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-them")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    secret = tmp_path / "secret"
    secret.write_text("not-for-them")
    ref = reference(
        "env > {environment}/env; ls -A ~ > {environment}/home; pwd > {environment}/cwd",
        f"cat {secret} > {{environment}}/stolen 2>&1; touch /usr/x > {{environment}}/usr 2>&1; true",
    )
    built = build(ref, TREE, cache=Cache(tmp_path / "cache"))
    seen = (built / "env").read_text()
    assert "not-for-them" not in seen + (built / "stolen").read_text()
    assert "HTTPS_PROXY=http://proxy.invalid:3128" in seen
    assert ((built / "home").read_text(), (built / "cwd").read_text()) == ("tmp\n", "/workspace\n")
    assert "Read-only" in (built / "usr").read_text()


def test_what_the_commands_leave_is_kept_and_sealed(tmp_path: Path) -> None:
    ref = reference(
        "mkdir -p node_modules/a packages/own/node_modules {environment}/cache; echo x > node_modules/a/file",
        warm=("false", "echo y > {environment}/cache/file; mkdir {environment}/cache/incremental"),
        keep=("node_modules",),
        drop=("cache/incremental",),
    )
    built = build(ref, TREE, cache=Cache(tmp_path))
    assert (built / "kept/node_modules/a/file").read_text() == "x\n"
    assert (built / "kept/packages/own/node_modules").is_dir()
    assert sorted(path.name for path in (built / "cache").iterdir()) == ["file"]
    assert unchanged(built)
    assert build(ref, TREE, cache=Cache(tmp_path)) == built, "once"
    (built / "cache/file").chmod(0o644)
    (built / "cache/file").write_text("z")
    assert not unchanged(built)
    retire(built)
    again = build(ref, TREE, cache=Cache(tmp_path))
    assert again != built
    assert (again / "cache/file").read_text() == "y\n"


def test_a_failed_fetch_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with pytest.raises(OperatorError, match=r"(?s)no such registry.*exit 3 of"):
        build(reference("echo no such registry; exit 3"), TREE, cache=cache)
    assert [path.name for path in cache.environments.iterdir() if path.is_dir()] == []


def test_caches_go_on_from_the_last_environment_of_the_repository(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    line = "cd {environment}; ls cache > found 2>/dev/null; mkdir -p cache; touch cache/"
    facts: dict[str, Any] = {"repository": "4" * 64, "links": {"cache": "{home}/.cache"}}
    build(reference(f"{line}first", **facts), TREE, cache=cache)
    second = build(reference(f"{line}second", inputs="2" * 64, **facts), TREE, cache=cache)
    other = build(reference(f"{line}other", **{**facts, "repository": "5" * 64}), TREE, cache=cache)
    assert ((second / "found").read_text(), (other / "found").read_text()) == ("first\n", "")


def test_what_tools_cache_without_a_repository_is_made_once_for_all(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    line = "cd {environment}; ls /workspace >> seen; mkdir -p cache; [ -e cache/own ] || echo made >> cache/own"
    facts: dict[str, Any] = {"alone": [("/bin/sh", "-c", line)], "links": {"cache": "{home}/.cache"}}
    foreign = "cd {environment}; cp seen first; echo foreign > cache/foreign"
    one, other = (
        build(reference(foreign, **facts, repository=name * 64, inputs=name * 64), TREE, cache=cache)
        for name in ("4", "5")
    )
    assert len([path for path in cache.environments.iterdir() if path.is_dir()]) == 3
    (bare,) = (path.parent for path in cache.environments.glob("*/seen") if not path.read_text())
    assert (bare / "cache/own").stat().st_mtime == (one / "cache/own").stat().st_mtime, (
        "taken over, not made again"
    )
    assert (bare / "cache/own").stat().st_mtime == (other / "cache/own").stat().st_mtime
    assert not (bare / "cache/foreign").exists()
    assert (other / "first").read_text() == "lock\npackages\n", "its own run sees its own checkout alone"


def test_what_an_environment_began_with_can_be_written_again(tmp_path: Path) -> None:
    """Cargo's records of dependencies name the environment's folder, so that it writes them again."""
    cache = Cache(tmp_path)
    line = "cd {environment}; mkdir -p cache; echo $(basename $PWD) > cache/record"
    facts: dict[str, Any] = {"repository": "4" * 64, "links": {"cache": "{home}/.cache"}}
    build(reference(line, **facts), TREE, cache=cache)
    second = build(reference(line, inputs="2" * 64, **facts), TREE, cache=cache)
    assert (second / "cache/record").read_text() == f"{second.name}\n"


def test_an_image_may_hold_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, version = find_tool("git")
    ref = reference("touch {environment}/there", tools={"git": version})
    made = bake(ref, TREE, tmp_path)
    monkeypatch.setenv("TRIALFLEET_BAKED", str(tmp_path))
    assert baked(ref) == made
    assert (made / "there").exists()
    assert dict(baked_versions(tmp_path)) == {made.name: f"git {version}"}


def test_an_image_without_the_program_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an image whose last stage lacks the toolchain that its environments were baked with."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/tool"
    program.write_text("#!/bin/sh\necho 1.2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    ref = reference("true", tools={"tool": "1.2"})
    monkeypatch.setattr("trialfleet_repository.environments.tool_environment.executable_by_others", lambda _: True)
    bake(ref, TREE, tmp_path / "baked")
    program.unlink()
    monkeypatch.setenv("TRIALFLEET_BAKED", str(tmp_path / "baked"))
    with pytest.raises(OperatorError, match=r"\(tool 1\.2\), but not its tool"):
        baked(ref)
    assert dict(baked_versions(tmp_path / "baked")) == {}


def test_an_image_with_another_version_is_not_baked(tmp_path: Path) -> None:
    ref = reference("true", tools={"git": "0.1"})
    with pytest.raises(OperatorError, match=r"planned for git 0\.1; this machine has") as refused:
        bake(ref, TREE, tmp_path)
    assert "--base" in (refused.value.hint or "")


@pytest.mark.needs("root")
def test_without_bubblewrap_all_users_may_read_what_another_has_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in the build of an image: the commands run as another user, in the folders that attempts will have."""
    monkeypatch.setenv("TRIALFLEET_ISOLATION", "uid")
    line = "id -u > {environment}/fetched; mkdir -m 700 modules; touch modules/file"
    ref = reference(line, warm=("pwd >> {environment}/places",), keep=("modules",))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        made = bake(ref, TREE, Path(folder), checkouts=[Path(folder, name) for name in ("workspace", "checkout")])
        assert (made / "fetched").read_text().strip() != "0"
        assert (made / "places").read_text().split() == [f"{folder}/workspace", f"{folder}/checkout"]
        assert {path.stat().st_uid for path in (made, *made.rglob("*"))} == {0}
        modes = {path.stat().st_mode & 0o555 for path in (made, made / "kept/modules")}
        assert modes == {0o555}
        assert (made / "kept/modules/file").stat().st_mode & 0o444 == 0o444
