"""The order of scoring as a table: which runs, and what they say together."""

from __future__ import annotations

from itertools import product

import pytest

from trialfleet_ledger.records.agent import SCORING_RUNS
from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.patch_classes import SplitChanges
from trialfleet_repository.trees import TreeEntry
from trialfleet_runner.attempt.scoring_order import (
    ScoringCause,
    ScoringStep,
    changes_in,
    find_cause,
    has_next,
    next_step,
    others_may_matter,
)

A, B, C, D = ScoringStep.PRODUCT, ScoringStep.ALL, ScoringStep.OTHERS, ScoringStep.UNCHANGED
LOOKUPS = PatchClasses(rule="lookups", production=("shop.py",), used=("helpers.py", "data/rates.json"))
NAMES = PatchClasses(rule="names", production=("shop.py",))
KNOWN = ("shop.py", "helpers.py", "data/rates.json", "tests/test_shop.py", "lib/a.js", "notes.md")


def entry(text: str) -> TreeEntry:
    return TreeEntry(text.encode())


def walk(results: str, *, others_matter: bool) -> dict[ScoringStep, bool]:
    """All runs, where the n-th passes if the n-th letter is "p"."""
    passed: dict[ScoringStep, bool] = {}
    while (step := next_step(passed, others_matter=others_matter)) is not None:
        passed[step] = results[len(passed)] == "p"
    return passed


@pytest.mark.parametrize(
    ("matter", "results", "runs", "cause"),
    [
        (False, "p", [A], ScoringCause(A, True)),
        (True, "p", [A], ScoringCause(A, True)),
        (False, "f", [A], ScoringCause(A, False)),
        (True, "ff", [A, B], ScoringCause(B, False)),
        (True, "fpf", [A, B, C], ScoringCause(B, True, needs_others=True)),
        (True, "fppf", [A, B, C, D], ScoringCause(B, True, needs_others=True, forged=True)),
        (True, "fppp", [A, B, C, D], ScoringCause(B, True, unsteady=True)),
    ],
)
def test_every_course_has_its_runs_and_one_cause(
    matter: bool, results: str, runs: list[ScoringStep], cause: ScoringCause
) -> None:
    passed = walk(results, others_matter=matter)
    assert list(passed) == runs
    assert find_cause(passed) == cause


def test_no_course_has_more_runs_than_an_attempt_has_time_for() -> None:
    for matter, results in product((True, False), product("pf", repeat=SCORING_RUNS)):
        assert len(walk("".join(results), others_matter=matter)) <= SCORING_RUNS


def test_a_container_waits_exactly_where_another_run_may_follow() -> None:
    for results in product("pf", repeat=SCORING_RUNS):
        passed: dict[ScoringStep, bool] = {}
        while (step := next_step(passed, others_matter=True)) is not None:
            assert has_next(step, passed, others_matter=True) == (step is not D)
            passed[step] = results[len(passed)] == "p"
    assert not has_next(A, {}, others_matter=False)


@pytest.mark.parametrize(
    ("classes", "product_text", "others", "matter"),
    [
        (None, "import rates", {"rates.py": ""}, False),
        (NAMES, "", {}, False),
        (NAMES, "", {"notes.md": ""}, True),
        (LOOKUPS, "", {"notes.md": ""}, False),
        (LOOKUPS, "", {"helpers.py": ""}, True),
        (LOOKUPS, "", {"helpers.py": None}, True),
        (LOOKUPS, "", {"scripts/try.py": ""}, False),
        (LOOKUPS, "from rates import table", {"rates.py": ""}, True),
        (LOOKUPS, "from rates import table", {"rates/table.py": ""}, True),
        (LOOKUPS, "from rates import table", {"rates/__init__.py": "", "rates/b.py": ""}, True),
        (LOOKUPS, "open('data/fees.json')", {"data/fees.json": ""}, True),
        (LOOKUPS, 'require("./lib")', {"lib/index.js": ""}, True),
        (LOOKUPS, 'require("./lib")', {"lib/other.js": ""}, False),
        (LOOKUPS, "rates = 3", {"notes.md": "rates"}, False),
        (LOOKUPS, "notes = 3", {"notes.md": "a known file"}, False),
        (LOOKUPS, "import separates", {"rates.py": ""}, False),
        (LOOKUPS, "import rates", {"rates.py": None}, False),
        (LOOKUPS, "import gr\udcff", {"gr\udcff.py": ""}, True),
    ],
)
def test_others_matter_where_the_tests_use_them_or_the_product_names_them(
    classes: PatchClasses | None, product_text: str, others: dict[str, str | None], matter: bool
) -> None:
    split = SplitChanges(
        {"shop.py": TreeEntry(product_text.encode(errors="surrogateescape")), "gone.py": None},
        {path: None if text is None else entry(text) for path, text in others.items()},
    )
    assert others_may_matter(split, classes, KNOWN) is matter


def test_each_run_has_its_own_changes() -> None:
    split = SplitChanges({"shop.py": entry("x"), "old.py": None}, {"helpers.py": entry("y")}, ("vendor/a",))
    assert changes_in(A, split) == split.product
    assert changes_in(B, split) == {**split.product, **split.others}
    assert changes_in(C, split) == split.others
    assert changes_in(D, split) == {}


@pytest.mark.parametrize(
    ("removed", "added"), [("src/shop.py", "src"), ("src/a/shop.py", "src"), ("src", "src/sitecustomize.py")]
)
def test_others_in_the_place_of_the_product_are_there_without_the_product(removed: str, added: str) -> None:
    """A zip file in the place of an import root must not fail alone only because the root is still there."""
    split = SplitChanges({removed: None, "other.py": None, "shop.py": entry("")}, {added: entry("zip")})
    assert changes_in(C, split) == {removed: None, added: entry("zip")}
