"""Which file a test is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.targets.clarte_fixture import source
from trialfleet_targets.clarte.proxies import covered, subject
from trialfleet_targets.syntax_facts import ParsedLanguage


@pytest.mark.parametrize(
    ("stem", "rest"),
    [
        ("test_views", "views"),
        ("tests_views", "views"),
        ("views_test", "views"),
        ("views.test", "views"),
        ("views.spec", "views"),
        ("views-spec", "views"),
        ("ViewsTest", "Views"),
        ("ViewsTests", "Views"),
        ("ViewsIT", "Views"),
        ("TestViews", "Views"),
        ("contest", "contest"),
        ("Testing", "Testing"),
        ("GRIT", "GRIT"),
        ("conftest", "conftest"),
    ],
)
def test_the_subject_of_a_test(stem: str, rest: str) -> None:
    assert subject(stem) == rest


def names(*files: tuple[str, bool]) -> list[tuple[str, str]]:
    made = {path: source(path, test=test) for path, test in files}
    ordered = sorted(made)
    return [(ordered[one], ordered[other]) for one, other in zip(*covered(made), strict=True)]


def test_by_name_whatever_the_folder() -> None:
    assert names(("tests/test_views.py", True), ("src/views.py", False), ("src/models.py", False)) == [
        ("tests/test_views.py", "src/views.py")
    ]
    assert names(("a/test_io.py", True), ("b/_io.py", False)) == [("a/test_io.py", "b/_io.py")]


def test_of_several_the_nearest() -> None:
    files = [("src/auth/views.py", False), ("src/shop/views.py", False), ("tests/shop/test_views.py", True)]
    assert names(*files) == [("tests/shop/test_views.py", "src/shop/views.py")]
    assert len(names(*files[:2], ("tests/test_views.py", True))) == 2


def test_a_name_of_many_says_nothing() -> None:
    assert names(("tests/test_main.py", True), *((f"p{at}/main.py", False) for at in range(4))) == []


def test_not_of_another_language_and_never_a_test() -> None:
    test, other = source("test_views.py", test=True), source("views.ts")
    other = replace(other, facts=replace(other.facts, language=ParsedLanguage.TYPESCRIPT))
    assert covered({one.path: one for one in (test, other)})[0].tolist() == []
    assert names(("tests/test_views.py", True), ("tests/views.py", True)) == []
    script = replace(
        source("views.test.js", test=True), facts=replace(test.facts, language=ParsedLanguage.JAVASCRIPT)
    )
    assert covered({one.path: one for one in (script, other)})[1].tolist() == [1]
