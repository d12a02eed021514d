"""A condition composed: what is in the prompt, the system prompt, the workspace and the hook, to the byte."""

from __future__ import annotations

import pytest

from tests.support.composing import compose_planned
from trialfleet_deliveries import tokens
from trialfleet_deliveries.composed import Composed, Rule
from trialfleet_deliveries.delivery import compose, with_text
from trialfleet_deliveries.inline_texts import fitting, neutral
from trialfleet_deliveries.naming import globs_of, naming, two_lines
from trialfleet_deliveries.texts import render
from trialfleet_ledger.conditions import PRESETS
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSpec
from trialfleet_ledger.records.measurements import Coverage

TASK = "The test fails.\n\n```\nE   assert 1 == 2\n```\n"
TREE = {
    "CLAUDE.md": b"# Project\n\nThe whole code base in words.\n\n- `make test`\n",
    "pkg/AGENTS.md": b"""# pkg

## Contracts
- returns a list

## Pitfalls
- shared cache

## Patterns
- one
""",
    "pkg/empty/AGENTS.md": b"# Nothing to say here\n",
    "pkg/old/CLAUDE.md": b"## Pitfalls\n- old\n\n- `uv sync`\n",
}
FLAT = {"CLAUDE.md": b"# Flat\n\nEverything in one file.\n"}
PLACEBO = {"CLAUDE.md": b"Language: Python\nTest framework: pytest\n"}
NEAREST = InlineSpec(source="nearest")
INLINE = render(
    "inline_sections",
    titles="pitfalls and contracts",
    directory="pkg",
    sections="## Pitfalls\n\n- shared cache\n\n## Contracts\n\n- returns a list",
)
PULL_TREE = render("pull_root_and_directories", root="CLAUDE.md", names="AGENTS.md or CLAUDE.md")
PULL_FLAT = render("pull_root", root="CLAUDE.md")


def order(**fields: object) -> ConditionOrder:
    return ConditionOrder.model_validate({"name": "c", "digest": "0" * 64, **fields})


def composed(
    files: dict[str, bytes] | None = None,
    context: dict[str, bytes] | None = None,
    anchor: str | None = "pkg/a.py",
    text: str | None = None,
    **fields: object,
) -> Composed:
    return compose_planned(order(**fields), task=TASK, files=files, context=context, anchor=anchor, text=text)


def test_tree_with_pull_and_hook() -> None:
    made = composed(TREE, TREE, pull=True, hook="on_read")
    assert made.prompt == f"{TASK}\n{PULL_TREE}"
    assert made.files["CLAUDE.md"] == b"# Project\n\nThe whole code base in words.\n"
    assert made.hook_nodes == {
        "pkg/AGENTS.md": "Notes on the code in pkg/ (from pkg/AGENTS.md):\n\n## Pitfalls\n\n- shared cache\n\n"
        "## Contracts\n\n- returns a list\n\n## Patterns\n\n- one",
        "pkg/empty/AGENTS.md": "",
        "pkg/old/CLAUDE.md": "Notes on the code in pkg/old/ (from pkg/old/CLAUDE.md):\n\n## Pitfalls\n\n- old",
    }
    assert made.delivery.coverage is Coverage.NOT_ASKED
    assert "-- `make test`" in made.stripped
    assert made.stripped.count("a/CLAUDE.md") == 1


def test_tree_with_inline_and_hook_has_no_pull_sentence() -> None:
    made = composed(TREE, TREE, inline=NEAREST, hook="on_read")
    assert made.prompt == f"{TASK}\n{INLINE}"
    assert made.system is None
    assert made.delivery.node == "pkg/AGENTS.md"
    assert made.delivery.coverage is Coverage.COVERED
    assert made.delivery.inline_tokens == tokens.count(INLINE)
    assert made.delivery.tokenizer == tokens.name()
    assert made.inline == INLINE


