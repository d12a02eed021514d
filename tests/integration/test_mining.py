"""A small repository whose commits give every finding, mined by the command; the tasks are then run."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.command_forks import run_command
from tests.support.git_repositories import Made
from tests.support.mined_tasks import not_validated
from tests.support.processes import processes_with, unique_seconds
from tests.support.waiting import wait_until
from trialfleet_ledger.task import Status
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.commands.validate import validate
from trialfleet_tasks.mining import probe
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(900)]

PROJECT = """
[project]
name = "shop"
version = "1"
requires-python = ">=3.11"
dependencies = [{}]
[dependency-groups]
test = ["pytest"]
"""
BUG, RIGHT = "def total(prices):\n    return 0\n", "def total(prices):\n    return sum(prices)\n"
TEST = """
from shop.{0} import total

def test_total():
    assert total([1, 2]) == 3

def test_empty():
    assert total([]) == 0
"""

# finding -> (before, after, test). Each in modules of its own, so that no commit meets another's.
CASES: dict[str, tuple[str, str, str]] = {
    "kept": (BUG, RIGHT, TEST),
    "already_green": (RIGHT, RIGHT + "# sure\n", TEST),
    "cannot_run_before": (BUG, RIGHT + "\ndef added(): ...\n", "from shop.{0} import added\n" + TEST),
    "cannot_run_at_fix": (BUG, RIGHT, "import no_such_module\n" + TEST),
    "fails_at_fix": (BUG, "def total(prices):\n    return 4\n", TEST),
    "flaky": (BUG, RIGHT, TEST.replace("== 3", "== 3 and hash('b') % 2 == 0")),
    "too_slow": (BUG, RIGHT, "import time; time.sleep(300)\n" + TEST),
    "needs_network": (
        BUG,
        RIGHT,
        "import urllib.request\n\ndef test_total():\n    urllib.request.urlopen('http://shop.invalid/')\n",
    ),
    "names_what_only_the_fix_adds": (
        "def total(prices): ...\n",
        "def total(prices, rounding=0):\n    return sum(prices)\n",
        "from shop.{0} import total\n\ndef test_total():\n    assert total([1], rounding=2) == 1\n",
    ),
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, dict[str, str]]:
    """The repository, and its commits by the finding that each must give."""
    made = Made(tmp_path_factory.mktemp("mined") / "shop")
    stops = '[tool.pytest.ini_options]\naddopts = "--maxfail=1 --strict-markers"\n'  # else `test_empty` never runs
    made.write("pyproject.toml", PROJECT.format("") + stops)
    for name, (before, _, _) in CASES.items():
        made.write(f"shop/{name}.py", before)
    made.commit("Start", shop____init__="", shop__crowd="x = 1\n")
    made.write("CLAUDE.md", "# Shop\n")
    expected = {"no_source": made.commit("Say what this is")}
    for name, (_, after, test) in CASES.items():
        made.write(f"shop/{name}.py", after)
        made.write(f"tests/test_{name}.py", test.format(name))
        expected[name] = made.commit(f"Total of {name}")
    expected["no_tests"] = made.commit("More", shop__crowd="x = 2\n")
    many = {f"shop__m{n}": "x = 1\n" for n in range(6)}
    expected["too_large"] = made.commit("Much", **many, tests__test_m="def test_m(): pass\n")
    expected["undone"] = made.commit("Off", shop__crowd="x = 3\n", tests__test_crowd="def test_x(): pass\n")
    made.git("revert", "--no-edit", "HEAD")
    made.write("pyproject.toml", PROJECT.format('"no-such-distribution-of-anybody>=7"'))
    made.commit("Depend on more")
    name = "environment_failed"
    made.commit("Before", **{f"shop__{name}": BUG})
    expected[name] = made.commit("Fix", **{f"shop__{name}": RIGHT, f"tests__test_{name}": TEST.format(name)})
    return made, expected


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setattr(probe, "FEWEST", 99)  # test_mining_probe.py is about it

    def call(*args: object) -> Result:
        return CliRunner().invoke(tasks, ["mine", *map(str, args)], catch_exceptions=False)

    return call


def test_every_finding(history: tuple[Made, dict[str, str]], run: Callable[..., Result]) -> None:
    made, expected = history
    options = ("--want", 50, "--timeout", 15, "--jobs", 2)
    ended = run(made.folder, *options, "--json")
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.stdout)
    by_commit = {row["commit"]: row for row in found["findings"]}
    wanted = {name: sha for name, sha in expected.items() if sha in by_commit}
    assert {name: by_commit[sha]["outcome"] for name, sha in wanted.items()} == {name: name for name in wanted}
    assert wanted.keys() == {*CASES, "environment_failed"}
    assert found["stages"] | {"commits": 0} == {
        "commits": 0, "candidates": 10, "examined": 10, "text for the prompt": 10, "environment built": 9,
        "passes at the fix": 5, "fails as a test before": 3, "names nothing that only the fix adds": 2,
        "same in every run": 1, "nothing that its tests need holds the fix": 1, "kept": 1,
    }  # fmt: skip
    logs = made.folder / "trialfleet/tasks/.mining/logs"
    assert "no_such_module" in (logs / by_commit[expected["cannot_run_at_fix"]]["log"]).read_text()
    assert "no-such-distribution" in by_commit[expected["environment_failed"]]["detail"]
    assert made.git("status", "--porcelain").splitlines() == ["?? trialfleet/"]
    assert ".mining" not in made.git("status", "--porcelain", "-uall")

    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    assert yaml.safe_load(file.read_text())["repo"]["url"] == "../.."
    assert (task.spec.status, task.spec.fail_to_pass) == (Status.VALIDATED, ("tests/test_kept.py::test_total",))
    assert task.spec.pass_to_pass == ("tests/test_kept.py::test_empty",)
    assert str(task.spec.committed) == made.git("show", "-s", "--format=%cs", expected["kept"])
    assert {row["language"] for row in found["findings"]} == {"Python"}
    assert "sum(prices)" not in file.read_text(), "facts alone"
    assert not_validated(file) == []

    before = file.read_text()
    shown = run(made.folder, *options)
    wanted = re.search(r"\n1 of the \d+ tasks wanted in \S", shown.output)
    assert wanted, "it goes on where it was, and nothing is left to do"
    assert re.search(r"^kept +1$", shown.output, re.MULTILINE)
    assert file.read_text() == before
    again = CliRunner().invoke(validate, [str(file), "--fresh"], catch_exceptions=False)
    assert again.exit_code == 0, again.output


def test_a_prompt_that_tells_the_fix_is_refused(tmp_path: Path, run: Callable[..., Result]) -> None:
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT.format(""))
    line = "    return sum(price for price in prices if price)"
    made.commit("Start", shop____init__="", shop__cart=BUG)
    fixed = {"shop__cart": f"def total(prices):\n{line}\n", "tests__test_cart": TEST.format("cart")}
    told = made.commit(f"Fix the total\n\nCloses #7\n\nNow it is:\n{line}", **fixed)
    ended = run(made.folder, "--prompt", "commit_message", "--json")
    (found,) = json.loads(ended.stdout)["findings"]
    assert (found["commit"], found["outcome"]) == (told, "tells_the_fix")
    issues = tmp_path / "issues.json"
    issues.write_text(json.dumps([{"number": 8, "title": "x", "body": None}]))
    ended = run(made.folder, "--prompt", "issue", "--issues", issues, "--json")
    assert [f["outcome"] for f in json.loads(ended.stdout)["findings"]] == ["no_issue"]
    issues.write_text(json.dumps([{"number": 7, "title": "Total is 0", "body": "whatever I buy"}]))
    ended = run(made.folder, "--prompt", "issue", "--issues", issues, "--json")
    assert [f["outcome"] for f in json.loads(ended.stdout)["findings"]] == ["kept"], ended.output
    (task,) = load_task_file(made.folder / "trialfleet/tasks/mined.yaml").tasks
    assert task.spec.issue == "Total is 0\n\nwhatever I buy"
    assert not_validated(made.folder / "trialfleet/tasks/mined.yaml") == []


def test_bad_input_names_the_way_out(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.commit("Start", a="x = 1\n")

    def said(*args: object) -> str:
        ended = run_command("tasks", "mine", *map(str, args), cwd=tmp_path)
        assert ended.returncode == 2, ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stderr

    assert "not a git repository" in said(tmp_path)
    assert "does not exist" in said(tmp_path / "gone")
    assert "name a branch, a tag or a commit" in said(made.folder, "--head", "gone")
    assert "--issues" in said(made.folder, "--prompt", "issue")
    assert "not one of" in said(made.folder, "--language", "Cobol")
    for content in (b"{}3", b"\xff\xfe\0", b"[" * 100_000):
        (tmp_path / "issues.json").write_bytes(content)
        assert "gh issue list" in said(made.folder, "--prompt", "issue", "--issues", tmp_path / "issues.json")


SIGNALS = {
    "ctrl_c": ([signal.SIGINT], ["kept", "too_slow"]),
    "terminated": ([signal.SIGTERM], ["kept", "too_slow"]),
    "at_once": ([signal.SIGINT, signal.SIGINT], ["kept"]),
}


@pytest.mark.parametrize(("signals", "outcomes"), SIGNALS.values(), ids=SIGNALS)
def test_it_can_be_interrupted(tmp_path: Path, signals: list[signal.Signals], outcomes: list[str]) -> None:
    """By the second commit's test, which waits. The third is left."""
    made, second = Made(tmp_path / "shop"), f"second{unique_seconds()}"
    made.write("pyproject.toml", PROJECT.format(""))
    made.commit("Start", shop____init__="", **{f"shop__{name}": BUG for name in ("third", second, "first")})
    made.commit("Third", shop__third=RIGHT, tests__test_third=TEST.format("third"))
    slow = "import time; print('waits', flush=True); time.sleep(300)\n" + TEST.format(second)
    made.commit("Second", **{f"shop__{second}": RIGHT, f"tests__test_{second}": slow})
    made.commit("First", shop__first=RIGHT, tests__test_first=TEST.format("first"))
    argv = [sys.executable, "-m", "trialfleet_runner.cli", "tasks", "mine", str(made.folder), "--timeout", "8"]
    findings = made.folder / "trialfleet/tasks/.mining/findings.jsonl"
    with subprocess.Popen([*argv, "--jobs", "1"], stderr=subprocess.PIPE, text=True) as mining:
        assert mining.stderr is not None
        wait_until(lambda: findings.exists() and processes_with(f"tests/test_{second}.py"), by=mining)
        for number, each in enumerate(signals):
            if number:
                assert any("Commits that are still examined: 1" in line for line in mining.stderr)
            mining.send_signal(each)
        said = mining.stderr.read()
    assert mining.returncode == 130
    assert "Traceback" not in said
    assert "resume" not in said, "that is for campaigns"
    (task,) = load_task_file(made.folder / "trialfleet/tasks/mined.yaml").tasks
    assert task.spec.fail_to_pass == ("tests/test_first.py::test_total",)
    assert [json.loads(line)["finding"]["outcome"] for line in findings.read_text().splitlines()] == outcomes


