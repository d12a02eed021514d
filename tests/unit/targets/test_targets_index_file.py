"""The index's file: what goes in comes out, and nothing else is taken for an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from trialfleet_targets.facts import Definition, DefinitionKind, Edge, EdgeKind
from trialfleet_targets.index import tables
from trialfleet_targets.index.packing import Damaged, mapped, packed, unpacked
from trialfleet_targets.snapshot import PastCommit

QUICK = settings(max_examples=40)
TYPES = st.sampled_from(["bool", "int8", "uint8", "int32", "int64", "uint32", "float32", "float64"])
WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
VALUES = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.one_of(WORDS, arrays.arrays(TYPES, arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=4))),
    max_size=5,
)


@QUICK
@given(VALUES)
def test_what_goes_in_comes_out(values: dict[str, object]) -> None:
    head, found = unpacked(packed({"commit": "c"}, values))  # type: ignore[arg-type]
    assert head == {"commit": "c"}
    assert set(found) == set(values)
    for name, value in values.items():
        if isinstance(value, list):
            assert found[name] == value
        else:
            assert isinstance(value, np.ndarray)
            assert found[name].dtype == value.dtype  # type: ignore[union-attr]
            np.testing.assert_array_equal(found[name], value)


@QUICK
@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_matter(values: dict[str, object], random: object) -> None:
    names = list(values)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert packed({}, {name: values[name] for name in names}) == packed({}, values)  # type: ignore[arg-type, misc]


@QUICK
@given(st.data())
def test_any_damage_is_noticed(data: st.DataObject) -> None:
    whole = bytearray(packed({"commit": "c"}, {"a": np.arange(9), "w": ["x", "y"]}))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Damaged):
        unpacked(bytes(whole))


@QUICK
@given(st.integers(0, 400))
def test_a_part_is_no_index(size: int) -> None:
    whole = packed({"commit": "c"}, {"a": np.arange(99), "w": ["x", "y"]})
    assert len(whole) > 400
    with pytest.raises(Damaged):
        unpacked(whole[:size])


@pytest.mark.parametrize(
    "value", [["a\0b"], np.zeros(1, dtype=object), np.zeros(1, dtype="U3"), np.zeros(1, "c16")]
)
def test_what_is_not_kept(value: object) -> None:
    with pytest.raises(ValueError, match="kept"):
        packed({}, {"a": value})  # type: ignore[dict-item]


def test_a_mapped_file_may_go_away(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(packed({}, {"a": np.arange(3), "w": ["caf\udce9", ""]}))
    _, found = mapped(path)
    path.unlink()
    assert found["w"] == ["caf\udce9", ""]
    array = found["a"]
    assert isinstance(array, np.ndarray)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    path.write_bytes(b"")
    with pytest.raises(Damaged, match="empty"):
        mapped(path)


NAMES = st.sampled_from(["", "a", "b", "Zeta", "\u00fc"])
DEFINITIONS = st.builds(
    Definition,
    name=NAMES,
    kind=st.sampled_from(list(DefinitionKind)),
    line=st.integers(1, 10**6),
    end_line=st.integers(1, 10**6),
    owner=NAMES,
    exported=st.booleans(),
)


@QUICK
@given(st.lists(st.lists(DEFINITIONS, max_size=4), max_size=4))
def test_definitions(by_file: list[list[Definition]]) -> None:
    stored = unpacked(packed({}, tables.definitions_table(by_file)))[1]
    assert [list(tables.definitions_of(stored, at)) for at in range(len(by_file))] == by_file


PATHS = ("a.py", "b/c.py", "d.go")
EDGES = st.builds(
    Edge,
    source=st.sampled_from(PATHS),
    target=st.sampled_from(PATHS),
    kind=st.sampled_from(list(EdgeKind)),
    symbols=st.lists(NAMES, max_size=3).map(tuple),
)


@QUICK
@given(st.lists(EDGES, max_size=6), st.randoms(use_true_random=False))
def test_edges(edges: list[Edge], random: object) -> None:
    number = {path: at for at, path in enumerate(PATHS)}
    table = tables.edges_table(edges, number)
    stored = unpacked(packed({}, table))[1]
    assert sorted(tables.edges_of(stored, PATHS), key=str) == sorted(edges, key=str)
    mixed = list(edges)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert packed({}, tables.edges_table(mixed, number)) == packed({}, table)


def test_edges_to_files_that_are_not_there_are_left_out() -> None:
    edges = [Edge("a", "gone", EdgeKind.VALUE), Edge("gone", "a", EdgeKind.VALUE)]
    stored = tables.edges_table(edges, {"a": 0})
    assert tables.edges_of(unpacked(packed({}, stored))[1], ["a"]) == ()


@st.composite
def commits(draw: st.DrawFn) -> PastCommit:
    changed = sorted(draw(st.sets(st.sampled_from(["a", "b", "c\udce9", "d\n"]))))
    how = [draw(st.sampled_from("MAD")) for _ in changed]
    added, deleted = (tuple(p for p, h in zip(changed, how, strict=True) if h == wanted) for wanted in "AD")
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
    time = draw(st.integers(0, 2**40))
    return PastCommit("f" * 40, time, draw(text), draw(text), tuple(changed), added, deleted, draw(st.booleans()))


@QUICK
@given(st.lists(commits(), max_size=5))
def test_history(past: list[PastCommit]) -> None:
    stored = unpacked(packed({}, tables.history_table(past)))[1]
    assert list(tables.history_of(stored)) == past


@QUICK
@given(st.lists(st.lists(DEFINITIONS, max_size=3), max_size=4), st.data())
def test_definitions_that_are_taken_over_give_the_same_bytes(
    before: list[list[Definition]], data: st.DataObject
) -> None:
    now: list[list[Definition] | int] = data.draw(
        st.lists(
            st.one_of(st.lists(DEFINITIONS, max_size=3), *([st.integers(0, len(before) - 1)] if before else []))
        )
    )
    old = unpacked(packed({}, tables.definitions_table(before)))[1]
    anew = tables.definitions_table([before[own] if isinstance(own, int) else own for own in now])
    assert packed({}, tables.updated_definitions(now, old)) == packed({}, anew)