@pytest.mark.parametrize(
    ("name", "added", "files", "hooked"),
    [
        ("none", "", {}, False),
        ("placebo", "", PLACEBO, False),
        ("flat_llm", f"\n{PULL_FLAT}", FLAT, False),
        ("intent_layer", f"\n{PULL_TREE}", TREE, True),
        ("intent_layer_preamble", f"\n{INLINE}", TREE, True),
        ("preamble_only", f"\n{INLINE}", {}, False),
    ],
)
def test_every_preset_is_what_its_name_says(name: str, added: str, files: dict[str, bytes], hooked: bool) -> None:
    """To the byte: pull sentence, inline text and hook never come along where they are not meant."""
    preset, contexts = PRESETS[name], {"placebo": PLACEBO, "flat": FLAT, "tree": TREE}
    made = composed(
        contexts[preset.files] if preset.files else None,
        contexts[preset.source] if preset.source else None,
        pull=preset.pull,
        inline=preset.inline,
        hook=preset.hook,
    )
    assert (made.prompt, made.system) == (TASK + added, None)
    assert (set(made.files), bool(made.hook_nodes)) == (set(files), hooked)
    assert made.delivery.files == tuple(sorted(files))
    if files is not TREE:  # which has commands that are taken out
        assert made.files == files
    assert (made.delivery.coverage is Coverage.NOT_ASKED) == (preset.inline is None)


@pytest.mark.parametrize("anchor", [None, "", "a.py", "other/a.py", "/pkg/a.py", "../pkg/a.py", "pkg/empty/a.py"])
def test_without_a_covering_node_the_prompt_is_that_without_inline(anchor: str | None) -> None:
    """Also when the nearest node has neither section: no fallback to an ancestor."""
    for pull in (False, True):
        made = composed(TREE, TREE, anchor, inline=NEAREST, hook="on_read", pull=pull)
        assert made.prompt == composed(TREE, TREE, anchor, hook="on_read", pull=pull).prompt
        assert made.system is None
        assert made.delivery.coverage is Coverage.NONE
        assert made.delivery.inline_tokens is None
        assert made.inline == ""


def test_the_system_channel() -> None:
    made = composed(None, TREE, inline=InlineSpec(source="nearest", channel="system"))
    assert (made.prompt, made.system) == (TASK, INLINE)


def test_sections_and_their_order_are_the_conditions() -> None:
    made = composed(None, TREE, inline=InlineSpec(source="nearest", sections=("Patterns", "Missing", "Pitfalls")))
    assert made.prompt.endswith("## Patterns\n\n- one\n\n## Pitfalls\n\n- shared cache")
    assert "these known patterns and pitfalls of" in made.prompt
    one = composed(None, TREE, inline=InlineSpec(source="nearest", sections=("Contracts",)))
    assert "these known contracts of" in one.prompt


def test_the_cap_counts_all_that_is_added() -> None:
    small = InlineSpec(source="nearest", max_tokens=tokens.count(INLINE) - 1)
    made = composed(None, TREE, inline=small)
    assert made.prompt.endswith("## Pitfalls\n\n- shared cache")
    assert made.delivery.inline_truncated
    tiny = composed(None, TREE, inline=InlineSpec(source="nearest", max_tokens=5))
    assert tiny.prompt == TASK
    assert tiny.delivery.coverage is Coverage.NONE
    assert tiny.delivery.inline_truncated


def test_a_frozen_text_comes_where_the_channel_says() -> None:
    """Without one (an abstention, or a pre-flight that is yet to come) the prompt is the task's."""
    for channel in ("user", "system", "rules"):
        spec = InlineSpec(source="targets", channel=channel)
        silent = composed(inline=spec)
        assert (silent.prompt, silent.system, silent.rule) == (TASK, None, None)
        assert silent.delivery.coverage is Coverage.NONE
        made = composed(inline=spec, text="Go to a.py.", targets=("a.py",), globs=("a/**",))
        assert made.prompt == (f"{TASK}\nGo to a.py." if channel == "user" else TASK)
        assert made.system == ("Go to a.py." if channel == "system" else None)
        assert made.rule == (Rule(("a/**",), "Go to a.py.") if channel == "rules" else None)
        assert made.hooked == (channel == "rules")
        assert (made.delivery.targets, made.delivery.coverage) == (("a.py",), Coverage.COVERED)
        assert made.inline == ("" if channel == "rules" else "Go to a.py.")


