"""Repositories that mining must name or refuse: each commit here is one that real ones have."""

from __future__ import annotations

import http.server
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.git_repositories import Made
from trialfleet_ledger.errors import OperatorError
from trialfleet_tasks.commands import mine as mine_command
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.commands.validate import validate
from trialfleet_tasks.mining import probe
from trialfleet_tasks.mining.environments import MinedEnvironments
from trialfleet_tasks.validate import bench, room

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(600)]

PROJECT = '[project]\nname = "shop"\nversion = "1"\n[dependency-groups]\ntest = ["pytest"]\n'
BUG, RIGHT = "def total(prices):\n    return 0\n", "def total(prices):\n    return sum(prices)\n"
TEST = "from shop.{0} import total\n\ndef test_total():\n    {1}\n    assert total([1, 2]) == 3\n"
OUTSIDE = "/var/tmp/trialfleet-written-outside"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"

# case -> (what its test does first, what is found, words of the finding)
HOSTILE = {
    "crlf": ("", "kept", ""),
    "writes_outside": (f"open({OUTSIDE!r}, 'w').write('x')", "fails_at_fix", ""),
    "kills_its_parent": ("import os; os.kill(os.getppid(), 9)", "kept", ""),  # it cannot
    "kills_all": ("import os; os.kill(-1, 9)", "fails_at_fix", ""),  # there is nobody but itself
    "has_its_own_exit_code": (
        "import atexit, os; atexit.register(os._exit, 1)",
        "fails_at_fix",
        "exit 1, though no tests failed",
    ),
    "ends_its_runner": ("import os; os._exit(0)", "cannot_run_at_fix", "no results were written"),
    "fills_the_disk": ("while True: open('big', 'ab').write(bytes(10**7))", "too_big", "memory or disk"),
    # pytest keeps what tests print in a file without a name
    "prints_without_end": ("while True: print('x' * 10**7)", "too_big", "memory or disk"),
    "prints_slowly": ("import time\n    while True: print('x' * 10**4); time.sleep(0.05)", "too_slow", ""),
    "needs_a_database": ("import socket; socket.create_connection(('127.0.0.1', 5432))", "needs_network", ""),
    "reads_lfs": ("assert open('data.bin').read() == 'data'", "fails_at_fix", "Git LFS are pointers: data.bin"),
    "uses_a_submodule": ("import vendored.code", "fails_at_fix", "submodules are not read: vendored"),
}


def mined(made: Made, *options: str) -> dict[str, Any]:
    argv = [
        "mine",
        str(made.folder),
        "--language",
        "Python",
        "--timeout",
        "20",
        "--want",
        "50",
        *options,
        "--json",
    ]
    ended = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_hostile_commits_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_DISK_BYTES", 200 * 2**20)
    monkeypatch.setattr(probe, "FEWEST", 99)
    other = Made(tmp_path / "other")
    other.commit("Start", code="x = 1\n")
    made = Made(tmp_path / "shop")
    made.git("submodule", "--quiet", "add", str(other.folder), "vendored")
    made.write("pyproject.toml", PROJECT)
    made.write("data.bin", POINTER)
    made.write(".gitattributes", "data.bin filter=lfs -text\n*.py -text\n")
    made.commit("Start", shop____init__="", **{f"shop__{case}": BUG for case in (*HOSTILE, "linked")})
    expected: dict[str, str] = {}
    for case, (first, _, _) in HOSTILE.items():
        ends = "\r\n" if case == "crlf" else "\n"
        made.write(f"shop/{case}.py", RIGHT.replace("\n", ends))
        made.write(f"tests/test_{case}.py", TEST.format(case, first or "pass").replace("\n", ends))
        expected[case] = made.commit(f"Case {case}")
    made.write("shop/linked.py", RIGHT)  # what the link names is no test itself, so it is not there before
    made.write("checks/linked.py", TEST.format("linked", "pass"))
    (made.folder / "tests/test_linked.py").symlink_to("../checks/linked.py")
    expected["linked"] = made.commit("Case linked")
    found = {row["commit"]: row for row in mined(made)["findings"]}
    said = {case: found[sha]["outcome"] for case, sha in expected.items()}
    assert said == {
        **{case: outcome for case, (_, outcome, _) in HOSTILE.items()},
        "linked": "cannot_run_before",
    }, found
    for case, (_, _, words) in HOSTILE.items():
        assert words in found[expected[case]]["detail"]
    assert not Path(OUTSIDE).exists()


