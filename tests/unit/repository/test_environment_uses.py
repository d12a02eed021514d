"""Environments beyond a limit go, the longest unused one first, and none that a living process uses."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trialfleet_repository.cache import Cache, lock_of
from trialfleet_repository.environments.shared_files import POOL
from trialfleet_repository.environments.uses import SEAL, EnvironmentRoom, measure_bytes, uses_of

BYTES = 2**20
NAMES = [f"{number}" * 32 + "-00000000" for number in range(4)]
ANOTHER = """
import sys
from pathlib import Path
from trialfleet_repository.environments.shared_files import POOL
from trialfleet_repository.environments.uses import uses_of
uses_of(Path(sys.argv[1])).begin(sys.argv[2])
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def make(cache: Cache, name: str, age_s: float = 0.0) -> Path:
    """As `build` leaves one whose last use is so long ago."""
    folder = cache.environments / name
    (folder / "lib").mkdir(parents=True)
    (folder / "lib/big").write_bytes(os.urandom(BYTES))
    os.link(folder / "lib/big", folder / "lib/same")
    (folder / SEAL).write_text("")
    lock_of(folder).touch()
    os.utime(lock_of(folder), (time.time() - age_s, time.time() - age_s))
    return folder


def left(cache: Cache) -> list[str]:
    return sorted(path.name for path in cache.environments.iterdir() if path.is_dir())


@contextmanager
def another_process(cache: Cache, name: str) -> Generator[None]:
    argv = [sys.executable, "-c", ANOTHER, str(cache.environments), name[:32]]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield


def test_the_longest_unused_goes_first(cache: Cache) -> None:
    make(cache, NAMES[0], age_s=10)
    room = EnvironmentRoom(cache, int(1.5 * BYTES))
    for number, age in ((1, 5), (2, 30), (3, 1)):
        make(cache, NAMES[number], age)
    room.keep()
    assert left(cache) == [NAMES[1], NAMES[3]], "the old one makes room as well"
    assert len(room.removed) == 2
    room.keep()
    assert len(room.removed) == 2, "what is left is within the limit"


def test_nothing_that_is_used_goes(cache: Cache) -> None:
    room = EnvironmentRoom(cache, 0)
    for name in NAMES[:3]:
        make(cache, name)
    with room.examination():
        uses_of(cache.environments).begin(NAMES[0][:32])
        with another_process(cache, NAMES[1]):
            room.keep()
            assert left(cache) == NAMES[:2]
    assert left(cache) == [], "the other process has ended, and the examination as well"


def test_within_the_limit_nothing_goes(cache: Cache) -> None:
    room = EnvironmentRoom(cache, 3 * BYTES)
    make(cache, NAMES[0])
    room.keep(more=BYTES)
    assert left(cache) == [NAMES[0]]
    room.reserve("a lock", 3 * BYTES)
    assert left(cache) == [], "for one of a known size, before it is installed"
    make(cache, NAMES[0])
    room.reserve("a lock", 3 * BYTES)
    assert left(cache) == [NAMES[0]], "it is there"
    (cache.environments / NAMES[1]).mkdir()  # being built: no seal
    (cache.environments / "of-somebody").mkdir()
    room.keep()
    room.limit_bytes = 0
    room.keep()
    assert left(cache) == [NAMES[1], "of-somebody"]


def test_what_old_environments_share_is_not_free_before_the_last_is_gone(cache: Cache) -> None:
    for name in NAMES[:3]:
        make(cache, name, age_s=50)
        if name != NAMES[0]:
            for file in ("big", "same"):
                (cache.environments / name / "lib" / file).unlink()
                os.link(cache.environments / NAMES[0] / "lib/big", cache.environments / name / "lib" / file)
    pool = cache.environments / POOL
    pool.mkdir()
    os.link(cache.environments / NAMES[0] / "lib/big", pool / "big")
    room = EnvironmentRoom(cache, BYTES // 2)
    make(cache, NAMES[3])
    with room.examination():
        uses_of(cache.environments).begin(NAMES[3][:32])
    assert left(cache) == [POOL, NAMES[3]], "the last of the old ones frees its file"
    assert list(pool.iterdir()) == []
    assert room.removed[0] < BYTES // 2 < room.removed[2]


def test_a_file_with_two_names_counts_once(cache: Cache) -> None:
    assert BYTES <= measure_bytes(make(cache, NAMES[0])).part < 1.1 * BYTES
