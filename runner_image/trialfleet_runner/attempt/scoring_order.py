"""In which order an agent's changes are scored, and what the runs together say: a pass has a cause. Pure.

A, the product's changes alone, decides nearly every trial. B, with the other changes, runs only if A fails and
the others may matter; B has all that travels and then judges the trial. C, the other changes alone, runs only if B
passes: if they alone let the tests pass, and the tree without any change fails right after that, the pass is
forged. A run that is ended for its time or its resources has failed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from trialfleet_ledger.records.agent import SCORING_RUNS
from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.patch_classes import SplitChanges
from trialfleet_repository.workspace_scan import Changes


class ScoringStep(StrEnum):
    """A scoring run, by the changes that it is made with."""

    PRODUCT = "product"  # A
    ALL = "all"  # B: with the others
    OTHERS = "others"  # C: without the product's
    UNCHANGED = "unchanged"  # after C: the tree without any change


JUDGED = (ScoringStep.PRODUCT, ScoringStep.ALL)  # a trial's results are those of one of them
CONTROL_RUNS = 2  # of a pass, with tests that must fail: the second only if the first contradicts it
# Each judged step may need a control run, and the pass a second one
assert len(ScoringStep) + len(JUDGED) + CONTROL_RUNS - 1 == SCORING_RUNS

_WORD = re.compile(rb"[\w-]+")
_FOLDER_MODULES = frozenset({"__init__", "__main__", "index", "mod"})  # such a file is named by its folder


def next_step(passed: Mapping[ScoringStep, bool], *, others_matter: bool) -> ScoringStep | None:
    """The run after those that are done, each with whether it passed; None: their results decide.

    >>> next_step({}, others_matter=True), next_step({ScoringStep.PRODUCT: True}, others_matter=True)
    (<ScoringStep.PRODUCT: 'product'>, None)
    """
    match [*passed.values()]:
        case []:
            return ScoringStep.PRODUCT
        case [False] if others_matter:
            return ScoringStep.ALL
        case [False, True]:
            return ScoringStep.OTHERS
        case [False, True, True]:
            return ScoringStep.UNCHANGED
        case _:
            return None


def has_next(step: ScoringStep, passed: Mapping[ScoringStep, bool], *, others_matter: bool) -> bool:
    """Whether another run may follow `step`, the next one: its container must then outlive it."""
    return any(next_step({**passed, step: one}, others_matter=others_matter) for one in (True, False))


@dataclass(frozen=True)
class ScoringCause:
    """What all runs together say. `decided_by`: the run whose results are the trial's, which is the last one with
    the product's changes. `needs_others`: the tests pass only with the other changes. `forged`: these alone let
    them pass. `unsteady`: so does no change at all, which says nothing of the agent's."""

    decided_by: ScoringStep
    passed: bool
    needs_others: bool = False
    forged: bool = False
    unsteady: bool = False


def find_cause(passed: Mapping[ScoringStep, bool]) -> ScoringCause:
    """The cause of a pass, once `next_step` is None."""
    if ScoringStep.ALL not in passed:
        return ScoringCause(ScoringStep.PRODUCT, passed[ScoringStep.PRODUCT])
    others, unchanged = passed.get(ScoringStep.OTHERS, False), passed.get(ScoringStep.UNCHANGED, False)
    return ScoringCause(
        ScoringStep.ALL,
        passed[ScoringStep.ALL],
        needs_others=passed[ScoringStep.ALL] and not unchanged,
        forged=others and not unchanged,
        unsteady=unchanged,
    )


def changes_in(step: ScoringStep, split: SplitChanges) -> Changes:
    """The changes of a run. The others alone also get the product's removals that make room for them: a file in
    the place of a folder of the product must not fail here for the files that stay in it."""
    match step:
        case ScoringStep.PRODUCT:
            return split.product
        case ScoringStep.ALL:
            return {**split.product, **split.others}
        case ScoringStep.OTHERS:
            return {**_removals_for(split), **split.others}
        case ScoringStep.UNCHANGED:
            return {}


def others_may_matter(split: SplitChanges, classes: PatchClasses | None, known: Collection[str]) -> bool:
    """Whether the tests may need the other changes: by the rule of names, any. By recorded look-ups, a file that
    the tests use, or a new one that the changed product files name, by its base name or as a module: an honest fix
    may add a file outside of every package, which no look-up could show. `known`: the files of the scored tree.
    """
    if not split.others or classes is None:
        return False
    if classes.rule == "names" or not split.others.keys().isdisjoint(classes.used):
        return True
    words = {word for entry in split.product.values() if entry is not None for word in _WORD.findall(entry.data)}
    folders = {folder for path in known for folder in _folders(path)}
    new = (path for path, entry in split.others.items() if entry is not None and path not in known)
    return any(not words.isdisjoint(_module_names(path, folders)) for path in new)


def _module_names(path: str, folders: Collection[str]) -> set[bytes]:
    """Words by which code may name a new file: of its base name the first, and its folders that are new, too.
    `folders`: those of the scored tree.

    >>> sorted(_module_names("lib/rates/table.v2.json", {"lib"})), _module_names("lib/index.js", {"lib"})
    ([b'rates', b'table'], {b'lib'})
    """
    above, _, name = path.rpartition("/")
    new = [folder for folder in _folders(path) if folder not in folders]
    is_folder = name.partition(".")[0] in _FOLDER_MODULES
    named = [*new, above if is_folder else name]
    return {word for one in named for word in _WORD.findall(os.fsencode(one.rpartition("/")[2]))[:1]}


def _removals_for(split: SplitChanges) -> Changes:
    """Removed files of the product in whose place, or in the place of whose folders, another change is."""
    added = {path for path, entry in split.others.items() if entry is not None}
    above = {folder for path in added for folder in _folders(path)}
    return {
        path: None
        for path, entry in split.product.items()
        if entry is None and (path in above or not added.isdisjoint(_folders(path)))
    }


def _folders(path: str) -> list[str]:
    return [str(folder) for folder in PurePosixPath(path).parents[:-1]]
