"""What an image needs for the tasks of some files: recipes of environments, the trees that some are built from,
and the names of the programs that they need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_ledger.records.environment import PythonEnvironmentRef, Recipe, ToolEnvironmentRef
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import recipe
from trialfleet_tasks.task_environment import PlannedEnvironment, environment_of
from trialfleet_tasks.taskfile import LoadedTask, campaign_tasks, load_all, tasks_of


@dataclass(frozen=True)
class ImageEnvironments:
    """`trees`: digest -> tar, for the recipes that are built from one."""

    recipes: tuple[Recipe, ...] = ()
    trees: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def tools(self) -> frozenset[str]:
        """Names of the programs that the image needs."""
        refs = [each.environment for each in self.recipes]
        return frozenset(name for ref in refs if isinstance(ref, ToolEnvironmentRef) for name in ref.tools)


def image_environments(files: Iterable[Path], *, cache: Cache, mirrors: Mapping[str, Path]) -> ImageEnvironments:
    """For the tasks of these task and campaign files: each environment once, in an order that depends on the
    recipes alone. Raises `OperatorError`."""
    found: dict[str, PlannedEnvironment] = {}
    for task in _tasks(files):
        planned = environment_of(task, cache=cache, mirrors=mirrors)
        found.setdefault(recipe(planned.ref), planned)
    chosen = [found[key] for key in sorted(found)]
    trees = {each.ref.source: each.source for each in chosen if isinstance(each.ref, ToolEnvironmentRef)}
    return ImageEnvironments(tuple(map(_recipe, chosen)), trees)


def _recipe(planned: PlannedEnvironment) -> Recipe:
    """With the minor Python version, or the versions of tools, that planning on this machine selects, and nothing
    else of this machine; of Python projects nothing that attempts bring themselves."""
    ref = planned.ref.model_copy(update={"digest": recipe(planned.ref)})
    if not isinstance(ref, PythonEnvironmentRef):
        return Recipe(environment=ref, lock=None)
    return Recipe(environment=ref.model_copy(update={"metadata": {}}), lock=planned.source.decode())


def _tasks(files: Iterable[Path]) -> tuple[LoadedTask, ...]:
    every = [task for path in files for task in _tasks_of(path)]
    return tuple({(task.file, task.index): task for task in every}.values())


def _tasks_of(path: Path) -> tuple[LoadedTask, ...]:
    """Tasks of a campaign file, recognised by `campaign:` at the start of a line, or of a task file."""
    if path.is_file() and re.search(rb"^campaign\s*:", path.read_bytes(), re.MULTILINE):
        return campaign_tasks(load_campaign(path).loaded)
    return tasks_of(load_all((path,)))
