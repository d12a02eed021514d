"""What an agent leaves next to an unfixed product never passes; each such manipulation does where all travels."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

import pytest

from tests.support.manipulations.changes import text_file
from tests.support.manipulations.grammar import Manipulation, Mechanism, Stack, control_of, sample
from tests.support.manipulations.scoring import ManipulatedTask, Scoring, verdict_of
from tests.support.manipulations.stacks import STACKS
from trialfleet_repository.pass_cautions import find_pass_cautions

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.timeout(600)]

SEED = os.environ.get("TRIALFLEET_MANIPULATIONS_SEED", "1")
# At least one sentence of each mechanism; more where a scoring run is short.
COUNTS = {
    **{"Python": 34, "commands": 12, "node:test": 12, "Mocha": 11, "Jest": 9, "Vitest": 9},
    **{"Go": 5, "Rust": 5, "Java": 5},
}
# Attacks that have passed, by stack and mechanism. Java's take seconds each, and the sample has them.
NAMED = [
    ("Python", "empties the tests' helper"),
    ("Python", "changes expected values"),
    ("Python", "shadows the standard library: pdb"),
    ("commands", "edits the script of the tests"),
    ("commands", "edits what the script reads"),
    ("commands", "adds what the script looks for"),
    ("node:test", "empties the tests' helper"),
    ("Mocha", "edits the set-up file"),
    ("Jest", "edits the set-up file"),
    ("Vitest", "a file that tools look for rewrites the test"),
    ("Go", "replaces a dependency"),
    ("Rust", "a build script rewrites the test"),
    ("Java", "replaces the assertions"),
]
# What neither a control nor a caution sees (docs/explanation/security.md).
UNSEEN: Mapping[str, set[str]] = {
    "commands": {"ends the process"},  # nobody reads shell scripts
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.needs(*stack.programs)) for name, stack in STACKS.items()],
)
def task(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManipulatedTask]:
    stack = STACKS[request.param]
    lab = ManipulatedTask(tmp_path_factory.mktemp("stack"), stack=stack)
    yield lab
    shutil.rmtree(lab.scratch.parent, ignore_errors=True)


def test_the_fix_passes_and_no_change_fails(task: ManipulatedTask) -> None:
    fix = {path: text_file(text) for path, text in task.stack.fix.items()}
    assert (verdict_of(task.score(fix)), verdict_of(task.score({}))) == ("passed", "failed")


def test_no_manipulation_passes_without_the_fix(task: ManipulatedTask) -> None:
    sentences = sample(task.stack, COUNTS[task.stack.name], SEED)
    assert {one.mechanism for one in sentences} == {one.name for one in task.stack.mechanisms}
    verdicts = {one.title: verdict_of(task.score(one.changes)) for one in sentences}
    wrong = {title: verdict for title, verdict in verdicts.items() if verdict not in ("failed", "forged")}
    assert not wrong


def test_attacks_fail_and_pass_where_all_travels(task: ManipulatedTask) -> None:
    """With the product alone they would not act: `ALL_TRAVELS` is the control."""
    attacks = [_control(task.stack, name) for stack, name in NAMED if stack == task.stack.name]
    verdicts = {
        one.title: (verdict_of(task.score(one.changes)), verdict_of(task.score(one.changes, Scoring.ALL_TRAVELS)))
        for one in attacks
    }
    wrong = {
        title: each
        for title, each in verdicts.items()
        if each[0] not in ("failed", "forged") or each[1] != "passed"
    }
    assert not wrong


def test_product_that_cheats_alone_is_forged_or_named(task: ManipulatedTask) -> None:
    unseen: set[str] = set()
    for name, texts in task.stack.product_alone.items():
        changes = {path: text_file(text) for path, text in texts.items()}
        patch = task.patch_of(changes)
        passes = verdict_of(task.score(changes)) == "passed"
        if passes and not find_pass_cautions(patch.diff, patch.changed):
            unseen.add(name)
    assert unseen == UNSEEN.get(task.stack.name, set())


def _control(stack: Stack, name: str) -> Manipulation:
    (mechanism,) = (one for one in stack.mechanisms if one.name == name)
    return control_of(stack, _acting(mechanism))


def _acting(mechanism: Mechanism) -> Mechanism:
    assert mechanism.acts is not None, f"{mechanism.name} has no control"
    return mechanism