def test_wider_keeps_tests_of_the_changed_packages(tmp_path: Path, run: Callable[..., Result]) -> None:
    """A module that cannot be imported, a test that is not stable and one of another package are left out."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT.format(""))
    made.commit(
        "Start",
        shop____init__="",
        shop__cart__total=BUG,
        shop__tax__rate="rate = 1\n",
        tests__cart__test_other="def test_other():\n    pass\n\ndef test_odd():\n    assert hash('b') % 2 == 0\n",
        tests__cart__test_broken="import no_such_module\n\ndef test_b():\n    pass\n",
        tests__tax__test_rate="from shop.tax.rate import rate\n\ndef test_rate():\n    assert rate\n",
    )
    made.commit("Fix", shop__cart__total=RIGHT, tests__cart__test_total=TEST.format("cart.total"))
    for options, wide in (((), ()), (("--wider",), ("tests/cart/test_other.py::test_other",))):
        ended = run(made.folder, *options, "--json")
        assert [f["outcome"] for f in json.loads(ended.stdout)["findings"]] == ["kept"], ended.output
        file = made.folder / "trialfleet/tasks/mined.yaml"
        (task,) = load_task_file(file).tasks
        assert task.spec.pass_to_pass == ("tests/cart/test_total.py::test_empty", *wide)
        assert not_validated(file) == []
    again = CliRunner().invoke(validate, [str(file), "--fresh"], catch_exceptions=False)
    assert again.exit_code == 0, again.output
