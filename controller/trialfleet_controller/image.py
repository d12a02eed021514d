"""The build context of an image as values: the Dockerfile, the packages, their locks, and what the tasks'
environments are made of. And the options that build it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_controller.spec import load_campaign
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.environment import environment_ref, recipe
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.interpreters import find_interpreter
from trialfleet_runner.pod.bake import Recipe
from trialfleet_runner.taskfile import LoadedTask, campaign_tasks, load_all, tasks_of

ENVIRONMENTS = "requirements/environments.json"  # where the Dockerfile looks for it
_FILES = (
    "Dockerfile",
    "pyproject.toml",
    *(f"requirements/{lock}.txt" for lock in ("uv", "build", "runner", "controller")),
)
_PACKAGES = ("runner_image/trialfleet_runner", "controller/trialfleet_controller")
_WRITTEN_AT = 1577836800  # 2020-01-01: layer caches then see a change of content, not of the day


@dataclass(frozen=True)
class Build:
    """What is asked of a builder. `base` None: the Dockerfile's own."""

    tag: str
    target: str = "runner"
    base: str | None = None
    agents: tuple[str, ...] = ()
    bake_packages: tuple[str, ...] = ()

    @property
    def arguments(self) -> dict[str, str]:
        """Build arguments of the Dockerfile.

        >>> Build("t", base="python:3.12-bookworm", agents=("claude-code",)).arguments
        {'BASE': 'python:3.12-bookworm', 'AGENTS': 'claude-code'}
        """
        given = {
            "BASE": self.base or "",
            "AGENTS": " ".join(self.agents),
            "BAKE_PACKAGES": " ".join(self.bake_packages),
        }
        return {name: value for name, value in given.items() if value}


def options(build: Build) -> tuple[str, ...]:
    """As docker, podman and buildah take them.

    >>> options(Build("t:1", agents=("claude-code",)))
    ('--tag', 't:1', '--target', 'runner', '--build-arg', 'AGENTS=claude-code')
    """
    pairs = (("--build-arg", f"{name}={value}") for name, value in build.arguments.items())
    return ("--tag", build.tag, "--target", build.target, *(word for pair in pairs for word in pair))


def context(checkout: Path, recipes: Sequence[Recipe]) -> dict[str, bytes]:
    """Path in the context -> content. Raises `OperatorError` when `checkout` is none of trialfleet."""
    lacking = [name for name in (*_FILES, *_PACKAGES) if not (checkout / name).exists()]
    if lacking:
        raise OperatorError(
            f"images are built from a checkout of trialfleet; {checkout} lacks {', '.join(lacking)}",
            where="--checkout",
            hint="clone the repository at the version that is installed, and name it with --checkout DIR",
        )
    paths = [checkout / name for name in _FILES]
    paths += [path for package in _PACKAGES for path in (checkout / package).rglob("*") if _belongs(path)]
    files = {str(path.relative_to(checkout)): path.read_bytes() for path in sorted(paths)}
    return files | (
        {ENVIRONMENTS: canonical_json([r.model_dump(mode="json") for r in recipes])} if recipes else {}
    )


def _belongs(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Make `folder` hold these files. Raises `OperatorError` when something else is in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OperatorError(f"{folder} is not an empty folder", where="--out", hint="name a new one, or empty it")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)
        os.utime(path, (_WRITTEN_AT, _WRITTEN_AT))


def recipes_for(files: Iterable[Path]) -> tuple[Recipe, ...]:
    """What the environments of these task and campaign files are made of, each once, in an order that follows from
    them alone. Raises `OperatorError`."""
    found = {recipe(each.environment): each for task in _tasks(files) for each in (_recipe(task),)}
    return tuple(found[key] for key in sorted(found))


def _recipe(task: LoadedTask) -> Recipe:
    """With the minor version that planning on this machine takes, and nothing else of this machine."""
    lock = task.lock_path.read_bytes()
    ref = environment_ref(task.environment, lock, find_interpreter(task.environment.python))
    return Recipe(environment=ref.model_copy(update={"digest": recipe(ref)}), lock=lock.decode())


def _tasks(files: Iterable[Path]) -> tuple[LoadedTask, ...]:
    every = [task for path in files for task in _tasks_of(path)]
    return tuple({(task.file, task.index): task for task in every}.values())


def _tasks_of(path: Path) -> tuple[LoadedTask, ...]:
    """Of a campaign file, which has `campaign:` at the left edge, or of a task file."""
    if path.is_file() and re.search(rb"^campaign\s*:", path.read_bytes(), re.MULTILINE):
        return campaign_tasks(load_campaign(path).loaded)
    return tasks_of(load_all((path,)))