def test_paths_that_are_no_utf_8(tmp_path: Path) -> None:
    """The commit that adds one is no candidate; others are."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.commit("Start", shop____init__="", shop__a=BUG, shop__b=BUG)
    with Path(os.fsdecode(os.fsencode(made.folder) + b"/caf\xe9.txt")).open("w", encoding="utf-8") as file:
        file.write("x")
    made.commit("Odd", shop__a=RIGHT, tests__test_a=TEST.format("a", "pass"))
    after = made.commit("After", shop__b=RIGHT, tests__test_b=TEST.format("b", "pass"))
    (finding,) = mined(made)["findings"]
    assert (finding["commit"], finding["outcome"]) == (after, "kept")


def test_a_fix_that_needs_another_package(tmp_path: Path) -> None:
    """No agent could install it, so the environment stays that of the commit before."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.commit("Start", shop____init__="", shop__a=BUG)
    made.write("pyproject.toml", PROJECT.replace('"pytest"', '"pytest", "six"'))
    fix = made.commit("Fix", shop__a=f"import six\n\n\n{RIGHT}", tests__test_a=TEST.format("a", "pass"))
    (finding,) = mined(made)["findings"]
    assert (finding["commit"], finding["outcome"]) == (fix, "cannot_run_at_fix"), finding
    begins = "the commit changes pyproject.toml, and the environment is that of the commit before it; "
    assert finding["detail"].startswith(begins)
    assert "No module named 'six'" in finding["detail"]


