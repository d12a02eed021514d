"""Selects the lines that must not reach the model under a condition: context that the condition does not
deliver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice, zip_longest

from trialfleet_deliveries.commands import strip_files
from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.delivery import compose
from trialfleet_deliveries.markdown import LineKind, scan
from trialfleet_deliveries.skills import placed
from trialfleet_deliveries.text_matching import DeclaredWords, split_words
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Cell
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.measurements import Coverage
from trialfleet_ledger.records.task_order import TaskOrder
from trialfleet_repository.trees import read_files, unpack
from trialfleet_tasks.contexts import readable_context
from trialfleet_tasks.taskfile import LoadedTask


def watched(
    task: LoadedTask, order: TaskOrder, conditions: Sequence[ConditionOrder], objects: Objects
) -> Iterator[Cell]:
    """The task's cells, with their `forbidden` lines from all its contexts that can be read, used by the campaign
    or not.

    Raises `OperatorError` for a context that cannot be delivered.
    """
    contexts = {
        name: read_files(tree)
        for name in task.contexts
        if not isinstance(tree := readable_context(task, name, objects=objects), OperatorError)
    } | {f"skill {name}": tree for name, tree in _skills(conditions, objects).items()}
    workspace = objects.get(order.workspace)  # an uncompressed tar: it holds every file's bytes unchanged

    @cache
    def in_workspace(line: str) -> bool:
        return line.encode() in workspace

    for condition in conditions:
        composed = _with_skills(_composed(task, order, condition, objects), condition, objects)
        lines = undelivered(contexts, composed, in_workspace)
        empty = composed.delivery.coverage is Coverage.NONE and not _said_later(condition)
        yield Cell(task=order.id, condition=condition.model_copy(update={"forbidden": lines}), empty=empty)


def _skills(conditions: Sequence[ConditionOrder], objects: Objects) -> dict[str, dict[str, bytes]]:
    """Skill -> path -> bytes, of all conditions; a name that two of them use for different folders counts once."""
    found = {name: skill.tree for condition in conditions for name, skill in condition.skills.items()}
    return {name: _bytes(objects, tree) for name, tree in found.items()}


def _bytes(objects: Objects, tree: str) -> dict[str, bytes]:
    return read_files(unpack(objects.get(tree)))


def _with_skills(composed: Composed, condition: ConditionOrder, objects: Objects) -> Composed:
    own = placed({name: unpack(objects.get(skill.tree)) for name, skill in condition.skills.items()})
    return replace(composed, files={**composed.files, **read_files(own)})


def _said_later(condition: ConditionOrder) -> bool:
    """Whether each attempt makes the text itself."""
    return condition.inline is not None and condition.inline.source == "preflight"


def _composed(task: LoadedTask, order: TaskOrder, condition: ConditionOrder, objects: Objects) -> Composed:
    """The prompt and files that the runner will deliver."""

    def tree(digest: str | None) -> dict[str, bytes] | None:
        return None if digest is None else _bytes(objects, digest)

    try:
        return compose(
            condition,
            task=objects.get(order.prompt).decode(),
            files=tree(condition.files),
            context=tree(condition.context),
            text=None if condition.text is None else objects.get(condition.text).decode(),
        )
    except OperatorError as error:
        raise OperatorError(error.message, where=f"{task.where}: {error.where}", hint=error.hint) from None


MOST, LINE_CHARS = 5, 160  # lines per context, and characters of a line
# A shorter sentence ("Test framework: pytest.") could be the model's own words, and its cell would be lost.
MIN_CHARS, MIN_WORDS = 60, 8


def undelivered(
    contexts: Mapping[str, Mapping[str, bytes]], composed: Composed, in_workspace: Callable[[str], bool]
) -> dict[str, tuple[str, ...]]:
    """Context name -> at most five of its lines that stand in nothing which `composed` delivers, nor in the
    workspace, where an agent may read them. `contexts`: path -> bytes of each of the task's trees.

    A context has no such lines if all its long lines are delivered, possibly under another name: then nothing
    distinguishes it. The same contexts give the same lines.
    """
    said = _said(composed)
    found = {name: _lines(tree, said, in_workspace) for name, tree in sorted(contexts.items())}
    return {name: lines for name, lines in found.items() if lines}


def _lines(tree: Mapping[str, bytes], said: Sequence[str], in_workspace: Callable[[str], bool]) -> tuple[str, ...]:
    files = strip_files(tree).files  # as any other condition would deliver them
    spread = _in_turn([_sentences(files[path]) for path in sorted(files)])
    free = (line for line in dict.fromkeys(spread) if not _is_said(line, said) and not in_workspace(line))
    return tuple(islice(free, MOST))


def _in_turn(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """The first of each file, then the second of each: a leak may be of one file alone."""
    return (line for line in chain.from_iterable(zip_longest(*columns)) if line is not None)


def _sentences(data: bytes) -> list[str]:
    """Long lines of prose, the longest first; code is left out, for a model may write the same."""
    lines = (line.text.strip() for line in scan(data.decode(errors="replace")) if line.kind is LineKind.PROSE)
    telling = (line for line in lines if len(line) >= MIN_CHARS and len(line.split()) >= MIN_WORDS)
    return sorted((line[:LINE_CHARS].rstrip() for line in telling if "\ufffd" not in line), key=len, reverse=True)


def _said(composed: Composed) -> list[str]:
    """The words of every text that `composed` delivers, as they are and without what agents strip: that may join
    lines."""
    files = (data.decode(errors="replace") for data in composed.files.values())
    rule = composed.rule.text if composed.rule else ""
    texts = [composed.prompt, composed.system or "", rule, *files, *composed.hook_nodes.values()]
    each = [DeclaredWords(text) for text in texts if text]
    return [_in_a_row(words) for text in each for words in (text.words, text.required_words)]


def _is_said(line: str, said: Sequence[str]) -> bool:
    """Whether its words are; the last of a line may be cut."""
    words = _in_a_row(split_words(line))
    return any(words in text for text in said)


def _in_a_row(words: Sequence[str]) -> str:
    return f" {' '.join(words)}"
