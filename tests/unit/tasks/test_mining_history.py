"""Which commits are candidates, read from real repositories."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path

import pytest

from tests.support.git_repositories import Made
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.languages import PYTHON
from trialfleet_tasks.mining.findings import MEANING, RejectionReason
from trialfleet_tasks.mining.history import (
    CandidateCommit,
    CandidateRules,
    FileChange,
    HistoryCommit,
    judge,
    open_repository,
    read_commits,
    spread,
    undone,
)
from trialfleet_tasks.mining.mine import candidates


def commit(*changes: tuple[str, int], sha: str = "a" * 40, message: str = "Fix it") -> HistoryCommit:
    return HistoryCommit(sha, "0" * 40, date(2025, 1, 1), message, tuple(FileChange(*c) for c in changes))


FIX = (("src/shop/cart.py", 3), ("tests/test_cart.py", 9))


@pytest.mark.parametrize(
    ("changes", "rules", "expected"),
    [
        ((("README.md", 3), ("tests/test_cart.py", 9)), CandidateRules(), RejectionReason.NO_SOURCE),
        ((("tests/conftest.py", 3), ("tests/test_cart.py", 9)), CandidateRules(), RejectionReason.NO_SOURCE),
        ((("shop/_vendor/six.py", 3), ("tests/test_cart.py", 9)), CandidateRules(), RejectionReason.NO_SOURCE),
        ((("shop/cart_pb2.py", 3), ("tests/test_cart.py", 9)), CandidateRules(), RejectionReason.NO_SOURCE),
        ((("shop/cart.py", 3), ("tests/data.json", 9)), CandidateRules(), RejectionReason.NO_TESTS),
        ((("shop/cart.py", 201), ("tests/test_cart.py", 9)), CandidateRules(), RejectionReason.TOO_LARGE),
        (
            (*((f"shop/{n}.py", 1) for n in range(6)), ("tests/test_cart.py", 9)),
            CandidateRules(),
            RejectionReason.TOO_LARGE,
        ),
        ((("shop/a\x1b[31m.py", 1), ("tests/test_cart.py", 9)), CandidateRules(), RejectionReason.UNUSUAL_PATHS),
        ((("shop/\udcff.py", 1), ("tests/test_cart.py", 9)), CandidateRules(), RejectionReason.UNUSUAL_PATHS),
        (((".agents/skills/release/notes.py", 3), FIX[1]), CandidateRules(), RejectionReason.NO_SOURCE),
        ((FIX[0], (".agents/skills/release/test_notes.py", 9)), CandidateRules(), RejectionReason.NO_TESTS),
        (FIX, CandidateRules(paths=("src/other",)), RejectionReason.OTHER_PATHS),
        (FIX, CandidateRules(grep="feature"), RejectionReason.OTHER_MESSAGE),
    ],
)
def test_a_commit_that_is_no_candidate(
    changes: tuple[tuple[str, int], ...], rules: CandidateRules, expected: RejectionReason
) -> None:
    assert judge(commit(*changes), [PYTHON], rules) is expected


def test_a_candidate_knows_what_its_tests_use() -> None:
    changes = (*FIX, ("tests/data/cart.json", 10**6), ("tests/conftest.py", 2), ("src/shop/total.py", 50))
    changes = (*changes, (".claude/skills/a/tests/data.json", 5), (".claude/skills/a/test_a.py", 5))
    found = judge(commit(*changes), [PYTHON], CandidateRules(paths=("src/shop",), grep="FIX"))
    assert isinstance(found, CandidateCommit)
    assert found.source == ("src/shop/total.py", "src/shop/cart.py"), "the one that changed most comes first"
    assert found.tests == ("tests/test_cart.py",)
    assert found.support == ("tests/data/cart.json", "tests/conftest.py")
    beside = judge(commit(*FIX, ("examples/show.py", 80), ("noxfile.py", 30)), [PYTHON], CandidateRules())
    assert isinstance(beside, CandidateCommit)
    assert beside.source == ("src/shop/cart.py", "examples/show.py", "noxfile.py"), "the product comes first"


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANING) == set(RejectionReason)


def test_areas_take_turns() -> None:
    def one(number: int, path: str) -> CandidateCommit:
        return CandidateCommit(commit(sha=f"{number:040}"), PYTHON, (path,), ("tests/test_a.py",), ())

    given = [
        one(1, "shop/cart/a.py"),
        one(2, "shop/cart/b.py"),
        one(3, "shop/cart/c.py"),
        one(4, "shop/mail/d.py"),
    ]
    assert [int(c.commit.sha) for c in spread(given)] == [1, 4, 2, 3]


BAD = "b" * 40
OPPOSITE = (("src/shop/cart.py", 0, 3), ("tests/test_cart.py", 0, 9))
REVERTS = f"This reverts commit {BAD}."


@pytest.mark.parametrize(
    ("message", "changes", "gone"),
    [
        (f'Revert "x"\n\n{REVERTS}', OPPOSITE, "bc"),
        (f'Revert "x"\n\n{REVERTS}', (("src/shop/cart.py", 1, 4), ("tests/test_cart.py", 0, 9)), "bc"),  # by hand
        (f'Revert "x"\n\n{REVERTS}', (("src/shop/mail.py", 1, 4),), "c"),
        (f'Reapply "x"\n\n{REVERTS[:40]}', OPPOSITE, "bc"),
        (f"Take the total back (#9)\n\n* {REVERTS}", OPPOSITE, ""),  # git writes it at the start of a line
        (f"Take the total back (#9)\n\n{REVERTS}", OPPOSITE, "bc"),
        (f"Add mail (#9)\n\n{REVERTS}\n\n* Once more", (*OPPOSITE, ("src/shop/mail.py", 9, 0)), "b"),
        (f"Add mail (#9)\n\n{REVERTS}\n\n* Once more", (("src/shop/cart.py", 3, 0),), ""),
        (f"Add mail (#9)\n\n{REVERTS}\n\n* Once more", (), ""),
        ('Revert "x"', OPPOSITE, ""),
    ],
)
def test_what_takes_a_commit_back(message: str, changes: tuple[tuple[str, int, int], ...], gone: str) -> None:
    later = HistoryCommit("c" * 40, BAD, date(2025, 1, 1), message, tuple(FileChange(*c) for c in changes))
    assert undone([later, commit(*FIX, sha=BAD), commit()]) == {letter * 40 for letter in gone}


def test_a_real_history(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    made.commit("Start", shop__cart="a = 1\n", tests__test_cart="def test_a(): pass\n")
    made.write("data.bin", bytes(range(256)))
    made.write('odd "name"\n.py', "x = 1\n")
    odd = made.commit("Odd names and\n\nseveral lines\x01\x02\x03 of text", shop__cart="a = 2\n")
    made.git("checkout", "-qb", "side")
    fix = made.commit("Fix", shop__cart="a = 3\n", tests__test_cart="def test_b(): pass\n")
    made.git("checkout", "-q", "main")
    made.git("cherry-pick", "-x", "--strategy-option=theirs", fix)
    picked = made.git("rev-parse", "HEAD")
    made.git("merge", "-q", "--no-edit", "side")

    git_dir = open_repository(made.folder).git_dir
    assert git_dir == open_repository(git_dir).git_dir
    commits = read_commits(git_dir)
    by_sha = {each.sha: each for each in commits}
    assert by_sha.keys() == {odd, fix, picked}, "neither the merge nor the first commit"
    assert {c.path for c in by_sha[fix].changes} == {"shop/cart.py", "tests/test_cart.py"}
    found = candidates(commits, [PYTHON], CandidateRules(), git_dir)
    assert [c.commit.sha for c in found.chosen] in ([fix], [picked])
    assert {f.outcome for f in found.rejected} == {RejectionReason.DUPLICATE, RejectionReason.NO_TESTS}
    assert "several lines" in by_sha[odd].message


def test_histories_that_cannot_be_mined(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="not a git repository"):
        open_repository(tmp_path)
    made = Made(tmp_path / "repo")
    with pytest.raises(OperatorError, match="there is no commit 'HEAD'"):
        read_commits(open_repository(made.folder).git_dir)
    made.commit("One")
    made.commit("Two")
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", f"file://{made.folder}", tmp_path / "shallow"],
        check=True,
        capture_output=True,
    )
    with pytest.raises(OperatorError, match="shallow") as refused:
        open_repository(tmp_path / "shallow")
    assert "--unshallow" in str(refused.value)
    with pytest.raises(OperatorError, match="there is no commit '--output"):
        read_commits(open_repository(made.folder).git_dir, head="--output=/tmp/x")


@pytest.mark.parametrize("filtered", ["blob:none", "tree:0"])
def test_a_clone_without_some_files_gives_the_commits_that_are_whole(tmp_path: Path, filtered: str) -> None:
    made = Made(tmp_path / "shop")
    for number in range(6):
        made.commit(f"Fix {number}", shop__a=f"x = {number}\n", tests__test_a=f"y = {number}\n")
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("config", "uploadpack.allowAnySHA1InWant", "true")
    there = tmp_path / "clone"
    made.git("clone", "-q", "--bare", f"--filter={filtered}", f"file://{made.folder}", str(there))
    whole = read_commits(made.folder / ".git")
    lacking = read_commits(open_repository(there).git_dir)
    assert [commit.sha for commit in lacking] == [commit.sha for commit in whole]
    assert not any(commit.whole for commit in lacking)
    assert [commit.message for commit in lacking] == [commit.message for commit in whole]
    assert judge(lacking[0], [PYTHON], CandidateRules()) is RejectionReason.UNREADABLE

    for revision in ("HEAD", "HEAD~1"):  # git fetches what they show
        made.git("-C", str(there), "show", "--numstat", revision)
    some = read_commits(open_repository(there).git_dir)
    assert [commit.whole for commit in some] == [True, True, False, False, False]
    assert some[:2] == whole[:2]
    assert isinstance(judge(some[0], [PYTHON], CandidateRules()), CandidateCommit)
    made.git("-C", str(there), "fetch", "-q", "--refetch", "--no-filter")
    assert read_commits(open_repository(there).git_dir) == whole, "what the message names helps"
