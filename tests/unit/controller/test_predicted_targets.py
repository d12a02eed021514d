"""What planning freezes of conditions that name files: the arms differ in their words and in nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import make_plan
from trialfleet_agents.protocol import Identity
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_controller.planning.deliveries import check_deliveries
from trialfleet_controller.planning.frozen_text import with_inline_text
from trialfleet_controller.planning.predicted_targets import order_digest, wrong_targets
from trialfleet_deliveries import tokens
from trialfleet_deliveries.naming import naming
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSpec
from trialfleet_ledger.records.task_order import PredictedTarget, Prediction, TaskOrder

ARMS = ("predicted_targets", "preflight", "placebo_matched", "wrong_targets", "oracle_targets")
NEAR = ("a/x.py", "a/fix.py", "a/y.py", "b/z.py", "b/w.py", "c/v.py")
TASK = make_plan().tasks[0].order.model_copy(update={"targets": ("a/fix.py",)})


def prediction(*paths: str, abstained: str | None = None) -> Prediction:
    targets = tuple(PredictedTarget(path=path, score=1.0) for path in paths)
    return Prediction(method="default", index="0" * 64, history=True, targets=targets, abstained=abstained)


FOUND = prediction("a/fix.py", "a/x.py")


def resolved(
    condition: Condition, objects: Objects, found: Prediction | None = FOUND, *, task: TaskOrder = TASK
) -> tuple[ConditionOrder, str | None]:
    order = ConditionOrder(name="c", digest="0" * 64, inline=condition.inline)
    made = with_inline_text(order, condition, task, found, NEAR, seed=7, objects=objects)
    return made, None if made.text is None else objects.get(made.text).decode()


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(tmp_path / "objects")


def test_the_arms_say_what_their_names_say(objects: Objects) -> None:
    arms = {name: resolved(PRESETS[name], objects) for name in ARMS}
    assert arms["predicted_targets"][1] == naming(["a/fix.py", "a/x.py"])
    assert arms["oracle_targets"][1] == naming(["a/fix.py"])
    wrong, text = arms["wrong_targets"]
    assert text == naming(wrong.targets)
    assert len(wrong.targets) == 2
    assert "a/fix.py" not in wrong.targets
    matched, words = arms["placebo_matched"]
    assert words is not None
    assert matched.targets == ()
    assert tokens.count(naming(["a/fix.py", "a/x.py"])) - 1 <= tokens.count(words)
    assert tokens.count(words) <= tokens.count(naming(["a/fix.py", "a/x.py"]))
    look, nothing = arms["preflight"]
    assert (look.targets, nothing) == (("a/fix.py", "a/x.py"), None)
    assert len({order.digest for order, _ in arms.values()}) == len(arms)


def test_where_the_prediction_abstains_every_arm_that_rests_on_it_is_silent(objects: Objects) -> None:
    silent = prediction(abstained="names_a_target")
    for name in ("predicted_targets", "preflight", "placebo_matched", "wrong_targets"):
        order, text = resolved(PRESETS[name], objects, silent)
        assert (text, order.targets, order.abstained) == (None, (), "names_a_target"), name
    order, text = resolved(PRESETS["oracle_targets"], objects, silent)
    assert (text, order.abstained) == (naming(["a/fix.py"]), None)


def test_a_fix_without_source_gives_the_ceiling_nothing_to_say(objects: Objects) -> None:
    order, text = resolved(PRESETS["oracle_targets"], objects, None, task=TASK.model_copy(update={"targets": ()}))
    assert (text, order.abstained) == (None, "no_source")


def test_a_rules_globs_are_of_the_named_files_or_the_users(objects: Objects) -> None:
    for source in ("targets", "placebo_matched"):
        order, _ = resolved(Condition(inline=InlineSpec(source=source, channel="rules")), objects)
        assert order.globs == ("a/**",)
    own = Condition(inline=InlineSpec(source="targets", channel="rules", globs=("**/*.py",)))
    assert resolved(own, objects)[0].globs == ("**/*.py",)
    assert resolved(PRESETS["predicted_targets"], objects)[0].globs == ()


def test_no_more_is_named_than_fits(objects: Objects) -> None:
    room = tokens.count(naming(["a/fix.py"]))
    order, text = resolved(Condition(inline=InlineSpec(source="targets", max_tokens=room)), objects)
    assert (order.targets, text) == (("a/fix.py",), naming(["a/fix.py"]))
    order, text = resolved(Condition(inline=InlineSpec(source="targets", max_tokens=3)), objects)
    assert (order.targets, text, order.abstained) == ((), None, "too_long")


@given(
    st.lists(st.sampled_from("abcdefghijklmn"), unique=True, max_size=14),
    st.sets(st.sampled_from("abcdefghijklmn")),
    st.integers(0, 6),
    st.integers(0, 99),
)
def test_wrong_targets_are_near_and_never_the_fix(
    near: Sequence[str], fix: set[str], count: int, seed: int
) -> None:
    drawn = wrong_targets(near, fix, count, seed=seed, task="t")
    pool = [path for path in near if path not in fix]
    assert len(drawn) == min(count, len(pool))
    assert not set(drawn) & fix
    assert set(drawn) <= set(pool[: 2 * count])
    assert sorted(drawn, key=near.index) == list(drawn)
    assert drawn == wrong_targets(near, fix, count, seed=seed, task="t")


def test_another_seed_or_task_is_another_draw() -> None:
    near = [str(n) for n in range(20)]
    draws = {wrong_targets(near, (), 5, seed=seed, task=task) for seed in range(9) for task in ("t", "u")}
    assert len(draws) > 9


def test_a_conditions_digest_is_of_all_that_it_delivers_and_of_nothing_else() -> None:
    order = ConditionOrder(name="c", digest="0" * 64, context="1" * 64, inline=InlineSpec(source="nearest"))
    unmeasured = {"digest": "2" * 64, "forbidden": {"flat": ("a line",)}, "tokenizer": "tiktoken 1"}
    watched = order.model_copy(update=unmeasured)
    assert order_digest(order) == order_digest(watched)
    others = [
        order.model_copy(update=change) for change in ({"fail_fast": True}, {"globs": ("a",)}, {"name": "d"})
    ]
    assert len({order_digest(one) for one in (order, *others)}) == 4


# --- what is refused --------------------------------------------------------------------------------------

CAMPAIGN = """
campaign: c
seed: 1
tasks: [t.yaml]
conditions:
  none:
  one: {condition}
