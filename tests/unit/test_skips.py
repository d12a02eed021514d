"""What was not run is the last that a run of all pools says, with the command that would have run it."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests import skips
from tests.conftest import PRESENT

FILE = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_it(n):
    pytest.skip("needs a cluster")

def test_other():
    pytest.skip("needs root")
"""


def test_reasons_of_all_pools_add_up(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(FILE)
    for pool in ("one", "two"):
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "--costs",
            str(tmp_path / f"{pool}.tsv"),
        ]
        subprocess.run([*argv, "--rootdir", str(tmp_path), str(tmp_path / "test_a.py")], check=True)
    added = skips.read_skips(tmp_path / f"{pool}.tsv" for pool in ("one", "two", "that never began"))
    assert added == Counter({"needs a cluster": 6, "needs root": 2})


def test_the_sentence() -> None:
    assert doctest.testmod(skips).failed == 0
    assert skips.describe_skips(Counter()) == []


def test_every_need_names_a_way_to_meet_it() -> None:
    ways = ("(", "/root)")
    assert [label for _, label in PRESENT.values() if not any(way in label for way in ways)] == []
