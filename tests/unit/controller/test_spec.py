"""What a bad campaign file gets: file, line or field, and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_controller.campaigns import find, from_file
from trialfleet_controller.spec import load_campaign
from trialfleet_runner.conditions import PRESETS, Condition
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.directory import DirectoryStore

GOOD = """\
campaign: demo
seed: 1
tasks: [tasks/*.yaml]
conditions: [none, flat_llm]
reps: 5
agent: {kind: nop}
limits: {cost_usd: {trial: 2, campaign: 400}}
store: out
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    for name in ("a", "b"):
        (tmp_path / "tasks" / f"{name}.yaml").write_text("")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "campaign.yaml"
    path.write_text(text)
    return path


def test_names_and_globs_are_resolved(folder: Path) -> None:
    text = GOOD.replace("[tasks/*.yaml]", "[tasks/b.yaml, tasks/*.yaml]")
    file = load_campaign(write(folder, text))
    assert [path.name for path in file.task_files] == ["b.yaml", "a.yaml"]
    assert file.conditions == {name: PRESETS[name] for name in ("none", "flat_llm")}


def test_conditions_are_composed_and_presets_named_by_null(folder: Path) -> None:
    text = GOOD.replace("[none, flat_llm]", "{none: null, mine: {files: flat}}")
    assert load_campaign(write(folder, text)).conditions == {"none": Condition(), "mine": Condition(files="flat")}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[none, flat_llm]", "[none, flat]", (":4: conditions[1]", "'flat'", "intent_layer_preamble")),
        ("[none, flat_llm]", "{none: null, x: null}", (":4: conditions.x", "compose your own")),
        ("[none, flat_llm]", "[none, none]", ("a name stands twice",)),
        ("[none, flat_llm]", "[]", (":4: conditions",)),
        ("[tasks/*.yaml]", "[tasks/c.yaml]", (":3: tasks[0]", "tasks/c.yaml", "no such file")),
        ("[tasks/*.yaml]", "[tasks]", (":3: tasks[0]", "is a directory", "tasks/*.yaml")),
        ("[tasks/*.yaml]", "[tasks/*.yml]", (":3: tasks[0]", "no such file")),
        ("[tasks/*.yaml]", "[]", (":3: tasks",)),
        ("reps: 5", "reps: 0", (":5: reps", "greater than or equal to 1")),
        ("trial: 2, ", "", (":7: limits.cost_usd.campaign", "set cost_usd.trial")),
        ("campaign: 400", "campaign: 1", (":7: limits.cost_usd.campaign", "none could start")),
        ("store: out", "store: out\nbackend: moon", (":9: backend",)),
        ("store: out", "store: out\nprimary: {treatment: x, control: none}", ("'x' is not among",)),
        (
            "[none, flat_llm]",
            "[none, flat]\nprimary: {treatment: flat_llm, control: none}",
            (":4: conditions[1]", "no condition is called 'flat'"),
        ),
        ("campaign: demo", "campaign: ../evil", (":1: campaign",)),
    ],
)
def test_refusals(folder: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    with pytest.raises(OperatorError) as error:
        load_campaign(write(folder, GOOD.replace(old, new, 1)))
    for word in words:
        assert word in str(error.value)


def test_a_campaign_is_found_by_file_folder_and_name(folder: Path) -> None:
    path = write(folder, GOOD)
    by_file = from_file(path)
    assert by_file.store == DirectoryStore(folder / "out")
    (folder / "out" / "demo").mkdir(parents=True)
    (folder / "out" / "demo" / "campaign.json").write_text("{}")
    for found in (
        find(str(folder / "out" / "demo")),
        find(str(folder / "out" / "demo" / "campaign.json")),
        find("demo", str(folder / "out")),
        find(str(path)),
    ):
        assert (found.name, found.store.url) == ("demo", str(folder / "out"))
    with pytest.raises(OperatorError, match="neither a campaign file"):
        find("demo")
