"""Environments share equal files, each notices a change of them, and none depends on another one that goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.removal import remove
from trialfleet_repository.environments.shared_files import LEAST_BYTES, POOL, remove_unshared, share_files
from trialfleet_repository.environments.uses import measure_bytes

BIG = b"x" * 100_000


def make(place: Path, files: dict[str, bytes], *, time_s: int = 1, mode: int = 0o644) -> Path:
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        os.utime(path, (time_s, time_s))
    return place


def share(place: Path) -> dict[int, str]:
    return share_files(place, place.parent / POOL)


def contents(place: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(place)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


FILES = st.dictionaries(
    st.sampled_from(["a", "b", "lib/a", "lib/b"]),
    st.sampled_from([b"", b"small", BIG, BIG + b"!", b"y" * LEAST_BYTES]),
    max_size=4,
)


@given(st.lists(FILES, min_size=1, max_size=4))
def test_each_keeps_its_content_and_equal_large_files_are_one(
    tmp_path_factory: pytest.TempPathFactory, environments: list[dict[str, bytes]]
) -> None:
    root = tmp_path_factory.mktemp("environments")
    places = [make(root / str(number), files) for number, files in enumerate(environments) if files]
    before = {place: contents(place) for place in places}
    digests = {inode: digest for place in places for inode, digest in share(place).items()}
    inodes: dict[bytes, set[int]] = {}
    for place in places:
        assert contents(place) == before[place]
        for path in (path for path in place.rglob("*") if path.is_file()):
            inodes.setdefault(path.read_bytes(), set()).add(path.stat().st_ino)
            assert (path.stat().st_ino in digests) is (path.stat().st_size >= LEAST_BYTES)
    assert all(len(found) == 1 for content, found in inodes.items() if len(content) >= LEAST_BYTES)


@pytest.mark.parametrize("other", [{"time_s": 2}, {"mode": 0o755}])
def test_files_of_another_time_or_mode_are_not_shared(tmp_path: Path, other: dict[str, int]) -> None:
    one, two = make(tmp_path / "one", {"a": BIG}), make(tmp_path / "two", {"a": BIG}, **other)
    share(one)
    share(two)
    assert (one / "a").stat().st_ino != (two / "a").stat().st_ino


def test_what_was_changed_in_the_pool_reaches_no_other_environment(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one", {"a": BIG}), make(tmp_path / "two", {"a": BIG})
    share(one)
    (one / "a").write_bytes(b"z" * len(BIG))
    os.utime(one / "a", (1, 1))
    share(two)
    assert (two / "a").read_bytes() == BIG
    three = make(tmp_path / "three", {"a": BIG})
    assert share(three).keys() == {(three / "a").stat().st_ino}
    assert (three / "a").read_bytes() == BIG


def test_the_pool_keeps_what_an_environment_has(tmp_path: Path) -> None:
    one = make(tmp_path / "one", {"a": BIG, "b": BIG + b"!"})
    two = make(tmp_path / "two", {"a": BIG})
    for place in (one, two):
        share(place)
    remove(one)
    remove_unshared(tmp_path / POOL)
    assert [path.read_bytes() for path in (tmp_path / POOL).iterdir()] == [BIG]
    assert (two / "a").read_bytes() == BIG
    remove(two)
    remove_unshared(tmp_path / POOL)
    assert list((tmp_path / POOL).iterdir()) == []
    remove_unshared(tmp_path / "absent")


def test_a_link_is_no_file_and_a_file_system_without_links_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make(tmp_path / "one", {"a": BIG})
    (one / "link").symlink_to(one / "a")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert share(one).keys() == {(one / "a").stat().st_ino}
    assert (one / "a").read_bytes() == BIG
    assert (one / "link").is_symlink()
    assert sorted(path.name for path in one.iterdir()) == ["a", "link"]


def test_two_names_in_one_environment_stay_one_file(tmp_path: Path) -> None:
    for number in range(2):
        place = make(tmp_path / str(number), {"a": BIG, "z": BIG + b"!"})
        (place / "b").hardlink_to(place / "a")
        share(place)
        assert sorted(path.name for path in place.iterdir()) == ["a", "b", "z"]
        assert (place / "a").samefile(place / "b")
    assert (tmp_path / "0/a").samefile(tmp_path / "1/b")
    assert (tmp_path / "0/z").samefile(tmp_path / "1/z")


def test_a_file_of_holes_is_not_read(tmp_path: Path) -> None:
    place = make(tmp_path / "one", {"a": BIG})
    with (place / "hole").open("wb") as file:
        file.truncate(2**40)
    assert len(share(place)) == 1


def test_what_environments_share_counts_once_in_all(tmp_path: Path) -> None:
    places = [make(tmp_path / str(number), {"a": BIG, "twice": BIG}) for number in range(4)]
    for place in places:
        share(place)
    size = (places[0] / "a").stat().st_blocks * 512
    assert size <= sum(measure_bytes(place).part for place in places) <= size + 4 * 4096