def test_nothing_is_left_to_change(tmp_path: Path) -> None:
    """Its test files are gone with the fix."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.commit("Start", shop____init__="", shop__a=BUG, tests__test_a=TEST.format("a", "pass"))
    (made.folder / "tests/test_a.py").unlink()
    removed = made.commit("Remove the test", shop__a=RIGHT)
    (finding,) = mined(made)["findings"]
    assert (finding["commit"], finding["outcome"]) == (removed, "changes_only_tests")
    assert finding["detail"] == "the commit removes its test files"


@pytest.mark.parametrize("place", ["", "tasks", "tasks/.mining", "tasks/.mining/logs", "tasks/.mining/.gitignore"])
def test_links_in_the_repository_lead_nowhere(tmp_path: Path, place: str) -> None:
    """A log would become the user's own file, with lines that the repository's tests print."""
    made, link = Made(tmp_path / "repo"), tmp_path / "repo/trialfleet" / place
    made.write("pyproject.toml", PROJECT)
    made.commit("Start", src__shop__a=BUG)
    made.commit("Fix", src__shop__a=RIGHT, tests__test_a=TEST.format("a", "pass"))
    outside = tmp_path / "outside"
    outside.mkdir()
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    with pytest.raises(OperatorError, match=f"{link.name} is a link"):
        mined(made)
    assert [*outside.iterdir()] == []
    link.unlink()
    odd = made.folder / "trialfleet/tasks/\x1b[2J"
    odd.parent.mkdir(parents=True, exist_ok=True)
    odd.symlink_to(outside)
    with pytest.raises(OperatorError) as refused:
        mined(made)
    assert "\x1b" not in str(refused.value), "its name would clear the operator's terminal"


@pytest.mark.parametrize("lost", ["pyproject.toml", "data.txt"])
def test_a_clone_that_lacks_a_file(tmp_path: Path, lost: str) -> None:
    """One that no commit of the history that is read changes: of a manifest, and of any other file."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.write("data.txt", "one\n")
    made.commit("Start", shop____init__="", shop__a=BUG)
    fix = made.commit("Fix", shop__a=RIGHT, tests__test_a=TEST.format("a", "pass"))
    blob = made.git("rev-parse", f"HEAD:{lost}")
    (made.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    (finding,) = mined(made, "--commits", "1")["findings"]
    assert (finding["commit"], finding["outcome"]) == (fix, "unreadable"), finding
    assert "full clone" in finding["hint"]
    change = made.git("rev-parse", "HEAD~:shop/a.py")
    (made.folder / ".git/objects" / change[:2] / change[2:]).unlink()
    assert mined(made)["stages"]["candidates"] == 0, "what both commits change cannot be read"


def test_limits_of_time_and_dates(tmp_path: Path) -> None:
    """Commits of other days are left out. When the time is over, the commit that is examined is the last."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.commit("Start", shop____init__="", shop__a=BUG, shop__b=BUG)
    fixes = [
        made.commit(f"Fix {name}", **{f"shop__{name}": RIGHT, f"tests__test_{name}": TEST.format(name, "pass")})
        for name in ("a", "b")
    ]
    for dates in (("--since", "2999-01-01"), ("--until", "1980-01-01")):
        assert mined(made, *dates)["stages"]["commits"] == 0
    dates = ("--since", "1980-01-01", "--until", "2999-01-01")
    found = mined(made, *dates, "--jobs", "1", "--minutes", "0.0001")  # 6 ms: each takes longer
    assert found["stages"]["candidates"] == 2
    assert len(found["findings"]) <= 1, found["findings"]  # none where the time is over before the first begins
    found = mined(made, *dates, "--jobs", "1", "--minutes", "10")
    assert {finding["commit"]: finding["outcome"] for finding in found["findings"]} == dict.fromkeys(fixes, "kept")


def test_a_full_disk_ends_mining_and_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.commit("Start", shop____init__="", shop__a=BUG)
    fix = made.commit("Fix", shop__a=RIGHT, tests__test_a=TEST.format("a", "pass"))
    with monkeypatch.context() as patched:
        patched.setattr(room, "ROOM_BYTES", 2**70)
        with pytest.raises(OperatorError, match=r"MiB left\n.*what is finished is kept"):
            mined(made)
    (finding,) = mined(made)["findings"]
    assert (finding["commit"], finding["outcome"]) == (fix, "kept")
    file = str(made.folder / "trialfleet/tasks/mined.yaml")
    assert CliRunner().invoke(validate, [file]).exit_code == 0
    monkeypatch.setattr(room, "ROOM_BYTES", 2**70)
    assert CliRunner().invoke(validate, [file]).exit_code == 0, "what is validated already needs no room"


def test_a_history_without_tests_and_languages_without_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path / "shop")
    made.commit("Start", shop____init__="", shop__a=BUG)
    made.commit("More", shop__a=RIGHT)
    made.write("go.mod", "module x\n")
    made.write("cart.go", "package x\n")
    made.write("cart_test.go", "package x\n")
    made.commit("Go")
    here, _ = mine_command._environments(tmp_path, build=False)  # pyright: ignore[reportPrivateUsage]

    def python_alone(*_: object, **__: object) -> tuple[dict[str, MinedEnvironments], dict[str, OperatorError]]:
        return {"Python": here["Python"]}, {"Go": OperatorError("go does not work: exit code 1")}

    monkeypatch.setattr(mine_command, "_environments", python_alone)
    ended = CliRunner().invoke(tasks, ["mine", str(made.folder)], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    shown = " ".join(ended.output.split())
    assert "no_tests: changes no test file 1" in shown
    assert "no_toolchain: needs tools of its language that this machine lacks 1" in shown
    assert "no task was kept" in shown
    assert "1 commit in Go left out: go does not work: exit code 1" in shown


@pytest.mark.needs("node", "npm")
def test_packages_of_a_private_registry(tmp_path: Path) -> None:
    """npm asks the registry that the lock names, which wants a token that no sandbox has."""

    class Private(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Private)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = Made(tmp_path / "shop")
    own = {
        "version": "1.0.0",
        "resolved": f"http://127.0.0.1:{server.server_port}/own.tgz",
        "integrity": "sha512-AA==",
    }
    root = {"name": "shop", "version": "1.0.0", "dependencies": {"own": "1.0.0"}}
    made.write("package.json", json.dumps(root))
    lock = {"name": "shop", "lockfileVersion": 3, "packages": {"": root, "node_modules/own": own}}
    made.write("package-lock.json", json.dumps(lock))
    made.write("src/a.js", "module.exports = 1;\n")
    made.commit("Start")
    made.write("src/a.js", "module.exports = 2;\n")
    made.write("test/a.test.js", "require('node:test')('is two', () => {});\n")
    made.commit("Fix")
    (finding,) = mined(made, "--language", "JavaScript")["findings"]
    server.shutdown()
    server.server_close()
    assert finding["outcome"] == "private_packages", finding
    assert "no credentials enter the sandbox" in finding["hint"]


def test_nothing_runs_without_a_sandbox_unless_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests of the repository, and what fetches dependencies of other languages than Python."""
    monkeypatch.setenv("TRIALFLEET_ISOLATION", "subreaper")
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.commit("Start", shop____init__="", shop__a=BUG)
    before = made.git("rev-parse", "HEAD")
    fix = made.commit("Fix", shop__a=RIGHT, tests__test_a=TEST.format("a", "pass"))
    with pytest.raises(OperatorError, match="nothing here isolates them") as refused:
        mined(made)
    assert "--no-sandbox" in str(refused.value)
    assert not (made.folder / "trialfleet/tasks/mined.yaml").exists()
    (finding,) = mined(made, "--no-sandbox")["findings"]
    assert (finding["commit"], finding["outcome"]) == (fix, "kept")

    environment: dict[str, Any] = {
        "kind": "commands",
        "tools": {},
        "fetch": [["touch", str(tmp_path / "fetched")]],
    }
    environment |= {"test_command": ["true", "{tests}"], "results": "junit"}
    task = {"id": "a", "pre_fix_commit": before, "fix_commit": fix, "test_file": "tests/test_a.py"}
    file = tmp_path / "tasks.yaml"
    repo = {"url": "./shop", "environment": environment}
    file.write_text(yaml.safe_dump({"repo": repo, "tasks": [{**task, "prompt_source": "failing_test"}]}))
    with pytest.raises(OperatorError, match="nothing here isolates that") as refused:
        CliRunner().invoke(validate, [str(file)], catch_exceptions=False)
    assert "--no-sandbox" in str(refused.value)
    assert not (tmp_path / "fetched").exists()
    CliRunner().invoke(validate, [str(file), "--no-sandbox"], catch_exceptions=False)
    assert (tmp_path / "fetched").exists()
