"""The quick-start: its campaigns, and its context files."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from trialfleet_deliveries.commands import strip
from trialfleet_deliveries.markdown import select, split
from trialfleet_deliveries.nodes import child_nodes, covering_node, root_file
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.conditions import PRESETS
from trialfleet_ledger.task import SdistSource, Status
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import Tree, changed, read_folder
from trialfleet_tasks.sources.materialise import Trees, materialise
from trialfleet_tasks.taskfile import LoadedTask, campaign_tasks, load_all, load_task_file, tasks_of
from trialfleet_tasks.yamlfile import Loaded, read

TASKS = Path(__file__).parents[3] / "tasks"
FILES = sorted((TASKS / "quickstart" / "tasks").glob("*.yaml"))
QUICKSTART = {task.id: task for file in FILES for task in load_task_file(file).tasks}
KINDS = ("flat", "tree", "placebo")
FOLDERS = sorted(
    folder
    for base in (TASKS / "contexts", TASKS / "quickstart" / "contexts")
    for project in base.iterdir()
    for folder in project.iterdir()
)
TITLES = {"Overview", "Pitfalls", "Contracts"}
MIN_PITFALLS, MIN_CONTRACTS = 3, 2
SHORTEST_LINE = 6  # an added line that is shorter says nothing by itself

_SPAN = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")


def texts(folder: Path) -> dict[str, str]:
    return {path: entry.data.decode() for path, entry in read_folder(folder).items()}


def items(text: str, title: str) -> list[str]:
    """The list items of one section, each with the lines that continue it."""
    return [
        " ".join(item.split())
        for section in select(text, [title])
        for item in re.split(r"^- ", section.body, flags=re.MULTILINE)[1:]
    ]


def named(text: str) -> set[str]:
    """Identifiers inside backticks."""
    return {name for span in _SPAN.findall(text) for name in _NAME.findall(span)}


def words(tree: Tree) -> dict[str, frozenset[str]]:
    """Per Python file every identifier in it."""
    return {path: names(entry.data) for path, entry in tree.items() if path.endswith(".py")}


@cache
def names(data: bytes) -> frozenset[str]:
    """Trees of one project have most files in common."""
    return frozenset(_NAME.findall(data.decode(errors="replace")))


def added_lines(trees: Trees, files: tuple[str, ...]) -> Iterator[str]:
    """What the fix adds, blanks collapsed."""
    for file in files:
        old, new = (
            tree[file].data.decode().splitlines() if file in tree else [] for tree in (trees.pre_fix, trees.fixed)
        )
        for line in difflib.ndiff(old, new):
            plain = " ".join(line[2:].split())
            if line.startswith("+ ") and len(plain) >= SHORTEST_LINE:
                yield plain


@cache
def trees_of(task: str) -> Trees:
    return materialise(QUICKSTART[task], cache=Cache.default(), mirrors={})


def context(task: LoadedTask, kind: str) -> dict[str, str]:
    return texts(task.folder / task.contexts[kind])


def test_there_are_enough_tasks_over_enough_projects() -> None:
    assert len(QUICKSTART) >= 8
    projects = [task.environment.distribution for task in QUICKSTART.values()]
    assert len(set(projects)) >= 5
    assert all(projects.count(name) >= 2 for name in ("ansible-core", "pdm", "graphiti-core"))


@pytest.mark.parametrize("task", QUICKSTART.values(), ids=lambda task: task.id)
def test_a_node_below_the_root_covers_every_file_of_the_fix(task: LoadedTask) -> None:
    assert isinstance(task.source, SdistSource)
    tree = context(task, "tree")
    assert all(covering_node(tree, file) for file in task.source.files)


@pytest.mark.parametrize("task", QUICKSTART.values(), ids=lambda task: task.id)
def test_a_task_has_all_three_contexts(task: LoadedTask) -> None:
    assert all(any(text.strip() for text in context(task, kind).values()) for kind in KINDS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_context_folder_has_its_shape(folder: Path) -> None:
    tree = texts(folder)
    assert root_file(tree) == "CLAUDE.md"
    if folder.name == "tree":
        assert {posixpath.basename(path) for path in tree if path != "CLAUDE.md"} == {"AGENTS.md"}
        assert len(child_nodes(tree)) >= 2
    else:
        assert list(tree) == ["CLAUDE.md"]
    if folder.name == "placebo":
        assert len(tree["CLAUDE.md"].splitlines()) == 2


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_contexts_hold_no_development_commands(folder: Path) -> None:
    assert {path: strip(text) for path, text in texts(folder).items()} == texts(folder)


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.name == "tree"], ids=lambda folder: folder.parent.name)
def test_every_child_node_has_pitfalls_that_name_something_and_contracts(folder: Path) -> None:
    for path, text in texts(folder).items():
        if path == "CLAUDE.md":
            continue
        assert len(items(text, "Pitfalls")) >= MIN_PITFALLS, path
        assert len(items(text, "Contracts")) >= MIN_CONTRACTS, path
        assert {section.title for section in split(text)} <= {"Overview", "Pitfalls", "Contracts", "Patterns"}, (
            path
        )
        assert [item for item in items(text, "Pitfalls") if not named(item)] == [], path


@pytest.mark.slow
@pytest.mark.parametrize("task", QUICKSTART.values(), ids=lambda task: task.id)
def test_pitfalls_name_symbols_of_the_pre_fix_tree(task: LoadedTask) -> None:
    by_file = words(trees_of(task.id).pre_fix)
    everything = set[str]().union(*by_file.values())
    for kind in ("flat", "tree"):
        for path, text in context(task, kind).items():
            folder = posixpath.dirname(path)
            below = set[str]().union(
                *(found for file, found in by_file.items() if not folder or file.startswith(f"{folder}/"))
            )
            for item in items(text, "Pitfalls"):
                assert named(item) <= everything, (path, sorted(named(item) - everything))
                assert named(item) & below, (path, item)


@pytest.mark.slow
@pytest.mark.parametrize("task", QUICKSTART.values(), ids=lambda task: task.id)
def test_no_context_contains_a_line_that_the_fix_adds(task: LoadedTask) -> None:
    assert isinstance(task.source, SdistSource)
    trees = trees_of(task.id)
    assert changed(trees.pre_fix, trees.fixed) == task.source.files
    lines = set(added_lines(trees, task.source.files))
    assert lines
    for kind in KINDS:
        for path, text in context(task, kind).items():
            plain = " ".join(text.split())
            assert [line for line in lines if line in plain] == [], path


@pytest.mark.slow
def test_the_leak_check_can_fail() -> None:
    trees = trees_of("markdown-abbr-override-unknown")
    (line,) = added_lines(trees, ("markdown/extensions/abbr.py",))
    assert line in " ".join(f"- Write\n  `{line}` there.".split())


# The presets that deliver what authors wrote.
AUTHORED = {"none", "placebo", "flat_llm", "intent_layer", "intent_layer_preamble", "preamble_only"}
FOLDER = Path(__file__).parents[3] / "tasks" / "quickstart"


def campaign(name: str) -> Loaded[CampaignSpec]:
    return read(FOLDER / name, CampaignSpec)


@pytest.mark.parametrize("name", ["demo.yaml", "placebo.yaml"])
def test_the_demo_runs_without_key_or_server(name: str) -> None:
    loaded = campaign(name)
    spec = loaded.value
    assert len(campaign_tasks(loaded)) >= 2
    assert (spec.agent.kind, spec.backend) == ("search", "local")
    assert (FOLDER / spec.store_spec.url).resolve() == FOLDER.parents[1] / "runs"


def test_the_campaign_of_targets_has_the_arms_that_tell_names_from_confidence() -> None:
    spec = campaign("targets.yaml").value
    arms = {"placebo", "placebo_matched", "wrong_targets", "predicted_targets", "oracle_targets"}
    assert set(spec.conditions) == {"none", *arms}
    assert set(spec.conditions) <= set(PRESETS)
    assert spec.primary is not None
    assert (spec.primary.treatment, spec.primary.control) == ("predicted_targets", "placebo_matched")
    assert (spec.agent.kind, spec.backend) == ("search", "local")


@pytest.mark.parametrize("task", campaign_tasks(campaign("demo.yaml")), ids=lambda task: task.id)
def test_a_task_of_the_demo_runs_on_every_python_that_make_takes(task: LoadedTask) -> None:
    assert set(task.environment.python) >= {"3.11", "3.12", "3.13"}


def test_the_other_campaign_runs_every_task_under_every_preset() -> None:
    loaded = campaign("campaign.yaml")
    every = tasks_of(load_all(sorted((FOLDER / "tasks").glob("*.yaml"))))
    assert {task.id for task in campaign_tasks(loaded)} == {task.id for task in every}
    assert all(task.spec.status is Status.VALIDATED for task in every)
    assert set(loaded.value.conditions) >= AUTHORED
    assert loaded.value.reps == 25
