"""Builds images: the build context as values (the Dockerfile, the packages, their locks, the recipes of the tasks'
environments), and the programs that build it (docker, podman, buildah)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_controller.images.environments import ImageEnvironments
from trialfleet_controller.images.toolchains import ToolFolder, write_toolchains
from trialfleet_controller.shared_files import find_package, find_shared
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.child_program import ChildOutput, run_program
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import tree_file

ENVIRONMENTS = "requirements/environments.json"  # where the Dockerfile looks for it
TOOLCHAINS = "requirements/toolchains"
_FILES = (
    "Dockerfile",
    "pyproject.toml",
    *(f"requirements/{lock}.txt" for lock in ("uv", "build", "runner", "controller")),
    *(f"requirements/{file}" for file in ("omit.py", "runner.omitted.tsv", "controller.omitted.tsv")),
)
_PACKAGES = (
    "runner_image/trialfleet_git",
    "runner_image/trialfleet_ledger",
    "runner_image/trialfleet_sandbox",
    "runner_image/trialfleet_repository",
    "runner_image/trialfleet_deliveries",
    "runner_image/trialfleet_agents",
    "runner_image/trialfleet_runner",
    "runner_image/trialfleet_search",
    "tasks/trialfleet_tasks",
    "controller/trialfleet_controller",
    "analysis/trialfleet_statistics",
    "analysis/trialfleet_designs",  # what decides at declared looks
)
_WRITTEN_AT = 1577836800  # 2020-01-01: layer caches then see a change of content, not of the day


@dataclass(frozen=True)
class Build:
    """Request to a builder. `base` None: the Dockerfile's default."""

    tag: str
    target: str = "runner"
    base: str | None = None
    agents: tuple[str, ...] = ()
    bake_packages: tuple[str, ...] = ()
    tool_packages: tuple[str, ...] = ()

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
            "TOOL_PACKAGES": " ".join(self.tool_packages),
        }
        return {name: value for name, value in given.items() if value}


def options(build: Build) -> tuple[str, ...]:
    """Options in the form of docker, podman and buildah.

    >>> options(Build("t:1", agents=("claude-code",)))
    ('--tag', 't:1', '--target', 'runner', '--build-arg', 'AGENTS=claude-code')
    """
    pairs = (("--build-arg", f"{name}={value}") for name, value in build.arguments.items())
    return ("--tag", build.tag, "--target", build.target, *(word for pair in pairs for word in pair))


def context(environments: ImageEnvironments, checkout: Path | None = None) -> dict[str, bytes]:
    """Path in the context -> content, of a checkout or of what is installed here, which is the same for the same
    version. Raises `OperatorError` if `checkout` is not a checkout of trialfleet."""
    files = {name: path.read_bytes() for name, path in sorted(_list_sources(checkout))}
    if environments.recipes:
        files[ENVIRONMENTS] = canonical_json([each.model_dump(mode="json") for each in environments.recipes])
    folder = Path(ENVIRONMENTS).parent
    return files | {f"{folder}/{tree_file(digest)}": tar for digest, tar in sorted(environments.trees.items())}


def _list_sources(checkout: Path | None) -> Iterator[tuple[str, Path]]:
    """Place in the context, and the file."""
    if checkout is not None:
        lacking = [name for name in (*_FILES, *_PACKAGES) if not (checkout / name).exists()]
        if lacking:
            raise OperatorError(
                f"{checkout} is not a checkout of trialfleet: it lacks {', '.join(lacking)}",
                where="--checkout",
                hint="name the root of a clone, or leave the option out: what is installed is used",
            )
    for name in _FILES:
        yield name, find_shared(name) if checkout is None else checkout / name
    for place in _PACKAGES:
        folder = find_package(place) if checkout is None else checkout / place
        for path in filter(_belongs, folder.rglob("*")):
            yield f"{place}/{path.relative_to(folder)}", path


def _belongs(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts


def write(files: Mapping[str, bytes], folder: Path, copied: Sequence[ToolFolder] = ()) -> None:
    """Write these files and toolchains into `folder`. Raises `OperatorError` if it is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OperatorError(
            f"{folder} is not an empty folder", where="--out", hint="name a new folder, or empty this one"
        )
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)
        os.utime(path, (_WRITTEN_AT, _WRITTEN_AT))
    if copied:
        write_toolchains(copied, folder / TOOLCHAINS, at=_WRITTEN_AT)


# BuildKit also in dockers before 23. No attestations: they give each build another id, and kind cannot load them.
_BUILDKIT = {"DOCKER_BUILDKIT": "1", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
_BUILD = {"docker": ("build",), "podman": ("build",), "buildah": ("bud", "--layers")}
BUILDERS = tuple(_BUILD)


def working_builder(name: str) -> str:
    """The builder `name`, or the first that works for "auto". Raises `OperatorError`."""
    found = next((program for program in (BUILDERS if name == "auto" else (name,)) if _works(program)), None)
    if found is None:
        looked = " nor ".join(BUILDERS) if name == "auto" else name
        raise OperatorError(
            f"{'neither ' if name == 'auto' else ''}{looked} works here",
            where="--builder",
            hint="install one of them (docker also needs its daemon), or write the build context with --out DIR "
            "for another builder of Dockerfiles",
        )
    return found


def _works(program: str) -> bool:
    if shutil.which(program) is None:
        return False
    return isinstance(run_program((program, "version")), ChildOutput)  # for docker this needs its daemon


def run_builder(program: str, options: Sequence[str], folder: Path) -> str:
    """Build `folder` and return the image's id. The builder's output goes to standard error. Raises
    `OperatorError`."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-image-") as scratch:
        said = Path(scratch) / "id"
        argv = (program, *_BUILD[program], "--iidfile", str(said), *options, str(folder))
        ran = subprocess.run(argv, env=os.environ | _BUILDKIT, stdin=subprocess.DEVNULL, stdout=2, check=False)
        if ran.returncode != 0:
            raise OperatorError(
                f"{program} ended with exit code {ran.returncode}; its output above shows the error",
                hint="correct that error; an environment that cannot be built may need a --base with its Python "
                "and libraries, or compilers from --bake-packages",
            )
        return said.read_text().strip()
