"""No sentence that a model reads stands in code: what is left when the texts are blanked is data, and no module
that makes prompts, hooks or contexts holds English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import get_args

import pytest

from tests.unit.controller import test_authoring as outlined
from tests.unit.controller.test_predicted_targets import FOUND, NEAR, TASK
from tests.unit.runner.test_claude_job import job, program, settings, spec
from trialfleet_controller.authoring.asked import KINDS, asked
from trialfleet_controller.authoring.outline import outline
from trialfleet_controller.planning.frozen_text import with_inline_text
from trialfleet_deliveries import preflight, texts
from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.delivery import compose, with_text
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import Channel, ConditionOrder
from trialfleet_ledger.records.measurements import PreflightResult
from trialfleet_repository.trees import TreeEntry, pack
from trialfleet_tasks import prompts
from trialfleet_tasks.validate.output import CAP, tail

ROOT = Path(__file__).parents[3]
AGENTS, DELIVERIES = ROOT / "runner_image/trialfleet_agents", ROOT / "runner_image/trialfleet_deliveries"
CONTROLLER = ROOT / "controller/trialfleet_controller"
TASKS = ROOT / "tasks/trialfleet_tasks"
WORD = re.compile(r"[A-Za-z]{2,}")
TREE = {
    "CLAUDE.md": b"# Zz\n\nzz zz\n",
    "a/AGENTS.md": b"## Pitfalls\n- zz\n\n## Contracts\n- zz\n\n## Patterns\n- zz\n",
    "b/CLAUDE.md": b"## Pitfalls\n- zz\n",
}
DATA = {"zz", "claude", "agents", "md", "pitfalls", "contracts", "patterns", "fix", "py", "python", "pytest"}
JOINTS = {"and", "or", "line", "in"}  # of lists and places
LABELS = {"this", "repository", "where", "things", "are", "files", "file", "lines", "other"}  # of an outline
FOUND_THERE = preflight.Preflight(
    PreflightResult.FOUND, (preflight.Finding("a/fix.py", line=3, function="zz", fix="Zz.", reason="Zz"),)
)

assert program is not None  # a fixture


@pytest.fixture
def blanked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word of every text is gone; placeholders stay."""
    real = texts.template

    def blank(name: texts.TextName) -> Template:
        return Template(re.sub(r"(\$\{\w+\})|[A-Za-z]+", lambda found: found[1] or "~", real(name).template))

    monkeypatch.setattr(texts, "template", blank)


def words(*said: str) -> set[str]:
    return {word.lower() for text in said for word in WORD.findall(text)}


def conditions() -> Iterator[tuple[str, Condition]]:
    """Every preset, its inline text by every channel."""
    for name, preset in PRESETS.items():
        if preset.inline is None:
            yield name, preset
            continue
        channels: tuple[Channel, ...] = get_args(Channel)
        for channel in channels:
            inline = preset.inline.model_copy(update={"channel": channel})
            yield f"{name}-{channel}", preset.model_copy(update={"inline": inline})


def delivered(condition: Condition, objects: Objects, tree: dict[str, bytes]) -> Composed:
    """As planning and runner make it."""
    order = ConditionOrder(
        name="c",
        digest="0" * 64,
        files="1" * 64 if condition.files else None,
        context=objects.put(pack({path: TreeEntry(data) for path, data in tree.items()})),
        pull=condition.pull,
        hook=condition.hook,
        inline=condition.inline,
    )
    task = TASK.model_copy(update={"anchor": "a/zz.py"})
    order = with_inline_text(order, condition, task, FOUND, NEAR, seed=7, objects=objects)
    made = compose(
        order,
        task="zz",
        files=tree if condition.files else None,
        context=tree,
        text=None if order.text is None else objects.get(order.text).decode(),
    )
    if condition.inline is not None and condition.inline.source == "preflight":
        made = with_text(made, order, preflight.block(FOUND_THERE), order.targets)
    return made


def read(made: Composed) -> list[str]:
    """All that reaches the model, but for the files, which are data."""
    return [made.prompt, made.system or "", *made.hook_nodes.values(), made.rule.text if made.rule else ""]