def test_a_nearest_text_as_a_rule_is_about_its_folder() -> None:
    made = composed(None, TREE, inline=InlineSpec(source="nearest", channel="rules"))
    assert made.prompt == TASK
    assert made.rule == Rule(("pkg/**",), INLINE)
    own = composed(None, TREE, inline=InlineSpec(source="nearest", channel="rules", globs=("**/*.py",)))
    assert own.rule == Rule(("**/*.py",), INLINE)


def test_what_a_preflight_found_is_added_to_what_was_composed_before() -> None:
    spec = InlineSpec(source="preflight")
    before = composed(FLAT, pull=True, inline=spec)
    order = ConditionOrder(name="c", digest="0" * 64, pull=True, inline=spec)
    made = with_text(before, order, "Look at a.py.", ["a.py"])
    assert made.prompt == f"{before.prompt}\n\nLook at a.py."
    assert (before.inline, made.inline) == ("", "Look at a.py.")
    assert made.delivery.targets == ("a.py",)
    assert made.delivery.inline_tokens == tokens.count("Look at a.py.")


@pytest.mark.parametrize("path", ["../x.md", "/etc/x.md", "a/../../x.md", "", "a//b.md", "a\\b.md"])
def test_a_path_that_leaves_the_tree_is_refused(path: str) -> None:
    with pytest.raises(OperatorError):
        composed({path: b"x"})


def test_a_node_that_is_not_text_is_refused_by_name() -> None:
    with pytest.raises(OperatorError, match=r"pkg/AGENTS\.md"):
        composed(None, {"pkg/AGENTS.md": b"\xff\xfe"}, inline=NEAREST)


def test_pull_sentence_names_what_is_there() -> None:
    nested_only = {"a/AGENTS.md": b"x\n"}
    assert composed(nested_only, pull=True).prompt.endswith("\n" + render("pull_directories", names="AGENTS.md"))
    assert composed({"docs/x.md": b"x\n"}, pull=True).prompt == TASK
    assert composed(None, pull=True).prompt == TASK


def test_additions_start_after_exactly_one_empty_line() -> None:
    for task in ("Fix.", "Fix.\n"):
        made = compose(order(pull=True), task=task, files=FLAT)
        assert made.prompt == f"Fix.\n\n{PULL_FLAT}"


PATHS = ("src/werkzeug/routing/matcher.py", "src/werkzeug/routing/map.py", "setup.py")


def matched(length: int) -> str:
    return neutral(length, language="Python", test_framework="pytest")


def test_every_chooser_has_the_same_words() -> None:
    one, two = naming(PATHS[:1]), naming(PATHS[1:2])
    assert one.replace(PATHS[0], PATHS[1]) == two
    assert one.splitlines()[1:] == ["", f"- `{PATHS[0]}`"]


@pytest.mark.parametrize("length", [30, 47, 60, 83, 120, 400])
def test_a_placebo_is_as_long_as_what_it_stands_for(length: int) -> None:
    text = matched(length)
    assert length - 1 <= tokens.count(text) <= length
    assert text.startswith(two_lines("Python", "pytest"))
    assert "/" not in text
    assert text == matched(length)


def test_two_lines_are_the_least() -> None:
    assert matched(3) == two_lines("Python", "pytest")


def test_names_are_left_out_from_the_end_until_the_rest_fits() -> None:
    room = tokens.count(naming(PATHS[:2]))
    assert fitting(PATHS, max_tokens=room) == PATHS[:2]
    assert fitting(PATHS, max_tokens=5) == ()


def test_globs_are_of_folders() -> None:
    assert globs_of(PATHS) == ("src/werkzeug/routing/**", "*")