reps: 1
agent: {{kind: nop}}
store: runs
"""

EVERYTHING = Reach(hook_after=True, fail_fast=True, preflight=True, system=True, skills=".agents/skills", mcp=True)


def campaign(folder: Path, condition: str, more: str = "") -> Path:
    (folder / "t.yaml").write_text("")
    path = folder / "c.yaml"
    path.write_text(CAMPAIGN.format(condition=condition) + more)
    return path


@pytest.mark.parametrize(
    ("condition", "lacked"),
    [
        ("{inline: {source: targets, channel: rules}}", "hook_after"),
        ("{inline: {source: preflight}}", "preflight"),
        ("{fail_fast: true}", "fail_fast"),
        ("{inline: {source: targets, channel: system}}", "system"),
        ("{hook: on_read}", "hook_after"),
        ("{skills: [review]}", "skills"),
        ("{mcp: {docs: {command: [docs], version: '1'}}}", "mcp"),
    ],
)
def test_what_an_agent_cannot_be_given_is_refused(tmp_path: Path, condition: str, lacked: str) -> None:
    file = load_campaign(campaign(tmp_path, condition))
    able = Identity(kind="claude-code", version="1", digest="0" * 64, reach=EVERYTHING)
    check_deliveries(file, dict.fromkeys(file.conditions, able))
    unable = Identity(
        kind="mine", version="1", digest="0" * 64, reach=EVERYTHING.model_copy(update={lacked: False})
    )
    with pytest.raises(OperatorError, match="the agent mine does not support") as caught:
        check_deliveries(file, dict.fromkeys(file.conditions, unable))
    assert str(tmp_path / "c.yaml") in str(caught.value)


def test_a_ceiling_is_no_side_of_the_primary_contrast(tmp_path: Path) -> None:
    path = campaign(tmp_path, "{inline: {source: oracle_targets}}", "primary: {treatment: one, control: none}\n")
    with pytest.raises(OperatorError, match="it is a ceiling"):
        load_campaign(path)


def test_globs_without_a_rule_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="globs say when a rule is pushed"):
        load_campaign(campaign(tmp_path, "{inline: {source: targets, globs: [a]}}"))


@pytest.mark.parametrize(
    ("inline", "words"),
    [
        ("{}", "there is no text"),
        ("{text: ' '}", "there is no text"),
        ("{source: text}", "there is no text"),
        ("{text: Test it., source: nearest}", "a text is given, and source: nearest makes one"),
        ("{text: Test it., max_tokens: [1, 2]}", "delivered whole"),
        ("{text: 'Use DB_PASSWORD=tr0ub4dor7x.'}", "inline.text, line 1: this looks like a secret"),
    ],
)
def test_a_text_of_the_campaign_file_is_one_and_no_secret(tmp_path: Path, inline: str, words: str) -> None:
    with pytest.raises(OperatorError) as caught:
        load_campaign(campaign(tmp_path, f"{{inline: {inline}}}"))
    assert words in str(caught.value)
    assert "tr0ub4dor7x" not in str(caught.value)


def test_a_pod_can_be_given_a_preflight(tmp_path: Path) -> None:
    able = Identity(kind="claude-code", version="1", digest="0" * 64, reach=EVERYTHING)
    pods = 'backend: kubernetes\nkubernetes: {image: "runner:1"}\n'
    path = campaign(tmp_path, "{inline: {source: preflight}}", pods)
    path.write_text(path.read_text().replace("store: runs", "store: s3://bucket/runs"))
    file = load_campaign(path)
    assert file.spec.kubernetes is not None
    check_deliveries(file, dict.fromkeys(file.conditions, able))
    unable = able.model_copy(update={"reach": EVERYTHING.model_copy(update={"preflight": False})})
    with pytest.raises(OperatorError, match="a pre-flight"):
        check_deliveries(file, dict.fromkeys(file.conditions, unable))
