"""The index's file: what goes in comes out, and nothing else is taken for an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from trialfleet_targets.index.packing import DamagedIndex, mapped, packed, unpacked

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
    with pytest.raises(DamagedIndex):
        unpacked(bytes(whole))


@QUICK
@given(st.integers(0, 400))
def test_a_part_is_no_index(size: int) -> None:
    whole = packed({"commit": "c"}, {"a": np.arange(99), "w": ["x", "y"]})
    assert len(whole) > 400
    with pytest.raises(DamagedIndex):
        unpacked(whole[:size])


@pytest.mark.parametrize(
    "value", [["a\0b"], np.zeros(1, dtype=object), np.zeros(1, dtype="U3"), np.zeros(1, "c16")]
)
def test_what_is_not_kept(value: object) -> None:
    with pytest.raises(ValueError, match=r"not supported|must not contain"):
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
    with pytest.raises(DamagedIndex, match="empty"):
        mapped(path)
