"""What a terminal shows of validations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_tasks.commands.validation_results import TAIL_LINES, causes, output_end


def test_a_line_for_each_cause() -> None:
    unstable = "dropped, because its outcome is not stable"
    said = [f"t.py::test_a[x: {n}]: {unstable}" for n in range(70)] + ["docs: not covered", "nothing is removed"]
    assert causes(said) == [
        f"{unstable}: t.py::test_a[x: 0], t.py::test_a[x: 1], t.py::test_a[x: 2] and 67 more",
        "not covered: docs",
        "nothing is removed",
    ]


@given(st.lists(st.text()))
def test_every_warning_is_counted_and_none_moves_the_cursor(warnings: list[str]) -> None:
    lines = causes(warnings)
    assert len(lines) <= len(warnings)
    assert bool(lines) == bool(warnings)
    assert not any(character in "\x1b\x07\r\x00" for line in lines for character in line)


def test_the_end_of_the_output_is_shown_harmlessly() -> None:
    shown = output_end(
        "".join(f"line {n}\n" for n in range(100)) + "\x1b[2Jgone \u202eover" + "x" * 10_000 + "\n\n"
    )
    lines = shown.split("\n")
    assert len(lines) == TAIL_LINES
    assert lines[0] == f"  | line {101 - TAIL_LINES}"
    assert lines[-1].startswith("  | ␛[2Jgone ⟨U+202E⟩overxxx")
    assert len(lines[-1]) < 310
