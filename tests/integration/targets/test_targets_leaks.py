"""What a fix says, changes and tests has no influence on what is predicted for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repositories import Made, shop
from trialfleet_targets.evaluation.cases import cases
from trialfleet_targets.evaluation.run import evaluate
from trialfleet_targets.index import index_at
from trialfleet_targets.predict import predict
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot_reader import snapshot_at
from trialfleet_targets.text.postings import Postings

MESSAGE = "Zebras of the checkout are counted twice\n\nSee the gnus."
FIX = "def total(prices):\n    return sum(set(prices))  # giraffe\n"
TEST = "def test_total_counts_okapis_once():\n    assert True\n"
BOTH = ("default", "clarte")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return shop(tmp_path / "made")


def fixed(made: Made) -> str:
    return made.commit(MESSAGE, shop__prices=FIX, tests__test_prices=TEST)


def test_the_fix_changes_no_byte_at_its_parent(made: Made) -> None:
    parent = made.git("rev-parse", "HEAD")
    before = index_at(made.folder, parent, methods=BOTH)
    said = {method: predict(before, MESSAGE, method=method) for method in BOTH}
    fixed(made)
    after = index_at(made.folder, parent, methods=BOTH)
    assert after.packed() == before.packed()
    assert {method: predict(after, MESSAGE, method=method) for method in BOTH} == said


def test_an_index_grown_from_a_later_one_knows_nothing_of_it(made: Made, tmp_path: Path) -> None:
    """The cache holds the fix already when its parent is asked for."""
    parent = made.git("rev-parse", "HEAD")
    alone = index_at(made.folder, parent, methods=BOTH).packed()
    fixed(made)
    index_at(made.folder, cache=tmp_path / "cache", methods=BOTH)
    assert index_at(made.folder, parent, cache=tmp_path / "cache", methods=BOTH).packed() == alone


def test_words_of_the_fix_are_in_no_document_of_its_parent(made: Made) -> None:
    parent = made.git("rev-parse", "HEAD")
    fixed(made)
    own, then = (index_at(made.folder, at).section("default") for at in ("HEAD", parent))
    for prefix, word in (("past.messages", "zebra"), ("past.messages", "gnus"), ("files", "giraff")):
        assert Postings.restored(own, prefix).term(word) is not None
        assert Postings.restored(then, prefix).term(word) is None
    assert not any("zebra" in one.subject.lower() for one in snapshot_at(made.folder, parent).history)


def test_cases_are_asked_at_their_parents(made: Made) -> None:
    parent = made.git("rev-parse", "HEAD")
    fix = fixed(made)
    found = cases(Repository.open(made.folder), "shop", 10)
    assert (found[0].commit, found[0].parent, found[0].truth) == (fix, parent, ("shop/prices.py",))
    assert [one.truth for one in found] == [("shop/prices.py",), ("shop/prices.py",), ("shop/session.py",)]


def test_evaluation_reads_nothing_later(made: Made, tmp_path: Path) -> None:
    """The words of the fix are known only after it: before, its message matches by "counted"-less words alone."""
    fixed(made)
    first = list(evaluate(Repository.open(made.folder), "shop", most=10, cache=tmp_path / "cache"))
    for number in range(3):
        made.commit(f"Zebras and gnus of the checkout, {number}", shop__cookies=f"zebra = {number}\n")
    again = [
        answer
        for answer in evaluate(Repository.open(made.folder), "shop", most=20, cache=tmp_path / "cache")
        if answer.case.commit in {one.case.commit for one in first}
    ]
    assert len(first) == 3
    assert [one.outcomes for one in again] == [one.outcomes for one in first]
    assert [one.candidates.values.tolist() for one in again] == [one.candidates.values.tolist() for one in first]