@pytest.mark.usefixtures("blanked")
@pytest.mark.parametrize("tree", [TREE, {"CLAUDE.md": TREE["CLAUDE.md"]}, {"a/AGENTS.md": TREE["a/AGENTS.md"]}])
def test_what_a_condition_delivers_is_texts_and_data(tree: dict[str, bytes], tmp_path: Path) -> None:
    objects, spoken = Objects(tmp_path), 0
    for name, condition in conditions():
        said = read(delivered(condition, objects, tree))
        assert words(*said) <= DATA | JOINTS, name
        spoken += "~" in "".join(said)
    assert spoken > 10, "the texts were not blanked, or nothing was delivered"


@pytest.mark.usefixtures("blanked")
def test_a_task_is_texts_and_data() -> None:
    for made in (prompts.failing_test("zz\n"), prompts.issue("zz"), prompts.commit_message("zz")):
        assert words(made) == {"zz"}
        assert "~" in made
    assert words(tail("zz\n" * CAP)) == {"zz"}


@pytest.mark.usefixtures("blanked")
def test_a_preflight_asks_in_texts_and_data() -> None:
    said = preflight.asked("zz", ["a/fix.py"])
    assert words(said) == {"fix", "py", "zz"}


def test_hooks_are_told_what_to_say(tmp_path: Path, program: Path, request: pytest.FixtureRequest) -> None:
    """The scripts run alone; their words are arguments."""
    said: dict[bool, set[str]] = {}
    for blank in (False, True):
        if blank:
            request.getfixturevalue("blanked")
        folder = tmp_path / f"{blank}"
        job(folder, spec(), fail_fast=True, preflight=True)
        said[blank] = words(str(settings(folder)))
    spoken = said[False] - said[True]
    assert {"twice", "requested", "already", "checked"} <= spoken


@pytest.mark.usefixtures("blanked")
@pytest.mark.parametrize("kind", KINDS)
def test_contexts_are_asked_for_and_outlined_in_texts_and_data(kind: outlined.Kind) -> None:
    assert words(asked(kind, ["zz"])) <= {"zz"}
    sources = outlined.sources()
    named = words(*sources.files, *(name for path in sources.files for name in sources.names(path)))
    assert words(*outline(kind, sources).values()) <= DATA | LABELS | named


# --- the code ---------------------------------------------------------------------------------------------

TO_OPERATORS = (
    DELIVERIES / "built_in.py",
    DELIVERIES / "delivery_kind.py",
    DELIVERIES / "equal_arms.py",
    DELIVERIES / "secret_files.py",
)  # their sentences: in plans, tables and refusals
MODULES = (
    *sorted({*DELIVERIES.glob("*.py")} - {*TO_OPERATORS}),
    *(DELIVERIES / "hooks" / f"{name}.py" for name in ("fail_fast", "preflight_gate", "push_on_read")),
    TASKS / "prompts.py",
    ROOT / "runner_image/trialfleet_runner/attempt/preflight_run.py",
    AGENTS / "claude_code/agent.py",
    TASKS / "validate/output.py",
    *(CONTROLLER / "authoring" / f"{name}.py" for name in ("asked", "build", "outline", "writer")),
    *(CONTROLLER / "planning" / f"{name}.py" for name in ("frozen_text", "predicted_targets")),
)
ENGLISH = re.compile(r"[A-Za-z']{2,}(?:[ ,;:.]+[A-Za-z'`]+){3,}")
# What is said to operators and records, and patterns.
RECORDED = "it left no answer"
ELSEWHERE = ("OperatorError", "FieldError", "Lost", "Preflight", "_refused", "compile")


def sentences(tree: ast.AST) -> Iterator[str]:
    """Strings of English, without docstrings and what operators are told."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and called(node) in ELSEWHERE):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ENGLISH.search(node.value):
            yield node.value
        yield from sentences(node)


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_that_speaks_to_models_holds_a_sentence(path: Path) -> None:
    found = sentences(ast.parse(path.read_text(encoding="utf-8")))
    assert [sentence for sentence in found if sentence != RECORDED] == []


@pytest.mark.parametrize(
    "code",
    ["X = 'Read this before you start.'", "def f(n):\n    return f'All {n} calls have been used. Answer now.'"],
)
def test_a_sentence_would_be_found(code: str) -> None:
    assert list(sentences(ast.parse(code)))
