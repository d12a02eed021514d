"""A release's archive from a real index over HTTP: relative addresses, logins, digests."""

from __future__ import annotations

import base64
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.cache import Cache
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.sources.sdist import release
from trialfleet_tasks.taskfile import load_task_file

LOGIN = "Basic " + base64.b64encode(b"me:s3cret/!").decode()


def sdist(version: str, **files: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in {"setup.py": "raise SystemExit('never run')", **files}.items():
            info = tarfile.TarInfo(f"my_pkg-{version}/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


OLD = sdist("1.0", **{"src/a.py": "old", "tests/test_a.py": "t1", "gone.py": "g"})
NEW = sdist("1.1", **{"src/a.py": "new", "tests/test_a.py": "t2", "CLAUDE.md": "x"})
PAGE = (
    f'<a href="../../files/my_pkg-1.0.tar.gz#sha256={sha256(OLD)}">my_pkg-1.0.tar.gz</a>'
    '<a href="../../files/my_pkg-1.1.tar.gz">my_pkg-1.1.tar.gz</a>'
    '<a href="../../files/my_pkg-1.1-py3-none-any.whl">my_pkg-1.1-py3-none-any.whl</a>'
)


class Handler(BaseHTTPRequestHandler):
    paths: ClassVar[dict[str, bytes]] = {
        "/root/simple/my-pkg/": PAGE.encode(),
        "/root/files/my_pkg-1.0.tar.gz": OLD,
        "/root/files/my_pkg-1.1.tar.gz": NEW,
    }
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = self.paths.get(self.path)
        allowed = self.headers.get("Authorization") == LOGIN or "/files/" in self.path
        self.send_response(404 if body is None else 200 if allowed else 401)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if body is not None and allowed:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests that a local index saw; pip is configured to use it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Handler.asked.clear()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:s3cret%2F%21@127.0.0.1:{server.server_port}/root/simple/")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    yield Handler.asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_two_releases_become_two_trees(index: list[str], tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_text("")
    (tmp_path / "t.yaml").write_text(f"""
repo: {{environment: {{lock: lock.txt}}}}
tasks:
  - id: one
    prompt_source: issue
    issue: It is old.
    source:
      kind: sdist
      pre_fix: my-pkg==1.0
      pre_fix_sha256: {sha256(OLD)}
      fixed: My_Pkg==1.1
      fixed_sha256: {sha256(NEW)}
      files: [src/a.py, gone.py]
""")
    (task,) = load_task_file(tmp_path / "t.yaml").tasks
    trees = materialise(task, cache=Cache(tmp_path / "cache"), mirrors={})
    assert {path: entry.data for path, entry in trees.pre_fix.items() if path != "setup.py"} == {
        "src/a.py": b"old",
        "gone.py": b"g",
        "tests/test_a.py": b"t2",
        "CLAUDE.md": b"x",
    }
    assert trees.fixed["src/a.py"].data == b"new"
    seen = len(index)
    materialise(task, cache=Cache(tmp_path / "cache"), mirrors={})
    assert len(index) == seen  # kept by digest


def test_another_digest_is_refused_and_nothing_is_kept(index: list[str], tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    with pytest.raises(OperatorError, match="has SHA-256") as caught:
        release("my-pkg==1.1", "0" * 64, cache=cache, where="f.yaml: source.fixed")
    assert "f.yaml: source.fixed" in str(caught.value)
    assert list(cache.sdists.iterdir()) == []


def test_a_release_without_an_archive_is_named(index: list[str], tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"no source archive of my-pkg 2\.0"):
        release("my-pkg==2.0", "0" * 64, cache=Cache(tmp_path), where="w")


def test_a_login_is_never_printed(index: list[str], tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as caught:
        release("unknown==1.0", "0" * 64, cache=Cache(tmp_path), where="w")
    assert "404" in str(caught.value)
    assert "s3cret" not in str(caught.value)
