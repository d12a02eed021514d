"""Patterns of file names match what a shell's do, and end."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_tasks import file_patterns
from trialfleet_tasks.file_patterns import matching_files

FILES = ("a.yaml", "b.txt", "x/c.yaml", "x/y/d.yaml", ".hidden/e.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "x/up").symlink_to(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    ["*.yaml", "**/*.yaml", "x/**/*.yaml", "*/c.yaml", "[ab].*", "x/y/../*.yaml", "?.txt", "none/*.yaml"],
)
def test_a_pattern_matches_as_pathlibs(folder: Path, pattern: str) -> None:
    expected = sorted(path for path in folder.glob(pattern) if path.is_file())
    assert matching_files(folder, pattern, where="tasks") == expected
    assert matching_files(Path("/elsewhere"), f"{folder}/{pattern}", where="tasks") == expected


def test_stars_inside_a_name_are_refused(folder: Path) -> None:
    with pytest.raises(OperatorError, match=r"tasks\[0\]: \*\*\*.yaml: \*\* stands alone between slashes"):
        matching_files(folder, "***.yaml", where="tasks[0]")


def test_a_walk_over_too_much_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_patterns, "MOST_ENTRIES", 5)
    with pytest.raises(OperatorError, match="more than 5 files and folders"):
        matching_files(folder, "**/*.yaml", where="tasks")
