"""How old tasks are, against the day on which a model's training data ends."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tests.support.git_repositories import Made
from trialfleet_ledger.task import GitSource, TaskSpec
from trialfleet_tasks.mining.yield_table import age, by_cutoff
from trialfleet_tasks.sources.commit_date import read_commit_date

CUTOFF = date(2025, 1, 31)


def task(day: date | None) -> TaskSpec:
    source = GitSource(url="/x", pre_fix_commit="0" * 40, fix_commit="1" * 40)
    return TaskSpec(id="t", source=source, prompt_source="commit_message", committed=day)


def test_ages_as_a_sentence() -> None:
    old, new = task(date(2024, 3, 1)), task(date(2025, 1, 31))
    assert age([], CUTOFF) is None
    assert age([task(None)], CUTOFF) is None, "nothing is known"
    assert age([old, new], None) == "their fixes were committed from 2024-03-01 to 2025-01-31"
    assert str(age([new, old], CUTOFF)).endswith(": 1 before 2025-01-31, 1 since")
    assert "all before 2025-01-31" in str(age([old, task(None)], CUTOFF))
    assert by_cutoff([old, new, task(None)], CUTOFF) == {"before": 1, "since": 1}
    assert by_cutoff([old], None) is None


def test_the_day_of_a_commit_is_git_s_own(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    sha = made.commit("Start\n\ncommitter a <b> 0 +0000", a="x = 1\n")
    git_dir = made.folder / ".git"
    assert str(read_commit_date(git_dir, sha)) == made.git("show", "-s", "--format=%cs", sha)
    raw = made.git("cat-file", "commit", sha)
    odd = made.folder / "odd"
    odd.write_text(raw.replace("committer a <a@b> 17", "committer a <a@b> 99999999999999") + "\n")
    strange = made.git("hash-object", "-t", "commit", "-w", "--literally", "odd")
    assert read_commit_date(git_dir, strange) is None
