"""The cache of facts: values come back, and a broken cache is never worse than none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_targets.disk_cache import DiskCache, key_of
from trialfleet_targets.encoding import decoded, encoded
from trialfleet_targets.repository import printable
from trialfleet_targets.syntax_facts import (
    CallSite,
    Definition,
    DefinitionKind,
    FileFacts,
    Import,
    Inheritance,
    ParsedLanguage,
)

QUICK = settings(max_examples=30)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
FACTS = st.builds(
    FileFacts,
    language=st.sampled_from(list(ParsedLanguage)),
    definitions=st.lists(
        st.builds(Definition, TEXT, st.sampled_from(list(DefinitionKind)), st.integers(), st.integers(), TEXT,
                  st.booleans()), max_size=3,
    ).map(tuple),
    imports=st.lists(
        st.builds(Import, TEXT, st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple), st.integers(),
                  st.booleans(), st.booleans(), st.booleans()), max_size=3,
    ).map(tuple),
    calls=st.lists(st.builds(CallSite, TEXT, TEXT), max_size=3).map(tuple),
    inheritance=st.lists(st.builds(Inheritance, TEXT, TEXT), max_size=3).map(tuple),
    package=TEXT,
    lines=st.integers(),
    problem=TEXT,
    references=st.lists(TEXT, max_size=2).map(tuple),
)  # fmt: skip


@QUICK
@given(FACTS)
def test_facts_come_back(facts: FileFacts) -> None:
    assert decoded(encoded(facts)) == facts


@pytest.mark.parametrize(
    "data", [b"", b"{", b"3", b"[]", b'["x"]', b"[null,1,2,3,4,5,6,7,8]", b"\xff", b'{"a":1}']
)
def test_what_is_no_facts(data: bytes) -> None:
    with pytest.raises(ValueError):
        decoded(data)


def test_values_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "facts.sqlite"
    keys = [key_of("a", str(n)) for n in range(1200)]
    DiskCache(path).put({key: b"v" * n for n, key in enumerate(keys)})
    again = DiskCache(path)
    assert again.known([*keys, b"none"]) == set(keys)
    assert again.get(keys[1199]) == b"v" * 1199
    assert again.get(b"none") is None
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "facts.sqlite"
    path.write_bytes(damage)
    cache = DiskCache(path)
    cache.put({b"k": b"v"})
    assert cache.get(b"k") == b"v"
    assert DiskCache(path).get(b"k") == b"v"


def test_a_damaged_value_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    DiskCache(path).put({b"k": b"v"})
    with sqlite3.connect(path) as database:
        database.execute("UPDATE entries SET value = x'00'")
    assert DiskCache(path).get(b"k") is None


def test_a_file_that_others_lock_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.sqlite"
    DiskCache(path).put({b"k": b"v"})
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, **options: real(name, **(options | {"timeout": 0.01})))
    other = real(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache = DiskCache(path)
    cache.put({b"new": b"v"})
    assert cache.get(b"new") == b"v"
    other.execute("ROLLBACK")
    other.close()
    assert DiskCache(path).get(b"k") == b"v"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    cache = DiskCache(tmp_path / "file" / "facts.sqlite")
    cache.put({b"k": b"v"})
    assert cache.get(b"k") == b"v"


@given(st.lists(st.text(max_size=3), max_size=3), st.lists(st.text(max_size=3), max_size=3))
def test_keys_differ_when_their_parts_do(one: list[str], other: list[str]) -> None:
    def safe(parts: list[str]) -> list[str]:
        return [part.encode("utf-8", "replace").decode() for part in parts]

    assert (key_of(*safe(one)) == key_of(*safe(other))) is (safe(one) == safe(other))


@given(st.text())
def test_printed_text_cannot_steer_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
    shown.encode()  # no lone surrogate
    assert len(shown) <= 500 or any(ord(character) < 32 for character in text)


def test_many_at_once_are_what_each_is_alone(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    keys = [key_of("a", str(n)) for n in range(1200)]
    DiskCache(path).put({key: b"v" * n for n, key in enumerate(keys)})
    with sqlite3.connect(path) as database:
        database.execute("UPDATE entries SET value = ? WHERE key = ?", (b"spoilt", keys[7]))
    again = DiskCache(path)
    found = again.get_many([*keys, b"none"])
    assert found == {key: value for key in keys if (value := again.get(key)) is not None}
    assert len(found) == 1199
