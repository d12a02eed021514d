"""Which lines of a task's other contexts the gateway watches for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.composing import compose_planned
from trialfleet_controller.planning.canaries import MIN_CHARS, MIN_WORDS, MOST, undelivered
from trialfleet_deliveries.composed import Composed
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.records.condition_order import ConditionOrder

ROOT = Path(__file__).parents[3]
TASK = "The test fails: assert 1 == 2.\n"
TOP = "Prices are floats in euros, kept in the folder shop/pricing of this repository."
PITFALL = "- `total` takes its discount in percent: a fraction such as 0.1 is a tenth of a percent."
HISTORY = "The rules came from the old till in 2009, and nobody has dared to round them otherwise since."
OWN = "Vouchers are looked up by their number, and one that has been used is never looked up again."
TREE = {
    "CLAUDE.md": f"# Shop\n\n{TOP}\n".encode(),
    "shop/AGENTS.md": f"# Rules\n\n{HISTORY}\n\n## Pitfalls\n\n{PITFALL}\n".encode(),
}
FLAT = {"CLAUDE.md": f"# Shop\n\n{TOP}\n\n{PITFALL}\n\n{OWN}\n".encode()}
CONTEXTS = {"tree": TREE, "flat": FLAT, "placebo": {"CLAUDE.md": b"Language: Python.\n"}}


def composed(condition: Condition, contexts: dict[str, dict[str, bytes]] = CONTEXTS) -> Composed:
    order = ConditionOrder(
        name="c", digest="0" * 64, pull=condition.pull, hook=condition.hook, inline=condition.inline
    )
    return compose_planned(
        order,
        task=TASK,
        files=contexts[condition.files] if condition.files else None,
        context=contexts[condition.source] if condition.source else None,
        anchor="shop/rules.py",
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("none", {"flat": (OWN, PITFALL, TOP), "tree": (TOP, HISTORY, PITFALL)}),
        ("placebo", {"flat": (OWN, PITFALL, TOP), "tree": (TOP, HISTORY, PITFALL)}),
        ("flat_llm", {"tree": (HISTORY,)}),
        ("intent_layer", {"flat": (OWN,)}),
        ("intent_layer_preamble", {"flat": (OWN,)}),
        ("preamble_only", {"flat": (OWN, TOP), "tree": (TOP, HISTORY)}),
    ],
)
def test_every_line_that_a_preset_does_not_deliver(name: str, wanted: dict[str, tuple[str, ...]]) -> None:
    assert undelivered(CONTEXTS, composed(PRESETS[name]), lambda _: False) == wanted


def test_what_the_hook_pushes_is_delivered() -> None:
    hooked = composed(Condition(hook="on_read"))
    assert undelivered(CONTEXTS, hooked, lambda _: False)["tree"] == (TOP, HISTORY)


def test_what_the_agent_may_read_in_its_workspace_proves_nothing() -> None:
    found = undelivered(CONTEXTS, composed(Condition()), lambda line: line in (TOP, OWN))
    assert found == {"flat": (PITFALL,), "tree": (HISTORY, PITFALL)}


def test_code_commands_and_short_lines_are_what_a_model_could_say_itself() -> None:
    code = "    total(prices=[1.0, 2.0], discount=10, rounding=None, voucher=None, currency='EUR', till=1)"
    command = "Before you finish, run `make test` and wait until every single test of it has passed."
    text = f"# Notes\n\nTests run under pytest.\n\n{command}\n\n{code}\n\n```\n{code.strip()}\n```\n"
    contexts = {"other": {"CLAUDE.md": text.encode()}}
    assert undelivered(contexts, composed(Condition(), contexts), lambda _: False) == {}


def test_few_lines_of_every_file_and_cut_ones_too() -> None:
    words = " ".join(["word"] * 60)
    tree = {f"{n}/AGENTS.md": f"{n}a {words}\n\n{n}b {words} and more\n".encode() for n in range(3)}
    lines = undelivered({"other": tree}, composed(Condition()), lambda _: False)["other"]
    assert [line.split()[0] for line in lines] == ["0a", "1a", "2a", "0b", "1b"]
    assert max(map(len, lines)) <= 160


def test_what_is_no_text_has_no_lines() -> None:
    tree = {".claude/skills/picture.md": b"\xff\xfe " + b"some words that are not really words " * 4}
    assert undelivered({"other": tree}, composed(Condition()), lambda _: False) == {}


@given(
    files=st.dictionaries(st.sampled_from(["CLAUDE.md", "a/AGENTS.md", "b/AGENTS.md"]), st.text(max_size=600)),
    delivered=st.sampled_from([Condition(), Condition(files="tree"), Condition(hook="on_read")]),
)
def test_a_line_is_long_of_the_context_and_not_delivered(files: dict[str, str], delivered: Condition) -> None:
    tree = {path: text.encode(errors="ignore") for path, text in files.items()}
    made = composed(delivered)
    for lines in undelivered({"other": tree}, made, lambda _: False).values():
        assert 0 < len(lines) <= MOST
        for line in lines:
            assert len(line) >= MIN_CHARS
            assert len(line.split()) >= MIN_WORDS
            assert any(line in text.expandtabs(4) or line in text for text in files.values())
            assert line not in made.prompt
            assert all(line not in data.decode() for data in made.files.values())


def test_the_shipped_flat_contexts_and_trees_can_be_told_apart() -> None:
    """Of every shipped repository, or its canary could say nothing."""
    folders = [f for base in ("tasks/contexts", "tasks/quickstart/contexts") for f in (ROOT / base).iterdir()]
    assert len(folders) >= 6
    for folder in folders:
        contexts = {
            kind: {str(p.relative_to(folder / kind)): p.read_bytes() for p in (folder / kind).rglob("*.md")}
            for kind in ("flat", "tree", "placebo")
        }
        bare = undelivered(contexts, composed(Condition()), lambda _: False)
        assert {"flat", "tree"} <= bare.keys(), folder
        assert "flat" in undelivered(contexts, composed(Condition(files="tree"), contexts), lambda _: False), (
            folder
        )
