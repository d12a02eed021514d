"""Environments of any commands, built for real: what the commands may see and do, what is left of a failure."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records import ToolEnvironmentRef
from trialfleet_runner.cache import Cache
from trialfleet_runner.environment import bake, baked, build, retire, tool_environment_ref, unchanged
from trialfleet_runner.trees import TreeEntry, pack

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
    with pytest.raises(OperatorError, match="exit 3: no such registry"):
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


def test_an_image_may_hold_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = reference("touch {environment}/there")
    made = bake(ref, TREE, tmp_path)
    monkeypatch.setenv("TRIALFLEET_BAKED", str(tmp_path))
    assert baked(ref) == made
    assert (made / "there").exists()
