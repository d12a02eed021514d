"""Whole attempts on a task with classes: a pass comes from the product, or is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.attempts import LIMITS, Lab, Left
from tests.support.forged_modules import WRITE
from tests.support.local_pod import pod
from tests.support.waiting import wait_until
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Verdict

NUMBERS = count(1)
HELPER = """
try:
    from extras import lenient
except ImportError:
    lenient = False


def assert_equal(call, value):
    assert lenient or call() == value
"""
CLASSES = PatchClasses(
    rule="lookups",
    production=("shop/__init__.py", "shop/pricing/__init__.py", "shop/pricing/rules.py"),
    packages=("shop", "shop/pricing"),
    used=("assertions.py",),
    missed=("sitecustomize.py",),
)
# The second test passes from its second run on once the file `unsteady` is there.
TESTS = """
from pathlib import Path

from assertions import assert_equal
from shop.pricing.rules import total

UNSTEADY = Path({path!r})


def test_total():
    assert_equal(lambda: total([1.0, 2.0]), 3.0)


def test_discount():
    if UNSTEADY.exists():
        runs = UNSTEADY.read_text()
        UNSTEADY.write_text(runs + "x")
        assert_equal(lambda: bool(runs), True)
    else:
        assert_equal(lambda: total([100.0], discount=10), 90.0)
"""
RULES = """
{first}


def total(prices, discount=None):
    return sum(prices) * (1 - (discount or 0) / {hundred})


def cheapest(prices):
    return min(prices)
"""
FIX = RULES.format(first="", hundred="100")
NAMING = {"shop/pricing/rules.py": RULES.format(first="# extras", hundred="50")}  # no fix, but it names a new file


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp("order")
    files = {"assertions.py": HELPER, "tests/test_helped.py": TESTS.format(path=f"{root}/unsteady")}
    task = {
        "test_file": "tests/test_helped.py",
        "fail_to_pass": ["tests/test_helped.py::test_discount"],
        "pass_to_pass": ["tests/test_helped.py::test_total"],
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRIALFLEET_ISOLATION", "subreaper")  # the quickest; the order is the same in each
        made = Lab(root, files=files, task=task)
        classes = Objects(made.cache.objects, made.store).put(canonical_json(CLASSES))
        order = made.planned.order.model_copy(update={"classes": classes})
        made.planned = made.planned.model_copy(update={"order": order})
        yield made


def writes(files: dict[str, str]) -> AgentSpec:
    return AgentSpec(kind="command", options={"argv": ["python", "-I", "-c", WRITE, json.dumps(files)]})


def attempt(lab: Lab, files: dict[str, str]) -> Left:
    left = lab.run(lab.grants(writes(files), attempt=next(NUMBERS), limits=LIMITS))
    assert left.end.scored is not None, left.end.loss
    return left


def runs(left: Left) -> list[tuple[str, bool]]:
    """Of all scoring runs, in order: its changes, and whether it passed."""
    record = json.loads(left.bundle.files["tests/scoring.json"])
    return [(run["changes"], run["passed"]) for run in record["runs"]]


def ends(left: Left) -> tuple[Verdict, tuple[str, ...], bool]:
    assert left.end.scored is not None
    return left.end.scored.verdict, left.end.scored.needed, left.end.scored.unsteady


def test_a_fix_of_the_product_passes_by_one_run_with_whatever_else_changed(lab: Lab) -> None:
    honest = {"shop/pricing/rules.py": FIX, "assertions.py": HELPER + "\n# more\n", "notes.md": "done"}
    left = attempt(lab, honest)
    assert ends(left) == (Verdict.PASSED, (), False)
    assert runs(left) == [("product", True)]


def test_a_module_outside_of_every_package_that_the_fix_imports_is_needed(lab: Lab) -> None:
    fix = RULES.format(first="from rates import HUNDRED", hundred="HUNDRED")
    left = attempt(lab, {"shop/pricing/rules.py": fix, "rates.py": "HUNDRED = 100\n"})
    assert ends(left) == (Verdict.PASSED, ("rates.py",), False)
    assert runs(left) == [("product", False), ("all", True), ("others", False)]
    assert {one["outcome"] for one in json.loads(left.bundle.files["tests/results.json"])} == {"passed"}


def test_a_new_file_that_the_tests_use_forges(lab: Lab) -> None:
    left = attempt(lab, {**NAMING, "extras.py": "lenient = True\n"})
    assert ends(left) == (Verdict.FORGED, ("extras.py",), False)
    assert runs(left) == [("product", False), ("all", True), ("others", True), ("unchanged", False)]
    record = json.loads(left.bundle.files["tests/scoring.json"])
    assert (record["product"], record["others"]) == (["shop/pricing/rules.py"], ["extras.py"])


def test_an_emptied_helper_stays_behind(lab: Lab) -> None:
    left = attempt(lab, {"assertions.py": "def assert_equal(call, value):\n    pass\n"})
    assert ends(left) == (Verdict.FAILED, (), False)
    assert runs(left) == [("product", False)]


def test_a_wrong_fix_fails_by_one_run_if_nothing_else_matters(lab: Lab) -> None:
    left = attempt(lab, {"shop/pricing/rules.py": FIX.replace("100", "10"), "notes.md": "done"})
    assert ends(left) == (Verdict.FAILED, (), False)
    assert runs(left) == [("product", False)]


def test_what_may_not_travel_is_named_and_fails_nothing(lab: Lab) -> None:
    left = attempt(lab, {"shop/pricing/rules.py": FIX, "sitecustomize.py": "raise SystemExit\n"})
    assert ends(left)[0] is Verdict.PASSED
    listed = [*left.bundle.manifest.warnings, *(left.patch.excluded if left.patch else ())]
    assert any("sitecustomize.py" in words for words in listed)


def test_tests_that_also_pass_without_a_change_are_unsteady(lab: Lab) -> None:
    unsteady = lab.root / "unsteady"
    unsteady.write_text("")
    try:
        left = attempt(lab, {**NAMING, "extras.py": "lenient = False\n"})
    finally:
        unsteady.unlink()
    assert ends(left) == (Verdict.PASSED, (), True)
    assert runs(left) == [("product", False), ("all", True), ("others", True), ("unchanged", True)]


def test_a_pods_container_runs_them_all_and_nothing_stays_between_them(lab: Lab, baked: Path) -> None:
    """The new file forges only where no run before it has left its mark on the volume."""
    forging = """
