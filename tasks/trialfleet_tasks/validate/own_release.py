"""Whether a Python environment holds a release of the project itself, from which an agent could copy the fix."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distributions
from pathlib import Path

from trialfleet_tasks.validate.record import Problem, ProblemKind


def own_release(
    environment: Path, *, module: str | None, distribution: str | None, version: str | None
) -> Problem | None:
    """The problem, if the packages of the built `environment` hold the project in a version that is not older than
    the unfixed tree's. `module`: what its tests import; `distribution`, `version`: the project's, None if the task
    does not say."""
    for packages in sorted((environment / "lib").glob("python3*/site-packages")):
        for installed in distributions(path=[str(packages)]):
            if _is_project(installed, packages, module, distribution) and not _is_older(
                installed.version, version
            ):
                return _problem(f"{installed.name} {installed.version}", version)
    return None


def _is_project(installed: Distribution, packages: Path, module: str | None, distribution: str | None) -> bool:
    if distribution is not None and _normal(installed.name) == _normal(distribution):
        return True
    if module is None:
        return False
    place = module.replace(".", "/")
    if not any((packages / name).exists() for name in (place, f"{place}.py")):
        return False
    files = map(str, installed.files or ())  # a folder alone may be a namespace of several projects
    return any(file == f"{place}/__init__.py" or file.startswith(f"{place}.") for file in files)


def _is_older(installed: str, version: str | None) -> bool:
    """Whether it was released before the unfixed tree's version; False where that cannot be known."""
    from packaging.version import InvalidVersion, Version

    try:
        return version is not None and Version(installed) < Version(version)
    except InvalidVersion:
        return False


def _problem(installed: str, version: str | None) -> Problem:
    tree = "has no environment.version" if version is None else f"is {version}"
    older = "" if version is None else f" older than {version}"
    return Problem(
        kind=ProblemKind.OWN_RELEASE,
        message=f"the environment holds the project itself, {installed}, and the tree before the fix {tree}: "
        "an agent could copy the fix from site-packages",
        hint=f"pin a release{older} in environment.lock and give environment.version, or leave this commit out",
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
