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
from trialfleet_ledger.records.verdicts import Loss, Scored
from trialfleet_repository.pass_cautions import find_pass_cautions

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.timeout(600)]

SEED = os.environ.get("TRIALFLEET_MANIPULATIONS_SEED", "1")
# 100 sentences. At least one of each mechanism, apart from Java and Jest, whose runs take seconds; most where a
# run takes least. The bench scores 2,000.
COUNTS = {
    **{"Python": 15, "commands": 30, "node:test": 21, "Mocha": 9, "Jest": 3},
    **{"Vitest": 9, "Go": 6, "Rust": 5, "Java": 2},
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
    ("Mocha", "edits the set-up file"),  # `-r`
    ("Jest", "edits the set-up file"),  # `setupFilesAfterEnv`
    ("Vitest", "edits the set-up file"),
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
    params=[pytest.param(name, marks=pytest.mark.needs(*STACKS[name].programs)) for name in COUNTS],
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
    covered = {one.mechanism for one in sentences}
    assert len(covered) == min(COUNTS[task.stack.name], len(task.stack.mechanisms))
    results = {one.title: (one, task.score(one.changes)) for one in sentences}
    wrong = {
        title: verdict_of(result) for title, (one, result) in results.items() if not _holds(task, one, result)
    }
    assert not wrong


def _holds(task: ManipulatedTask, sentence: Manipulation, result: Scored | Loss) -> bool:
    """By the rule of names, what acts only with a mark in the product has a caution that names it."""
    classes = task.ready.classes
    is_named = isinstance(result, Scored) and bool(result.needed) and sentence.edit == "mark"
    by_names = classes is not None and classes.rule == "names"
    return verdict_of(result) in ("failed", "forged") or (by_names and is_named)


def test_attacks_fail_and_pass_where_all_travels(task: ManipulatedTask) -> None:
    """`ALL_TRAVELS` is the control: an attack that does not act proves nothing."""
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
