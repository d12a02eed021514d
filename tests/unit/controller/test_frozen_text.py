"""The inline text of a task under a condition, decided once: what the order says of it, and what is delivered."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.support.plans import make_plan
from trialfleet_controller.planning.frozen_text import with_inline_text
from trialfleet_controller.planning.predicted_targets import order_digest
from trialfleet_deliveries import tokens
from trialfleet_deliveries.composed import Rule
from trialfleet_deliveries.delivery import compose
from trialfleet_deliveries.naming import framed
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import Channel, ConditionOrder, InlineSpec
from trialfleet_ledger.records.measurements import Coverage
from trialfleet_repository.trees import TreeEntry, pack

CHANNELS: tuple[Channel, ...] = get_args(Channel)
ITEM = "- Prices are whole cents, and every discount is a share of one hundred."
TREE = {
    "CLAUDE.md": b"# Shop\n",
    "shop/AGENTS.md": f"## Contracts\n\n- Names are unique.\n\n## Pitfalls\n\n{ITEM}\n".encode(),
    "silent/AGENTS.md": b"# Nothing of note\n",
}
FIRST = framed(f"## Pitfalls\n\n{ITEM}", "shop", ["Pitfalls", "Contracts"])
WHOLE = framed(f"## Pitfalls\n\n{ITEM}\n\n## Contracts\n\n- Names are unique.", "shop", ["Pitfalls", "Contracts"])
LONG = 1500


def decided(objects: Objects, spec: InlineSpec, anchor: str | None) -> ConditionOrder:
    tree = pack({path: TreeEntry(data) for path, data in TREE.items()})
    order = ConditionOrder(name="c", digest="0" * 64, context=objects.put(tree), inline=spec)
    task = make_plan().tasks[0].order.model_copy(update={"anchor": anchor})
    return with_inline_text(order, Condition(inline=spec), task, None, (), seed=7, objects=objects)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_text_of_the_campaign_file_is_delivered_as_it_is(tmp_path: Path, channel: Channel) -> None:
    text = "Run the tests before you answer.\n\n- Each of them.  \n" * 3
    objects = Objects(tmp_path)
    order = decided(objects, InlineSpec(text=text, channel=channel, max_tokens=1), None)
    assert (order.text_tokens, order.node, order.truncated) == (tokens.count(text), None, False)
    composed = compose(order, task="Mend it.", text=text)
    assert composed.prompt == (f"Mend it.\n\n{text}" if channel == "user" else "Mend it.")
    assert composed.system == (text if channel == "system" else None)
    assert composed.rule == (Rule(("**",), text) if channel == "rules" else None)
    other = decided(objects, InlineSpec(text=f"{text} ", channel=channel), None)
    assert order.digest != other.digest
    assert (composed.delivery.inline_tokens, composed.delivery.coverage) == (tokens.count(text), Coverage.COVERED)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(
    ("anchor", "max_tokens", "text", "node", "truncated"),
    [
        ("shop/cart.py", LONG, WHOLE, "shop/AGENTS.md", False),
        ("shop/cart.py", tokens.count(WHOLE) - 1, FIRST, "shop/AGENTS.md", True),
        ("shop/cart.py", 3, None, "shop/AGENTS.md", True),
        ("silent/a.py", LONG, None, "silent/AGENTS.md", False),
        ("other/a.py", LONG, None, None, False),
        (None, LONG, None, None, False),
    ],
)
def test_what_is_decided_is_what_is_delivered(
    tmp_path: Path,
    channel: Channel,
    anchor: str | None,
    max_tokens: int,
    text: str | None,
    node: str | None,
    truncated: bool,
) -> None:
    objects = Objects(tmp_path)
    order = decided(objects, InlineSpec(source="nearest", channel=channel, max_tokens=max_tokens), anchor)
    length = None if text is None else tokens.count(text)
    assert (order.text_tokens, order.node, order.truncated) == (length, node, truncated)
    assert order.digest == order_digest(order)
    stored = None if order.text is None else objects.get(order.text).decode()
    assert stored == text
    made = compose(order, task="Fix it.", context=TREE, text=stored)
    assert made.prompt == (f"Fix it.\n\n{text}" if text and channel == "user" else "Fix it.")
    assert made.system == (text if channel == "system" else None)
    assert made.rule == (Rule(("shop/**",), text) if text and channel == "rules" else None)
    record = made.delivery
    assert (record.inline_tokens, record.node, record.inline_truncated) == (length, node, truncated)
    assert record.coverage is (Coverage.COVERED if text else Coverage.NONE)
    assert record.tokenizer == order.tokenizer == tokens.name()


def test_the_globs_of_a_rule_may_be_the_users(tmp_path: Path) -> None:
    spec = InlineSpec(source="nearest", channel="rules", globs=("**/*.py",))
    assert decided(Objects(tmp_path), spec, "shop/cart.py").globs == ("**/*.py",)


def test_a_condition_without_inline_text_stays_as_it_is(tmp_path: Path) -> None:
    """Also one whose text its agent cannot be given."""
    order = ConditionOrder(name="c", digest="0" * 64)
    condition = Condition(inline=InlineSpec(source="oracle_targets"), delivery="best_effort")
    task = make_plan().tasks[0].order.model_copy(update={"targets": ("a.py",)})
    assert with_inline_text(order, condition, task, None, (), seed=7, objects=Objects(tmp_path)) == order


def test_an_order_whose_text_nobody_has_decided_is_refused() -> None:
    order = ConditionOrder(name="near", digest="0" * 64, inline=InlineSpec(source="nearest"))
    with pytest.raises(OperatorError, match="does not have the inline text") as caught:
        compose(order, task="Fix it.", context=TREE)
    assert caught.value.where == "condition near"
