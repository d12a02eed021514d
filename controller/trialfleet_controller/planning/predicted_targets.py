"""Predicted edit targets, at planning time: from the source repository before the fix, as text for the plan.

The predictor is an extra, imported when a campaign asks for it. It reads the tree and the history up to the commit
before the fix and nothing later; where there is no history, the tree alone. What it was asked of is kept by digest
among the objects, and no attempt is granted it.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_agents.context_files import strip
from trialfleet_deliveries import texts
from trialfleet_deliveries.anchor import frames_as_words
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.operator_errors import REINSTALL
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.task_order import PredictedTarget, Prediction
from trialfleet_ledger.removal import remove
from trialfleet_ledger.task import GitSource
from trialfleet_repository.trees import pack
from trialfleet_targets.cache import UNUSED_S, TargetsCache, list_entries
from trialfleet_tasks.sources import git
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.taskfile import LoadedTask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trialfleet_repository.cache import Cache
    from trialfleet_tasks.variants import Variants

METHOD = "default"
_NEEDED = ("tree_sitter", "numpy", "scipy", "snowballstemmer")


def require(where: str) -> None:
    """Raises `OperatorError` when the predictor is not installed."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise OperatorError(
            "predicting edit targets needs packages of trialfleet's that are not installed",
            where=where,
            hint=REINSTALL,
        )


@dataclass(frozen=True)
class TaskHistory:
    """A git folder, the commit in it to read, and whether that commit has a past."""

    folder: Path
    commit: str | None
    history: bool


@dataclass
class Predictor:
    """Predicts the edit targets of one task. `near`: after `predict`, the files that ranked highest, best first,
    then the files in the same folders."""

    task: LoadedTask
    cache: Cache
    objects: Objects
    mirrors: Mapping[str, Path]
    near: tuple[str, ...] = ()

    def predict(self, prompt: str, variants: Variants) -> Prediction:
        """Predict from the task's text. Frames in a failing test's output count as words, not as named files. Only
        files in the workspace are returned. Raises `OperatorError`."""
        from trialfleet_targets.errors import TargetsError
        from trialfleet_targets.index import index_at
        from trialfleet_targets.methods import ranker
        from trialfleet_targets.predict import predict

        past = past_of(self.task, cache=self.cache, mirrors=self.mirrors)
        try:
            index = index_at(past.folder, past.commit, cache=self.cache.targets)
            asked = frames_as_words(prompt) if self.task.spec.prompt_source == "failing_test" else prompt
            found = predict(index, asked, method=METHOD)
            ranked = [target.path for target in ranker(METHOD, index).rank(asked)]
        except TargetsError as error:
            raise OperatorError(error.message, where=self.task.where, hint=error.hint) from None
        there = [target for target in found.targets if target.path in variants.workspace]
        tests = {path for path, test in zip(index.paths, index.tests, strict=True) if test}
        self.near = tuple(
            path
            for path in _and_beside(ranked, [path for path in index.paths if path not in tests])
            if path in variants.workspace
        )
        gone = bool(found.targets) and not there
        return Prediction(
            method=found.method,
            commit=found.commit if past.history else None,
            index=self.objects.put(index.packed()),
            history=past.history,
            targets=tuple(
                PredictedTarget(
                    path=target.path,
                    score=target.score,
                    parts=target.parts,
                    symbols=tuple(symbol.name for symbol in target.symbols),
                )
                for target in there
            ),
            abstained="not_in_workspace" if gone else None if found.abstained is None else found.abstained.value,
            confidence=found.confidence,
            why=found.why,
            hit=bool({target.path for target in there} & set(variants.targets)) if there else None,
        )


def past_of(task: LoadedTask, *, cache: Cache, mirrors: Mapping[str, Path]) -> TaskHistory:
    """The commit before the fix with its history if available, otherwise its tree as the only commit."""
    source = task.source
    if isinstance(source, GitSource):
        found = git.with_history(source.url, source.pre_fix_commit, cache=cache, mirrors=mirrors)
        if found is not None:
            return TaskHistory(found, source.pre_fix_commit, history=True)
    trees = materialise(task, cache=cache, mirrors=mirrors)
    tree, _ = strip(trees.pre_fix, task.repo.strip_extra)
    folder = cache.targets / "trees" / f"{sha256(pack(tree))}.git"
    folder.parent.mkdir(exist_ok=True)
    git.orphan(tree, folder)
    with suppress(OSError):
        os.utime(folder)  # marks the tree as used, so that `sweep_trees` keeps it
    return TaskHistory(folder, None, history=False)


def sweep_trees(cache: TargetsCache, *, now: float) -> int:
    """Remove trees without history that were not used for 30 days, and leftovers of killed writers. `now`: Unix
    seconds. Returns the number removed."""
    removed = 0
    for path in list_entries(cache, "trees"):
        with suppress(FileNotFoundError):  # another process sweeps
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_mtime < now - UNUSED_S:
                remove(path)
                removed += 1
    return removed


def _and_beside(ranked: Sequence[str], source: Sequence[str]) -> tuple[str, ...]:
    """`ranked`, then the other files of their folders, by rank and then by name."""
    beside = [
        path for best in ranked for path in sorted(source) if path.rpartition("/")[0] == best.rpartition("/")[0]
    ]
    return tuple(dict.fromkeys([*ranked, *beside]))


def wrong_targets(
    near: Sequence[str], fix: Collection[str], count: int, *, seed: int, task: str
) -> tuple[str, ...]:
    """`count` plausible files that the fix does not change, drawn from the nearest 2 × `count` such files. The
    draw depends on seed and task alone; the result keeps the order of `near`.

    >>> wrong_targets(["a", "b", "c", "d"], {"b"}, 1, seed=7, task="t") in (("a",), ("c",))
    True
    """
    pool = [path for path in near if path not in fix][: 2 * count]
    drawn = random.Random(digest([seed, task, "wrong targets"])).sample(range(len(pool)), min(count, len(pool)))  # noqa: S311
    return tuple(pool[place] for place in sorted(drawn))


def content_digest(order: ConditionOrder) -> str:
    """Digest of what is delivered; the condition's name does not matter."""
    return order_digest(order.model_copy(update={"name": "content"}))


def order_digest(order: ConditionOrder) -> str:
    """Digest of what is delivered, with the texts around it."""
    return digest(
        order.model_dump(mode="json", exclude={"forbidden", "digest", "undelivered", "tokenizer"})
        | {"texts": texts.digest()}
    )
