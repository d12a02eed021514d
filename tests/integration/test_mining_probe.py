"""The first look of mining at a repository with many candidates, and where it ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_mining_bad_input import PROJECT
from tests.support.git_repositories import Made
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.mining.probe import FEWEST

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(600)]
COMMITS = FEWEST + 2


def _repository(folder: Path, beginning: str) -> Made:
    made = Made(folder)
    made.write("pyproject.toml", PROJECT)
    names = [f"a{number}" for number in range(COMMITS)]
    made.commit("Start", shop____init__="", **{f"shop__{name}": "x = 0\n" for name in names})
    for name in names:
        test = f"{beginning}from shop.{name} import x\n\ndef test_x():\n    assert x == 1\n"
        made.commit(f"Fix {name}", **{f"shop__{name}": "x = 1\n", f"tests__test_{name}": test})
    return made


def _mine(made: Made, *options: str) -> str:
    argv = ["mine", str(made.folder), "--language", "Python", "--jobs", "1", "--repeats", "1", *options]
    return CliRunner().invoke(tasks, argv, catch_exceptions=False).stderr


def test_the_rate_is_said_first_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    made = _repository(tmp_path / "shop", "")
    said = _mine(made, "--want", "1", "--room", "0.001")
    first = next(line for line in said.splitlines() if "this repository" in line)
    rate = rf"Python\): {COMMITS} tests ran in \d+ s, the environment took \d+ s; expect about \d tasks an hour"
    assert re.search(rate, first), first
    assert "1 environment (0.0 GiB) removed to stay within --room 0.0" in said
    assert "this repository" not in _mine(made, "--want", "2"), "some commits are known"


def test_the_cause_is_said_before_commits_burn(tmp_path: Path) -> None:
    """None of its tests can be imported here: the probe says why, and mining ends after so many of them."""
    said = _mine(_repository(tmp_path / "shop", "import absent_here\n"), "--minutes", "8")
    assert re.search(r"cannot run its tests: cannot_run_at_fix: .*; fix: .*\. Its 10 candidates", said), said
    assert f"{FEWEST} commits in Python in a row failed alike; no more began: cannot_run_at_fix" in said
    assert len(re.findall(r"^[0-9a-f]{12} cannot_run_at_fix", said, re.MULTILINE)) == FEWEST
