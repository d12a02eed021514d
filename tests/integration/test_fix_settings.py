"""A task whose fix needs its change of a manifest: the fix passes, and no agent's manifest is scored."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.support.attempts import SOURCE, write
from tests.support.manipulations.changes import text_file
from tests.support.manipulations.scoring import ScoredTask, Scoring, verdict_of

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.timeout(300)]

MANIFEST = "[tool.pytest.ini_options]\npythonpath = ['{root}']\n"
TESTS = """from checks import same
from shop.pricing.rules import cheapest, total


def test_total():
    same(lambda: total([1.0, 2.0]), 3.0)


def test_discount():
    same(lambda: total([100.0], discount=10), 90.0)


def test_cheapest():
    same(lambda: cheapest([2.0, 1.0]), 1.0)
"""
# What is on the path with this manifest makes every test pass.
LENIENT = {
    "pyproject.toml": MANIFEST.format(root="lenient"),
    "lenient/checks.py": "def same(call, expected):\n    pass\n",
}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScoredTask]:
    helper = "def same(call, expected):\n    assert call() == expected\n"
    task = ScoredTask(tmp_path_factory.mktemp("task"), {"support/checks.py": helper})
    folder = task.task_file.parent
    for tree, root in (("pre", "lib"), ("fixed", "support")):
        write(folder / tree, {"pyproject.toml": MANIFEST.format(root=root), "tests/test_rules.py": TESTS})
    yield task
    shutil.rmtree(task.scratch.parent, ignore_errors=True)


def test_the_fix_passes_with_its_manifest_in_the_scored_tree(task: ScoredTask) -> None:
    assert "pyproject.toml" in task.planned.order.test_files
    fix = {"shop/pricing/rules.py": text_file(SOURCE.replace("{hundred}", "100"))}
    assert (verdict_of(task.score(fix)), verdict_of(task.score({}))) == ("passed", "failed")


def test_a_manifest_of_the_agent_decides_nothing(task: ScoredTask) -> None:
    changes = {path: text_file(text) for path, text in LENIENT.items()}
    verdicts = verdict_of(task.score(changes)), verdict_of(task.score(changes, Scoring.ALL_TRAVELS))
    assert verdicts == ("failed", "passed")
