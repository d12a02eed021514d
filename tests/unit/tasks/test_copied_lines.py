"""Lines of a fix in site-packages, node_modules or a vendored folder: a caution from three consecutive ones on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.validate import copied_lines
from trialfleet_tasks.validate.copied_lines import find_added_lines, find_copied_lines

OLD = "import os\n\ndef total(prices):\n    return sum(prices)\n"
NEW = """import os
import decimal

def total(prices, discount=None):
    whole = decimal.Decimal(sum(prices))

    if discount is None:
        return whole
    # percent
    return whole * (1 - decimal.Decimal(discount) / 100)
"""
COPY = NEW.replace("    ", "\t").partition("import decimal\n")[2]  # of another indentation
PLACES = [
    "lib/python3.11/site-packages/shop/rules.py",
    "kept/node_modules/shop/rules.py",
    "pkg/mod/x@v1/rules.py",
]
BEFORE = {"shop/rules.py": TreeEntry(OLD.encode())}
ADDED = find_added_lines(BEFORE, {"shop/rules.py": TreeEntry(NEW.encode())})


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize("place", PLACES)
def test_three_lines_of_the_fix_elsewhere_are_a_caution(tmp_path: Path, place: str) -> None:
    write(tmp_path, place, f"x = 1\n{COPY}y = 2\n")
    caution = find_copied_lines(ADDED, tmp_path, {}).words
    assert caution is not None
    assert place in caution


def test_a_vendored_folder_of_the_workspace_counts_and_its_other_folders_do_not() -> None:
    for path, counts in (("vendor/shop/rules.py", True), ("other/rules.py", False)):
        caution = find_copied_lines(ADDED, Path("/nowhere"), {path: TreeEntry(COPY.encode())}).words
        assert (caution is not None) is counts


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(COPY.splitlines()[:4]),  # two lines that tell something
        OLD,
        "import os\nimport decimal\n\n# percent\n",
        "\n".join(reversed(COPY.splitlines())),
    ],
)
def test_control_fewer_lines_and_trivial_ones_are_none(tmp_path: Path, text: str) -> None:
    write(tmp_path, PLACES[0], text)
    assert find_copied_lines(ADDED, tmp_path, {}).words is None


def test_other_files_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, "rules.txt", COPY)
    write(tmp_path, "large.py", COPY + " " * copied_lines.MAX_FILE_BYTES)
    write(tmp_path / "outside", "rules.py", COPY)
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment/link.py").symlink_to(tmp_path / "outside/rules.py")
    assert find_copied_lines(ADDED, tmp_path / "environment", {}).words is None
    (tmp_path / "outside/rules.py").unlink()
    assert find_copied_lines(ADDED, tmp_path, {}).words is None


def test_lines_that_the_fix_moves_are_not_new() -> None:
    body = "".join(f"    name_{n} = compute({n})\n" for n in range(6))
    before = {"a.py": TreeEntry(f"def first():\n{body}\ndef second():\n    return first\n".encode())}
    fix = {"a.py": TreeEntry(f"def second():\n    return first\n\ndef first():\n{body}".encode())}
    added = find_added_lines(before, fix)
    assert find_copied_lines(added, Path("/nowhere"), {"vendor/a.py": before["a.py"]}).words is None


@pytest.mark.parametrize("change", [("x < limit", "x <= limit"), ("    check(x, limit)\n", "")])
def test_a_fix_of_one_line_is_found_with_the_lines_around_it(change: tuple[str, str]) -> None:
    old = "def keep(x, limit):\n    check(x, limit)\n    low = x < limit\n    note(low)\n    return low or KEPT\n"
    new = old.replace(*change) + "keep(1, 2 + 3)\n"
    added = find_added_lines({"a.py": TreeEntry(old.encode())}, {"a.py": TreeEntry(new.encode())})
    for text, counts in ((f"x = 100 + 1\n{new}y = 2\n", True), (old, False), (change[1] * 3, False)):
        found = find_copied_lines(added, Path("/nowhere"), {"vendor/a.py": TreeEntry(text.encode())})
        assert (found.words is not None) is counts


def test_the_work_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(4):
        write(tmp_path, f"a/{n}.py", "x = 1\n")
    write(tmp_path, "b/rules.py", COPY)
    monkeypatch.setattr(copied_lines, "MAX_FILES", 3)
    assert "first 3 files" in (find_copied_lines(ADDED, tmp_path, {}).words or "")
    for lines in ([f"value_{n % 7} = compute({n})" for n in range(6000)], ["same line of code"] * 12_000):
        before, after = (
            {"a.py": TreeEntry("\n".join(one).encode())} for one in (lines, [*lines[::-1], "and more"])
        )
        started = time.process_time()
        find_added_lines(before, after)
        assert time.process_time() - started < 5
