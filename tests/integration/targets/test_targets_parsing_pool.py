"""Parsers in processes of their own: one that hangs or dies costs its file, not the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trialfleet_targets.encoding import decoded
from trialfleet_targets.parsing_pool import CRASHED, TIMED_OUT, parse_all

CODE = b"def f():\n    return 1\n"


def names(answer: bytes) -> list[str]:
    facts = decoded(answer)
    assert facts is not None
    return [one.name for one in facts.definitions]


def workers() -> list[int]:
    """Of any thread of this process."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += [int(pid) for pid in (task / "children").read_text().split()]
        except OSError:  # the thread has ended
            continue
    return [pid for pid in found if b"parsing_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_each_file_gets_its_own_answer() -> None:
    files = {f"m{number}.py": f"def f{number}(): pass\n".encode() for number in range(60)}
    answers = parse_all(files.items(), processes=2)
    assert {path: names(answer) for path, answer in answers.items()} == {
        f"m{number}.py": [f"f{number}"] for number in range(60)
    }
    assert workers() == []


def test_nothing_to_parse_starts_nothing() -> None:
    assert parse_all([]) == {}


def test_names_and_sizes_of_every_kind() -> None:
    files = [("caf\u00e9.py", CODE), ("empty.py", b""), ("big.py", b"# x\n" * 700_000), ("other.rb", b"puts 1")]
    answers = parse_all(files, processes=1)
    assert names(answers["caf\u00e9.py"]) == ["f"]
    assert names(answers["empty.py"]) == []
    assert decoded(answers["big.py"]) is not None
    assert decoded(answers["other.rb"]) is None


def test_a_file_that_takes_too_long_is_given_up() -> None:
    assert parse_all([("a.py", CODE), ("b.py", CODE)], processes=1, timeout_s=0) == {
        "a.py": TIMED_OUT,
        "b.py": TIMED_OUT,
    }
    assert workers() == []


@pytest.mark.parametrize("size", [0, 700_000])
def test_a_parser_that_dies_costs_one_file(size: int) -> None:
    def files() -> Iterator[tuple[str, bytes]]:
        yield "before.py", CODE
        (pid,) = workers()
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z":
            time.sleep(0.01)
        yield "during.py", CODE + b"#" * size
        yield "after.py", CODE

    answers = parse_all(files(), processes=1)
    assert answers["during.py"] == CRASHED
    assert names(answers["before.py"]) == names(answers["after.py"]) == ["f"]


def test_a_reader_that_fails_ends_the_parsers() -> None:
    class Broken(Exception):
        pass

    def files() -> Iterator[tuple[str, bytes]]:
        yield "a.py", CODE
        raise Broken

    try:
        parse_all(files(), processes=2)
    except Broken:
        pass
    else:
        raise AssertionError("it must say so")
    assert workers() == []
    assert not [one for one in threading.enumerate() if "ThreadPool" in one.name]


ENDLESS = """
import itertools
from trialfleet_targets.parsing_pool import parse_all
def files():
    for number in itertools.count():
        if number == 20: print("at work", flush=True)
        yield f"m{number}.py", b"def f(): pass" * 5000
parse_all(files())
"""


def test_ctrl_c_ends_the_parsing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
