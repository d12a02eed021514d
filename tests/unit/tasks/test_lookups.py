"""What strace's log says of paths below a workspace; the log may be anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.trees import EntryKind, Tree, TreeEntry
from trialfleet_sandbox.protocol import SandboxCapabilities
from trialfleet_tasks.validate import lookups
from trialfleet_tasks.validate.lookups import LookupsUnknown, read_lookups, refuse_tracing, traced
from trialfleet_tasks.validate.product_classes import PathLookups

LOG = r"""
10 execve("/usr/bin/python3", ["python3", "/w/never.py"], 0x7ffc /* 35 vars */) = 0
10 openat(AT_FDCWD</w>, "a.py", O_RDONLY|O_CLOEXEC) = 3</w/a.py>
10 newfstatat(AT_FDCWD</w>, "/w/gone/x.py", 0x7ffe, 0) = -1 ENOENT (No such file or directory)
10 newfstatat(4</w/pkg>, "b.py", {st_mode=S_IFREG|0644, st_size=1, ...}, 0) = 0
10 access("secret", R_OK)            = -1 EACCES (Permission denied)
10 access("a.py/x", F_OK)            = -1 ENOTDIR (Not a directory)
10 chdir("pkg")                      = 0
10 access("c.py", F_OK)              = -1 ENOENT (No such file or directory)
10 vfork( <unfinished ...>
11 access("unknown.py", F_OK)        = -1 ENOENT (No such file or directory)
10 <... vfork resumed>)              = 11
11 access("d.py", F_OK)              = -1 ENOENT (No such file or directory)
11 fchdir(5</tmp>)                   = 0
11 access("e.py", F_OK)              = -1 ENOENT (No such file or directory)
11 statx(AT_FDCWD</tmp>, "/w/f\"\303\244\n.py", AT_STATX_SYNC_AS_STAT, STATX_MODE, 0x7f <unfinished ...>
10 readlink("/w/link/g.py", 0x7ffd, 4096) = -1 ENOENT (No such file or directory)
11 <... statx resumed>)              = -1 ENOENT (No such file or directory)
10 openat(AT_FDCWD</w/pkg>, "/w/late.txt", O_RDONLY) = -1 ENOENT (No such file or directory)
10 openat(AT_FDCWD</w/pkg>, "/w/late.txt", O_WRONLY|O_CREAT, 0666) = 7</w/late.txt>
10 openat(AT_FDCWD</w/pkg>, "../../w/../w/up.py", O_RDONLY) = -1 ENOENT (No such file or directory)
10 openat(AT_FDCWD</w/pkg>, "/workspace2/x", O_RDONLY) = -1 ENOENT (No such file or directory)
10 stat("/w/target/classes/org/junit/A$B.class", 0x7f) = -1 ENOENT (No such file or directory)
10 stat("/w/target/classes/shop/Cart.class", 0x7f) = 0
nonsense
"""
TREE: Tree = {
    "a.py": TreeEntry(b""),
    "pkg/b.py": TreeEntry(b""),
    "link": TreeEntry(b"pkg", EntryKind.LINK),
    "src/main/kotlin/shop/Cart.kt": TreeEntry(b""),
}


def read(text: bytes, folder: Path, workspace: str = "/w") -> PathLookups:
    (folder / "log").write_bytes(text)
    return read_lookups(folder / "log", workspace=workspace, start=workspace, tree=TREE)


def test_hits_and_misses_are_read(tmp_path: Path) -> None:
    seen = read(LOG.encode(), tmp_path)
    assert seen.hits == {"a.py", "pkg/b.py", "pkg", "late.txt", "src/main/java/shop/Cart.java"} | {
        "src/main/kotlin/shop/Cart.kt"
    }
    assert seen.misses == {
        *("gone/x.py", "a.py/x", "pkg/c.py", "unknown.py", "pkg/d.py", 'f"ä\n.py', "pkg/g.py", "up.py"),
        *("src/main/java/org/junit/A.java", "src/main/kotlin/org/junit/A.kt"),
    }


@given(st.binary(max_size=200), st.binary(max_size=30))
def test_any_log_is_read(tmp_path_factory: pytest.TempPathFactory, noise: bytes, path: bytes) -> None:
    line = b'10 openat(AT_FDCWD</w>, "' + path + b'", O_RDONLY) = -1 ENOENT (No)\n'
    for text in (noise, line, noise + b"\n" + line + noise):
        seen = read(text, tmp_path_factory.getbasetemp())
        assert all(not place.startswith(("/", "../")) for place in seen.hits | seen.misses)


def test_a_log_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "MAX_LOG_BYTES", 100)
    with pytest.raises(LookupsUnknown, match="the log of strace has more than"):
        read(LOG.encode(), tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(lookups, "MAX_PATHS", 5)
    with pytest.raises(LookupsUnknown, match="the tests look up more than 5 paths"):
        read(LOG.encode(), tmp_path)


def test_a_log_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/etc/passwd")
    with pytest.raises(LookupsUnknown, match="strace wrote no log"):
        read_lookups(tmp_path / "log", workspace="/w", start="/w", tree=TREE)


@pytest.mark.needs("strace")
def test_strace_writes_such_a_log(tmp_path: Path) -> None:
    """Also of threads, of children in other folders, and of names that strace escapes."""
    workspace = tmp_path / "workspace"
    (workspace / "pkg").mkdir(parents=True)
    (workspace / "pkg/b.py").write_text("")
    code = (
        "import os, subprocess, sys, threading\n"
        "os.chdir('pkg')\n"
        "thread = threading.Thread(target=lambda: os.access('thread', 0)); thread.start(); thread.join()\n"
        "os.path.exists('b.py'); os.path.exists('ä\\n')\n"
        "subprocess.run([sys.executable, '-Sc', 'import os; os.access(\"child\", 0)'], cwd='..')\n"
        "if not os.fork(): os.chdir('/'); os.access('elsewhere', 0); os._exit(0)\n"
        "os.wait(); os.access('last', 0)\n"
    )
    command = (*traced(str(tmp_path)), sys.executable, "-Sc", code)
    subprocess.run(command, cwd=workspace, check=True, env={"PATH": os.defpath}, timeout=60)
    place = str(workspace)
    seen = read_lookups(tmp_path / lookups.LOG, workspace=place, start=place, tree={})
    assert {"pkg", "pkg/b.py"} <= seen.hits
    assert seen.misses >= {"pkg/thread", "pkg/ä\n", "child", "pkg/last"}
    assert not any("elsewhere" in path for path in seen.misses)


def test_tests_in_another_container_are_not_traced() -> None:
    with pytest.raises(LookupsUnknown, match="tests run in another container"):
        refuse_tracing(SandboxCapabilities(separate_container=True))


def test_the_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    def find_nothing(program: str, path: str) -> None:
        return None

    monkeypatch.setattr(shutil, "which", find_nothing)
    lookups.probe_strace.cache_clear()
    request.addfinalizer(lookups.probe_strace.cache_clear)
    with pytest.raises(LookupsUnknown, match="strace is not installed"):
        refuse_tracing(SandboxCapabilities())
