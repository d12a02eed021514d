"""The environments that a campaign's tasks need of its image, and whether the image has them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_ledger.campaign_spec import KubernetesSpec
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import RECIPE_CHARS, recipe
from trialfleet_tasks.task_environment import environment_of
from trialfleet_tasks.taskfile import LoadedTask


@dataclass(frozen=True)
class NeededEnvironment:
    """`versions`: of its Python or tools, as people read them. `tasks`: those that run in it."""

    versions: str
    tasks: tuple[LoadedTask, ...]

    def __str__(self) -> str:
        return f"{', '.join(task.id for task in self.tasks)} ({self.versions})"


Needed = Mapping[str, NeededEnvironment]  # by recipe


def environments(tasks: Iterable[LoadedTask], mirrors: Mapping[str, Path]) -> Needed:
    """The environments that the image must hold."""
    needed: dict[str, NeededEnvironment] = {}
    for task in tasks:
        ref = environment_of(task, cache=Cache.default(), mirrors=mirrors).ref
        key = recipe(ref)[:RECIPE_CHARS]
        before = needed.get(key)
        needed[key] = NeededEnvironment(ref.versions, (*(before.tasks if before else ()), task))
    return needed


def baked_check(there: Mapping[str, str], kube: KubernetesSpec, needed: Needed) -> DoctorCheck:
    """`there`: what the probe pod found, by recipe. Pure."""
    absent = [each for name, each in needed.items() if name not in there]
    lacking = [task for each in absent for task in each.tasks]
    if not lacking:
        return DoctorCheck(
            "environments", "ok", f"the image has all {len(needed)} that these tasks need, of {len(there)} in it"
        )
    files = " ".join(dict.fromkeys(os.path.relpath(task.file) for task in lacking))
    return DoctorCheck(
        "environments",
        "missing",
        f"image {kube.image} lacks the environments of {'; '.join(map(str, absent))}",
        f"trialfleet image build --for {files}, and name the new image in kubernetes.image",
    )