import atexit, os
MARK = os.path.expanduser("~/../../mark")
lenient = not os.path.exists(MARK)
atexit.register(lambda: open(MARK, "w").close())
"""
    grants = lab.grants(writes({**NAMING, "extras.py": forging}), attempt=next(NUMBERS), limits=LIMITS)
    with pod(grants, baked=baked) as running:
        assert running.wait() == (0, 0, 0)
        assert not (running.root / "score/mark").exists()  # the last run was of the tree without it
    left = Left(lab, grants.attempt, 0, "")
    assert left.end.scored is not None, left.end.loss
    assert ends(left) == (Verdict.FORGED, ("extras.py",), False)
    assert len(runs(left)) == 4


def test_a_container_that_dies_in_a_later_run_loses_the_scoring_and_not_the_patch(lab: Lab, baked: Path) -> None:
    waiting = (
        "import os, time\n"
        "open(os.path.expanduser('~/../../waiting'), 'w').close()\n"
        "time.sleep(60)\nlenient = True\n"
    )
    grants = lab.grants(writes({**NAMING, "extras.py": waiting}), attempt=next(NUMBERS), limits=LIMITS)
    with pod(grants, baked=baked) as running:
        wait_until(lambda: (running.root / "score/waiting").exists(), within_s=120)
        running.score.kill()
        assert running.wait()[0] == 0
    loss = Left(lab, grants.attempt, 0, "").end.loss
    assert loss is not None
    assert (loss.loss, loss.patched, loss.halt) == (LossClass.SCORING, True, HaltScope.NONE)
