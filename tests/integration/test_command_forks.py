"""A command that is forked is, to its caller and to itself, one that was executed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.costs import used_core_seconds
from tests.support.command_forks import run_command, start_command

SEEN = """
import atexit, json, os, signal, sys

atexit.register(print, "at exit", file=sys.stderr)
print(json.dumps({
    "name": __name__, "words": sys.argv[1:], "original": sys.orig_argv[1:], "folder": os.getcwd(),
    "first on the path": sys.path[0], "environment": dict(os.environ),
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:3],
    "signals": {one.name: str(signal.getsignal(one)) for one in signal.valid_signals() if hasattr(one, "name")},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "group": os.getpgid(0),
}))
sys.exit(sys.argv[1] == "fails" and 3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "seen.py").write_text(SEEN)
    return tmp_path


def see(folder: Path, *words: str, **env: str) -> tuple[int, str, dict[str, Any], str]:
    """The parent's command, the exit code, what the program sees, and its errors."""
    ended = run_command(*words, cwd=folder, env=env, module="seen")
    return ended.returncode, ended.stderr, json.loads(ended.stdout), " ".join(ended.args)


@pytest.mark.parametrize("word", ["works", "fails"])
def test_it_sees_what_an_executed_one_sees(folder: Path, word: str) -> None:
    executed, forked = (see(folder, word, "größe", SOME="value") for _ in range(2))
    assert forked == executed
    assert forked[:2] == (3 if word == "fails" else 0, "at exit\n")


def test_nothing_of_one_command_is_left_in_the_next(folder: Path) -> None:
    for number in range(3):
        _, _, sees, _ = see(folder, "again", **{f"ONLY_{number}": "x"})
        assert [name for name in sees["environment"] if name.startswith("ONLY_")] == [f"ONLY_{number}"]


def test_an_environment_that_makes_another_interpreter_is_its_own(folder: Path) -> None:
    (folder / "hashes.py").write_text("import os, sys; print(sys.flags.hash_randomization, os.getppid())")
    parents = [
        run_command("x", cwd=folder, module="hashes", env=env).stdout.split()
        for env in ({}, {"PYTHONHASHSEED": "0"}, {})
    ]
    assert [flag for flag, _ in parents] == ["1", "0", "1"]
    assert [parent == str(os.getpid()) for _, parent in parents] == [True, True, False]


def test_one_and_the_next_order_sets_by_other_hashes(folder: Path) -> None:
    """Two that write the same bytes do so whatever their hashes are."""
    (folder / "hashed.py").write_text("print(hash('a'))")
    hashes = [run_command("x", cwd=folder, module="hashed").stdout for _ in range(5)]
    assert all(one != other for one, other in pairwise(hashes))


def test_its_core_seconds_are_counted(folder: Path) -> None:
    (folder / "spins.py").write_text("import time\nwhile time.process_time() < 0.5: pass\n")
    before = used_core_seconds()
    for _ in range(2):
        run_command("x", cwd=folder, module="spins")
    assert used_core_seconds() - before >= 1


def test_its_time_is_limited(folder: Path) -> None:
    (folder / "sleeps.py").write_text(
        "import sys, time\nprint('begun', flush=True)\ntime.sleep(float(sys.argv[1]))"
    )
    run_command("0", cwd=folder, module="sleeps")
    for _ in range(2):
        with pytest.raises(subprocess.TimeoutExpired):
            run_command("60", cwd=folder, module="sleeps", timeout_s=0.3)


def test_one_that_runs_is_heard_and_told(folder: Path) -> None:
    """Executed, then forked."""
    (folder / "waits.py").write_text(
        "import sys, time\nprint('why', file=sys.stderr, flush=True)\nprint('begun', flush=True)\ntime.sleep(60)\n"
    )
    kinds: list[str] = []
    for _ in range(2):
        with start_command("x", cwd=folder, module="waits") as process:
            kinds.append(type(process).__name__)
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == b"begun\n"
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == process.poll() == -signal.SIGTERM
            assert process.stderr.read() == b"why\n"
    assert kinds == ["Popen", "ForkedProcess"]
