"""Refusals of hand-written YAML name file, line, field and way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_runner.campaign import CampaignSpec
from trialfleet_runner.contract import Frozen
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.yamlfile import load, read

GOOD = """\
campaign: demo
seed: 1
tasks: [tasks/*.yaml]
conditions: [none, flat_llm]
reps: 5
agent: {kind: nop}
store: out
_note: {anything: [1, 2]}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    return path


def test_a_good_file_is_read_and_notes_are_ignored(tmp_path: Path) -> None:
    loaded = read(write(tmp_path, GOOD), CampaignSpec)
    assert loaded.value.reps == 5
    assert loaded.value.conditions == ("none", "flat_llm")
    assert loaded.where("conditions", 1) == f"{tmp_path}/campaign.yaml:4: conditions[1]"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("reps: 5", "reps: 0", (":5: reps", "greater than or equal to 1", "given: 0", "set it to 1 or more")),
        ("store: out", "store: out\nbackend: moon", (":8: backend", "way out: choose one of 'local'")),
        ("[none, flat_llm]", "[]", (":4: conditions", "give at least 1")),
        ("reps: 5", 'reps: "5"', (":5: reps", "must be a whole number", "without quotes")),
        ("reps: 5", "reps: true", (":5: reps", "must be a whole number")),
        ("reps: 5", "rep: 5", (":5: rep: unknown key", "did you mean reps?")),
        ("reps: 5\n", "", ("reps: is required and not given", "add it")),
        ("agent: {kind: nop}", "agent: {kind: nop, version: 3.11}", (":6: agent.version", "put it in quotes")),
        ("[none, flat_llm]", "5", (":4: conditions", "must be a list or must be a mapping")),
        (
            "[none, flat_llm]",
            "{x: {filess: tree}}",
            (":4: conditions.x.filess: unknown key", "did you mean files?"),
        ),
        ("seed: 1", "seed: 1\nseed: 2", (":3: seed: this key stands twice", "line 2")),
        ("reps: 5", "reps: [5", ("is not YAML",)),
        ("seed: 1", "seed: !!python/object:os.system 1", (":2: seed",)),
        ("seed: 1", "seed: .inf", (":2: seed", "finite")),
        ("store: out", "store: out\nlimits: {memory: 4Gigs}", (":8: limits.memory", "is not a size")),
    ],
)
def test_refusals_name_the_line_and_the_field(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(OperatorError) as error:
        load(path, CampaignSpec)
    assert str(error.value).startswith(str(path))
    for word in words:
        assert word in str(error.value)


def test_a_missing_file_a_directory_and_a_list_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path, write(tmp_path, "- 1\n"), write(tmp_path, "")):
        with pytest.raises(OperatorError, match=str(path)):
            load(path, CampaignSpec)


def test_alias_bombs_and_cycles_are_refused(tmp_path: Path) -> None:
    lines = ["_a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"_a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    for text in ("\n".join(lines), "_a: &a [*a]"):
        with pytest.raises(OperatorError, match="without bound"):
            load(write(tmp_path, text), CampaignSpec)


class Pair(Frozen):
    left: dict[str, int]
    right: dict[str, int]


def test_merge_keys_copy_from_notes(tmp_path: Path) -> None:
    text = "_base: &base {a: 1, b: 2}\nleft: {<<: *base, b: 3}\nright: *base\n"
    assert load(write(tmp_path, text), Pair) == Pair(left={"a": 1, "b": 3}, right={"a": 1, "b": 2})
