"""What each condition's gateway watches for: the task's own context that the condition does not deliver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from trialfleet_runner.context.delivery import Composed, compose
from trialfleet_runner.context.undelivered import undelivered
from trialfleet_runner.contexts import context_tree
from trialfleet_runner.contract import ConditionOrder, TaskOrder
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.objects import Objects
from trialfleet_runner.taskfile import LoadedTask
from trialfleet_runner.trees import unpack


def watched(
    task: LoadedTask, order: TaskOrder, conditions: Sequence[ConditionOrder], objects: Objects
) -> Iterator[ConditionOrder]:
    """The task's conditions with their `forbidden` lines, of all its contexts, in the campaign or not.

    Raises `OperatorError` for a context that cannot be read or delivered.
    """
    contexts = {
        name: {path: entry.data for path, entry in context_tree(task, name, objects=objects).items()}
        for name in task.contexts
    }
    workspace = objects.get(order.workspace)  # a tar as it is: every file lies in it whole

    @cache
    def in_workspace(line: str) -> bool:
        return line.encode() in workspace

    for condition in conditions:
        lines = undelivered(contexts, _composed(task, order, condition, objects), in_workspace)
        yield condition.model_copy(update={"forbidden": lines})


def _composed(task: LoadedTask, order: TaskOrder, condition: ConditionOrder, objects: Objects) -> Composed:
    """What the runner will deliver."""

    def tree(digest: str | None) -> dict[str, bytes] | None:
        return None if digest is None else {p: e.data for p, e in unpack(objects.get(digest)).items()}

    try:
        return compose(
            condition,
            task=objects.get(order.prompt).decode(),
            files=tree(condition.files),
            context=tree(condition.context),
            anchor=order.anchor,
            text=None if condition.text is None else objects.get(condition.text).decode(),
        )
    except OperatorError as error:
        raise OperatorError(error.message, where=f"{task.where}: {error.where}", hint=error.hint) from None
