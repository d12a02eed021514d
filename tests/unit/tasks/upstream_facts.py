"""What the tests of the upstream tasks have to know of the repositories, as facts: names and digests, no code.

Written anew, where the repositories can be had, by

    python -m tests.unit.tasks.upstream_facts URL=DIR [URL=DIR ...]
"""

from __future__ import annotations

import difflib
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

from trialfleet_deliveries.markdown import select
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import GitSource
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import Tree, changed
from trialfleet_tasks.settings import Settings, mirror_map, mirror_of
from trialfleet_tasks.sources.materialise import Trees, materialise
from trialfleet_tasks.taskfile import LoadedTask, load_task_file
from trialfleet_tasks.variants import variants

TASKS = Path(__file__).parents[3] / "tasks"
FACTS = Path(__file__).with_name("upstream_facts.json")
FILES = tuple(TASKS / f"{name}.yaml" for name in ("graphiti", "ansible", "pdm"))
SHORTEST_LINE = 10  # an added line that is shorter says nothing by itself

_SPAN = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")


class TaskFacts(TypedDict):
    """`targets`: source files that the fix changes; `added`: digests of the lines that it adds."""

    targets: list[str]
    added: list[str]


class Facts(TypedDict):
    """`names`: task file -> folder of a context node ("": the root) -> the names in the pitfalls of all contexts
    that the Python files below that folder hold, before the fix of every task."""

    tasks: dict[str, TaskFacts]
    names: dict[str, dict[str, list[str]]]


def named(text: str) -> set[str]:
    """Identifiers inside backticks."""
    return {name for span in _SPAN.findall(text) for name in _NAME.findall(span)}


def pitfalls(text: str) -> list[str]:
    """The list items of the section, each with the lines that continue it."""
    return [
        " ".join(item.split())
        for section in select(text, ["Pitfalls"])
        for item in re.split(r"^- ", section.body, flags=re.MULTILINE)[1:]
    ]


def context_texts(task: LoadedTask, kind: str) -> dict[str, str]:
    """Path in the context tree -> text."""
    base = task.folder / task.contexts[kind]
    return {str(path.relative_to(base)): path.read_text() for path in sorted(base.rglob("*.md"))}


def line_digest(words: list[str]) -> str:
    """Short, of a line with its blanks collapsed, after its number of words."""
    return f"{len(words)}:{sha256(' '.join(words).encode()).hexdigest()[:12]}"


def task_facts(task: LoadedTask, trees: Trees) -> TaskFacts:
    """Raises `OperatorError` as `variants` does."""
    return TaskFacts(
        targets=list(variants(task, trees).targets),
        added=sorted({line_digest(line.split()) for line in _added_lines(trees)}),
    )


def names_in(task: LoadedTask, tree: Tree) -> dict[str, set[str]]:
    """Folder of a context node -> names of pitfalls that are below it."""
    texts = {**context_texts(task, "flat"), **context_texts(task, "tree")}
    every = (*texts.values(), *context_texts(task, "flat").values())
    wanted = {name for text in every for item in pitfalls(text) for name in named(item)}
    return {folder: wanted & _words(tree, folder) for folder in {"", *map(posixpath.dirname, texts)}}


def _words(tree: Tree, below: str) -> set[str]:
    prefix = f"{below}/" if below else ""
    sources = (e.data for path, e in tree.items() if path.endswith(".py") and path.startswith(prefix))
    return {name for data in sources for name in _NAME.findall(data.decode(errors="replace"))}


def _added_lines(trees: Trees) -> Iterator[str]:
    for file in changed(trees.pre_fix, trees.fixed):
        if not file.endswith(".py"):
            continue
        old, new = (
            tree[file].data.decode().splitlines() if file in tree else [] for tree in (trees.pre_fix, trees.fixed)
        )
        kept = set(old)
        for line in difflib.unified_diff(old, new, n=0, lineterm=""):
            if line.startswith("+") and not line.startswith("+++") and line[1:] not in kept:
                plain = " ".join(line[1:].split())
                if len(plain) >= SHORTEST_LINE:
                    yield plain


def main(mirrors: tuple[str, ...]) -> None:
    folders = mirror_map(Settings(), mirrors)
    facts = Facts(tasks={}, names={})
    found: dict[str, list[dict[str, set[str]]]] = {}
    for task in (task for file in FILES for task in load_task_file(file).tasks):
        assert isinstance(task.source, GitSource)
        mirror = mirror_of(task.source.url, folders)
        try:
            if mirror is not None:
                trees = materialise(task, cache=Cache.default(), mirrors=folders)
                facts["tasks"][task.id] = task_facts(task, trees)
                found.setdefault(task.file.stem, []).append(names_in(task, trees.pre_fix))
        except OperatorError as error:  # the mirror lacks some of the commits: those have no facts
            print(f"{task.id}: {error}", file=sys.stderr)
    for name, of_trees in found.items():
        facts["names"][name] = {
            folder: sorted(set.intersection(*(names[folder] for names in of_trees))) for folder in of_trees[0]
        }
    FACTS.write_text(_in_lines(facts) + "\n")


def _in_lines(value: object, depth: int = 2) -> str:
    """JSON whose objects down to `depth` have a line per key."""
    if not isinstance(value, dict) or depth == 0:
        return json.dumps(value, sort_keys=True)
    rows = (f"{json.dumps(key)}: {_in_lines(child, depth - 1)}" for key, child in sorted(value.items()))
    return "{\n" + ",\n".join(rows) + "\n}"


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
