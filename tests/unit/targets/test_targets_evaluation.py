"""Which commits are asked for, and how answers are counted: against counts made by hand."""

from __future__ import annotations

import pytest

from trialfleet_targets.evaluation.cases import clean, main_language, names_a_path, truth
from trialfleet_targets.evaluation.metrics import CaseScore, Difference, measures, outcome, paired
from trialfleet_targets.snapshot import PastCommit


def past(*changed: str, subject: str = "Keep the cookie of each session", **rest: object) -> PastCommit:
    return PastCommit("s", 1, subject, "", changed, **rest)  # type: ignore[arg-type]


def test_measures_by_hand() -> None:
    found = measures(
        [CaseScore("a", 1, 1.0), CaseScore("a", 4, 0.5), CaseScore("b", None, 0.0), CaseScore("b", 10, 0.0)]
    )
    assert found is not None
    assert (found.cases, found.hit_at_1, found.hit_at_5, found.recall_at_5) == (4, 0.25, 0.5, 0.375)
    assert found.mrr == pytest.approx((1 + 1 / 4 + 0 + 1 / 10) / 4)
    assert measures([]) is None


def test_outcomes_by_hand() -> None:
    assert outcome("r", ["a", "b", "c", "d", "e", "f"], {"b", "f"}) == CaseScore("r", 2, 0.5)
    assert outcome("r", ["a"], {"b"}) == CaseScore("r", None, 0.0)


def test_a_paired_interval_keeps_to_its_groups() -> None:
    """Within a group that never varies, drawing again changes nothing: the interval is a point."""
    assert paired([1, 1, 0, 0], [0, 0, 0, 0], ["a", "a", "b", "b"]) == Difference(0.5, 0.5, 0.5)


def test_a_paired_interval_is_near_the_normal_one() -> None:
    """400 differences, half of them 1: mean .5, standard error .025."""
    found = paired([1.0, 0.0] * 200, [0.0] * 400, ["a"] * 400)
    assert found.mean == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.005)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.005)
    assert found == paired([1.0, 0.0] * 200, [0.0] * 400, ["a"] * 400)


def test_pairs_must_fit() -> None:
    with pytest.raises(ValueError, match="each case"):
        paired([1.0], [1.0], [])


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        (past("a.py", "README.md", "tests/test_a.py"), ("a.py",)),
        (past("a.go"), None),
        (past("tests/test_a.py"), None),
        (past("a.py", "b.py", added=("b.py",)), None),
        (past("a.py", deleted=("a.py",)), None),
        (past(*(f"{name}.py" for name in "abcdef")), None),
        (past("a.py", merge=True), None),
        (past("a.py", subject="Fix the cookie"), None),
        (past("a.py", subject="Fix the cookie of app/session.py again"), None),
    ],
)
def test_which_commits(commit: PastCommit, expected: tuple[str, ...] | None) -> None:
    assert truth(commit, "python") == expected


def test_languages_by_most_files() -> None:
    assert main_language(["a.ts", "b.js", "c.py", "d.py", "e_test.go", "f.md"]) == "python"
    assert main_language(["a.ts", "b.js", "c.py"]) == "typescript"
    assert main_language(["README.md"]) is None


def test_messages() -> None:
    assert clean("Fix\n\nCloses: #3\nCo-authored-by: A <a@b.c>") == "Fix"
    assert clean("Fix GH#12, org/name#4 and https://x.y/z in 0123abc") == "Fix , and in"
    assert names_a_path("Fix a/b/c and d")
    assert not names_a_path("Fix the read/write lock of v1.2")
