"""The same content in the file that each agent reads."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.composing import compose_planned
from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.placement import (
    AS_NAMED,
    PROMPT,
    FileReading,
    imported,
    nested_unreached,
    placed,
)
from trialfleet_ledger.conditions import PRESETS
from trialfleet_ledger.records.condition_order import ConditionOrder

CLAUDE = FileReading("CLAUDE.md", nested=True)
CODEX = FileReading("AGENTS.md")
GEMINI = FileReading("GEMINI.md", nested=True)
MINI = FileReading(in_prompt=True)
COPILOT = FileReading("AGENTS.md", nested=True, nested_files=("AGENTS.md", "CLAUDE.md", "GEMINI.md"))
OPENCODE = FileReading("AGENTS.md", nested=True, nested_files=("AGENTS.md", "CLAUDE.md"))
TREE = {"CLAUDE.md": b"# Shop\n\nRoot words.\n", "a/AGENTS.md": b"# A\n\nNested words.\n", "docs/x.md": b"X.\n"}


@pytest.mark.parametrize(
    ("reading", "otherwise", "names"),
    [
        (AS_NAMED, False, {"CLAUDE.md", "a/AGENTS.md"}),
        (CLAUDE, False, {"CLAUDE.md", "a/CLAUDE.md"}),
        (CLAUDE, True, {"CLAUDE.md", "a/AGENTS.md"}),
        (CODEX, False, {"AGENTS.md", "a/AGENTS.md"}),
        (GEMINI, False, {"GEMINI.md", "a/GEMINI.md"}),
        (GEMINI, True, {"GEMINI.md", "a/AGENTS.md"}),
        (MINI, False, {"CLAUDE.md", "a/AGENTS.md"}),
    ],
)
def test_a_tree_under_the_names_that_an_agent_reads(
    reading: FileReading, otherwise: bool, names: set[str]
) -> None:
    made = placed(TREE, reading, delivered_otherwise=otherwise)
    assert set(made.files) == {*names, "docs/x.md"}
    assert sorted(made.files.values()) == sorted(TREE.values()), "the content is the same for every agent"
    moved = {old: new for old, new in made.read_as.items() if new != PROMPT}
    assert {new: TREE[old] for old, new in moved.items()} == {new: made.files[new] for new in moved.values()}
    assert (made.told == "# Shop\n\nRoot words.") == reading.in_prompt


@pytest.mark.parametrize("reading", [AS_NAMED, CLAUDE, CODEX, GEMINI, MINI, COPILOT, OPENCODE])
@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", "GEMINI.md"])
def test_what_a_hook_pushes_has_no_name_that_the_agent_loads(reading: FileReading, name: str) -> None:
    tree = {"CLAUDE.md": b"Root.\n", f"a/{name}": b"A.\n", "b/AGENTS.md": b"B.\n", "b/CLAUDE.md": b"B.\n"}
    hooked = (f"a/{name}", "b/AGENTS.md")
    made = placed(tree, reading, delivered_otherwise=True, hooked=hooked)
    loaded = {path for path in made.files if "/" in path and path.rpartition("/")[2] in reading.nested_names}
    assert loaded == set()
    assert set(made.files.values()) == set(tree.values()), "all of it is still in the workspace"
    other = placed({**tree, "b/CLAUDE.md": b"Other.\n"}, reading, delivered_otherwise=True, hooked=hooked)
    assert b"Other.\n" in other.files.values(), "what the hook does not push may arrive by itself"


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("@AGENTS.md\n", True),
        ("<!-- One file for all agents. -->\n# Rules\n\nSee @./AGENTS.md for all of them.\n", True),
        ("# Rules: @AGENTS.md\n", True),
        ("@AGENTS.md\n\nUse tabs.\n", False),
        ("Never edit generated/ by hand. Details: @AGENTS.md\n", False),
        ("See @AGENTS.md. Never edit generated/ by hand.\n", False),
        ("@AGENTS.md @more.md\n", False),
        ("See AGENTS.md.\n", False),
        ("```\n@AGENTS.md\n```\n", False),
        ("# Rules\n", False),
    ],
)
def test_a_file_that_only_imports_what_a_hook_pushes_is_not_loaded_either(text: str, moves: bool) -> None:
    tree = {"CLAUDE.md": b"Root.\n", "a/AGENTS.md": b"A.\n", "a/CLAUDE.md": text.encode()}
    made = placed(tree, CLAUDE, delivered_otherwise=True, hooked=("a/AGENTS.md",))
    assert ("a/CLAUDE.md" not in made.files) is moves


@pytest.mark.parametrize("importing", ["a/CLAUDE.md", "a/AGENTS.md", "a/GEMINI.md", "CLAUDE.md", "docs/x.md"])
@pytest.mark.parametrize("reading", [AS_NAMED, CLAUDE, CODEX, GEMINI, MINI, COPILOT, OPENCODE])
@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", "GEMINI.md"])
@pytest.mark.parametrize("copy", [None, "Pushed words.\n", "@{}\n"])
def test_what_a_hook_pushes_is_imported_by_no_file(
    importing: str, reading: FileReading, name: str, copy: str | None
) -> None:
    """Also not through a copy of it, or a chain of imports."""
    node = f"a/{name}"
    path = posixpath.relpath(node, posixpath.dirname(importing) or ".")
    tree = {"CLAUDE.md": b"Root. @docs/x.md\n", "docs/x.md": b"X.\n", node: b"Pushed words.\n"}
    if importing == node:
        return
    if copy is not None and importing != "a/GEMINI.md" != node:
        tree["a/GEMINI.md"] = copy.format(name).encode()
        path = posixpath.relpath("a/GEMINI.md", posixpath.dirname(importing) or ".")
    tree[importing] = tree.get(importing, b"") + f"Own words. @{path}\r\n".encode()
    made = placed(tree, reading, delivered_otherwise=True, hooked=(node,))
    own = {path: data for path, data in made.files.items() if b"Own words." in data}
    assert own, "what it says itself may arrive by itself"
    for one in own:
        assert "Pushed" not in imported(made.files, one)
    assert "Pushed" not in made.told


def test_a_root_of_the_agents_own_name_stays_beside_another() -> None:
    both = {"CLAUDE.md": b"@AGENTS.md\n", "AGENTS.md": b"Words.\n"}
    for reading in (CLAUDE, CODEX):
        assert placed(both, reading, delivered_otherwise=False).files == both
    moved = placed(both, GEMINI, delivered_otherwise=False)
    assert moved.files["GEMINI.md"] == b"Words.\n"


def test_imports_come_along_once_and_never_in_a_circle() -> None:
    files = {
        "CLAUDE.md": b"See @docs/a.md, please.\n\n```\n@docs/a.md\n```\n@no.md @../../etc/passwd a@docs/a.md\n",
        "docs/a.md": b"A says @b.md\n",
        "docs/b.md": b"B, and @a.md again.\n",
    }
    assert imported(files, "CLAUDE.md") == (
        "See A says B, and @a.md again., please.\n\n```\n@docs/a.md\n```\n@no.md @../../etc/passwd a@docs/a.md\n"
    )


@given(
    st.dictionaries(
        st.sampled_from(["CLAUDE.md", "AGENTS.md", "a/AGENTS.md", "a/b/CLAUDE.md", "x.py"]), st.just(b"w\n")
    )
)
def test_placing_twice_changes_nothing_more(files: dict[str, bytes]) -> None:
    for reading in (AS_NAMED, CLAUDE, CODEX, GEMINI, MINI):
        once = placed(files, reading, delivered_otherwise=False).files
        assert placed(once, reading, delivered_otherwise=False).files == once
        assert len(once) == len(files)


def test_nested_files_that_nothing_delivers() -> None:
    assert nested_unreached(TREE, CODEX, delivered_otherwise=False)
    assert nested_unreached(TREE, MINI, delivered_otherwise=False)
    assert not nested_unreached(TREE, CODEX, delivered_otherwise=True)
    assert not nested_unreached({"CLAUDE.md": b""}, CODEX, delivered_otherwise=False)
    assert not nested_unreached(TREE, GEMINI, delivered_otherwise=False)
    assert not nested_unreached(TREE, AS_NAMED, delivered_otherwise=False)


def made(reading: FileReading, preset: str = "flat_llm") -> Composed:
    wanted = PRESETS[preset]
    order = ConditionOrder(name=preset, digest="0" * 64, pull=wanted.pull, hook=wanted.hook, inline=wanted.inline)
    return compose_planned(order, task="Mend it.\n", files=TREE, context=TREE, anchor="a/b.py", reading=reading)


def test_the_pull_sentence_names_the_file_that_is_there() -> None:
    assert "GEMINI.md" in made(GEMINI).prompt
    assert "CLAUDE.md" not in made(GEMINI).prompt
    assert made(GEMINI).delivery.read_as == {"CLAUDE.md": "GEMINI.md"}


def test_the_pull_sentence_names_files_that_had_to_move() -> None:
    hooked = made(COPILOT, "intent_layer")
    assert hooked.delivery.read_as["a/AGENTS.md"] == "a/CONTEXT.md"
    assert "CONTEXT.md" in hooked.prompt
    assert "a/AGENTS.md" in hooked.hook_nodes


def test_the_roots_text_is_in_the_prompt_of_an_agent_that_loads_none() -> None:
    told = made(MINI)
    assert told.prompt.startswith("Mend it.\n\n")
    assert told.prompt.endswith("# Shop\n\nRoot words.")
    assert told.delivery.read_as == {"CLAUDE.md": PROMPT}
    assert told.told == "# Shop\n\nRoot words."
    assert made(AS_NAMED).prompt in told.prompt
