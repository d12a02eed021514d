"""Which issue a commit closes, and how the issues of a repository are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repositories import Made
from trialfleet_ledger.errors import OperatorError
from trialfleet_tasks.mining.history import open_repository
from trialfleet_tasks.mining.issues import Issue, Issues, find_closed_issues, read_issues

NAME = "me/shop"


def closed(message: str) -> list[int]:
    return list(find_closed_issues(message, lambda name: name == NAME))


WORDS = ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved", "Closes-Bug"]
REFERENCES = [
    "#10",
    "GH-10",
    "gh-10",
    "me/shop#10",
    "https://github.com/me/shop/issues/10",
    "<https://example.org/me/shop/-/issues/10>",
    "https://github.com/me/shop/issues/10#issuecomment-77",
    "[#10](https://github.com/me/shop/issues/10)",
    "issue #10",
]
FORMS = [
    "Sum right (#12)\n\n{}",
    "Sum right, {} (#12)",
    "Sum right (#12)\n\n* Refs #9\n\n* {}\n\nCo-authored-by: A <a@example.org>",
    "Sum right\n\nAs pallets/click#7 did.\n{}.",
    "{}: sum right",
    "Sum right\n\nReviewed-by: B\n{}\n",
]


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("form", FORMS)
def test_a_closing_word_before_a_reference_closes_it(form: str, reference: str) -> None:
    for word in (*WORDS, "FIXES", "Fixes:", "fix:"):
        assert closed(form.format(f"{word} {reference}")) == [10], word


@pytest.mark.parametrize(
    "message",
    [
        "Fix total (#10)",
        "Fix (#10)",
        "fix: total is wrong, see #10",
        "Fix total, as pallets/click#10 did",
        "Fix total\n\nRefs #10. See https://github.com/me/shop/issues/10.",
        "Fix total\n\nFixes pallets/click#10",
        "Fix total\n\nFixes https://github.com/other/project/issues/10",
        "Fix total\n\nCloses https://github.com/me/shop/pull/10",
        "Fix total (#10)\n\nCloses #10",
        "Fix total (#10) (#11)\n\nFixes #11",
        "Use 3 decimals &#10; color #10 and step #10",
        "Fix colour: fixes #10abcd and #10.5",
        "Fix total\n\nThis does not fix #10, and partially fixes #10.",
        "Fix total\n\n> Fixes #10",
        "Fix total\n\n<!-- Fixes #10 -->\nwrite `fixes #10` in the body",
        "Fix total\n\n```\nfixes #10\n```",
        "prefix #10, bugfix #10, unresolved #10",
        "Fixes #0010",
        'Revert "Fix total (fixes #10)"\n\nThis reverts commit 0123456789.',
    ],
)
def test_what_is_only_mentioned_is_not_closed(message: str) -> None:
    assert closed(message) == []


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        ("Fixes #10, #11 and #12", [10, 11, 12]),
        ("Fixes #10 & closes GH-3; resolves: me/shop#10", [10, 3]),
        ("gh-10: Sum right (GH-12)", [10]),
        ("Fix #10: sum right (#12)\n\nFixes #11", [10, 11]),
        ("Sum right\n\nFixes #10\n\n#11 is another matter", [10]),
        ("Doesn't break. Fixes #10", [10]),
    ],
)
def test_several_in_their_order(message: str, numbers: list[int]) -> None:
    assert closed(message) == numbers


def test_the_first_that_is_known_is_taken() -> None:
    issues = Issues({11: Issue(11, "x")}, frozenset({NAME}))
    assert issues.find_closed("Fixes #10, #11") == Issue(11, "x")
    assert issues.find_closed("Fixes #10") is None


@given(st.text("fixes closd#GH-12/.:()[]<>`!\n", max_size=60))
def test_any_message_is_read(message: str) -> None:
    assert all(number > 0 for number in closed(message))


ROWS = [{"number": 10, "title": "Total", "body": "one\r\ntwo"}, {"number": "11", "title": "Slug", "body": None}]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ROWS),
        "\ufeff" + json.dumps(ROWS),
        "\n".join(map(json.dumps, ROWS)) + "\n",
        json.dumps([*ROWS, {"number": 12, "title": "A change", "body": "", "pull_request": {"url": "x"}}]),
    ],
    ids=["list", "byte-order mark", "one a line", "with pull requests"],
)
def test_forms_of_the_file(content: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "clone")
    file = tmp_path / "issues.json"
    file.write_text(content, encoding="utf-8")
    issues = read_issues(file, open_repository(made.folder))
    assert issues.by_number == {10: Issue(10, "Total\n\none\ntwo"), 11: Issue(11, "Slug")}


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '[{"number": 1}]', "{\n}", "[" * 10**5, '[{"number": null}]']
)
def test_what_is_no_list_of_issues_is_refused(content: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "clone")
    file = tmp_path / "issues.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(OperatorError, match="not a list of issues"):
        read_issues(file, open_repository(made.folder))


@pytest.mark.parametrize(
    ("remote", "url", "is_known"),
    [
        ("git@github.com:Me/Shop.git", None, True),
        ("https://token@github.com/me/shop", None, True),
        ("https://github.com/fork/shop", "https://github.com/me/shop/issues/10", True),
        ("https://github.com/fork/shop", None, False),
        ("/srv/mirrors/me/shop", None, True),  # a folder tells no name: the project's name decides
        (None, None, True),
    ],
)
def test_whose_address_counts(remote: str | None, url: str | None, is_known: bool, tmp_path: Path) -> None:
    made = Made(tmp_path / "clone")
    if remote is not None:
        made.git("remote", "add", "origin", remote)
    made.write("pyproject.toml", '[project]\nname = "shop"\n')
    made.commit("Start")
    file = tmp_path / "issues.json"
    file.write_text(json.dumps([{**ROWS[0], **({"url": url} if url else {})}]))
    issues = read_issues(file, open_repository(made.folder))
    assert (issues.find_closed("Fixes https://github.com/me/shop/issues/10") is not None) == is_known
    assert issues.find_closed("Fixes me/cart#10") is None
    assert issues.find_closed("Fixes #10") is not None
