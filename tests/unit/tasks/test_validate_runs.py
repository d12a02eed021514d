"""What a run of a task's tests leaves for the next one."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from trialfleet_tasks.validate.runs import move_below

PATH = PurePosixPath("core/target/classes")


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder of classes that tests have left."""
    (tmp_path / "left" / PATH).mkdir(parents=True)
    (tmp_path / "left" / PATH / "A.class").touch()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "left"


def test_it_comes_to_the_same_place(left: Path, tmp_path: Path) -> None:
    move_below(tmp_path / "workspace", PATH, source=left)
    assert (tmp_path / "workspace" / PATH / "A.class").exists()
    assert not (left / PATH).exists()


@pytest.mark.parametrize("link", ["core", "core/target", "core/target/classes"])
def test_it_is_not_moved_through_a_link_of_the_repository(link: str, left: Path, tmp_path: Path) -> None:
    """A test may put a folder in the place of a link, and the next copy of the tree has the link again."""
    place = tmp_path / "workspace" / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(tmp_path / "elsewhere")
    move_below(tmp_path / "workspace", PATH, source=left)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (left / PATH / "A.class").exists()


def test_what_is_there_stays(left: Path, tmp_path: Path) -> None:
    own = tmp_path / "workspace" / PATH / "B.class"
    own.parent.mkdir(parents=True)
    own.touch()
    move_below(tmp_path / "workspace", PATH, source=left)
    assert list(own.parent.iterdir()) == [own]
