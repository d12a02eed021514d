"""Everything an attempt needs before its agent starts, from its grants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_runner import environment, workspace
from trialfleet_runner.attempt.inputs import Inputs
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.attempt.scratch import Scratch
from trialfleet_runner.context.delivery import Composed, compose
from trialfleet_runner.context.push_on_read import RULES
from trialfleet_runner.contract import Grants, HaltScope, LossClass
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.exclusions import Exclusions
from trialfleet_runner.trees import Entry
from trialfleet_runner.workspace import Template


@dataclass(frozen=True)
class Ready:
    """`task`: its frozen words. `given`: what the agent gets (baseline of its patch); `pristine`: what is
    scored."""

    task: str
    composed: Composed
    environment: Path
    given: Template
    pristine: Template
    exclusions: Exclusions


def prepare(grants: Grants, inputs: Inputs, *, isolation: str) -> Ready:
    """Raises `Lost(setup)` when the order cannot be met; it halts the task when no other attempt could either.
    `isolation` is the agent's sandbox's name."""
    try:
        task, condition = grants.task, grants.condition
        words = inputs.text(task.prompt)
        composed = compose(
            condition,
            task=words,
            files=_bytes(inputs.tree(condition.files)),
            context=_bytes(inputs.tree(condition.context)),
            anchor=task.anchor,
            text=None if condition.text is None else inputs.text(condition.text),
        )
        built = _environment(grants, inputs, isolation)
        given = inputs.template(task.workspace, composed.files)
        pristine = inputs.template(task.pristine)
    except (OperatorError, ValueError) as error:
        raise Lost(LossClass.SETUP, str(error), halt=HaltScope.TASK) from error
    exclusions = Exclusions.of(given.manifest, task.test_files, task.pythonpath, task.travelling_tests)
    return Ready(words, composed, built, given, pristine, exclusions)


def lay_out(ready: Ready, scratch: Scratch) -> None:
    """Give the agent its own copy of the workspace, an empty HOME and the hook's nodes."""
    workspace.clone(ready.given, scratch.workspace)
    (scratch.home / "tmp").mkdir(parents=True)
    for path, text in ready.composed.hook_nodes.items():
        target = scratch.context / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    write_rule(ready.composed, scratch)


def write_rule(composed: Composed, scratch: Scratch) -> None:
    """Where the on-read hook looks for it."""
    if composed.rule is not None:
        scratch.context.mkdir(parents=True, exist_ok=True)
        rule = {"globs": composed.rule.globs, "text": composed.rule.text}
        (scratch.context / RULES).write_text(json.dumps([rule]))


def shows_context(grants: Grants, ready: Ready) -> bool:
    """Whether the agent's hook will have a folder to read from."""
    inline = grants.condition.inline
    return ready.composed.hooked or (inline is not None and inline.channel == "rules")


def _environment(grants: Grants, inputs: Inputs, isolation: str) -> Path:
    """An environment that somebody changed is built anew: no agent may leave anything to the next. Another
    container sees what the image holds, and nothing that is built here."""
    ref = grants.task.environment
    if isolation == "container":
        return environment.baked(ref)
    lock, for_other_uid = inputs.get(ref.lock), isolation == "uid"
    built = environment.build(ref, lock, cache=inputs.cache, for_other_uid=for_other_uid)
    if environment.unchanged(built):
        return built
    environment.retire(built)
    return environment.build(ref, lock, cache=inputs.cache, for_other_uid=for_other_uid)


def _bytes(tree: Mapping[str, Entry]) -> dict[str, bytes] | None:
    return {path: entry.data for path, entry in tree.items()} or None
