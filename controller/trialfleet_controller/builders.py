"""Programs that build images: docker, podman, buildah."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trialfleet_runner.errors import OperatorError

_BUILD = {"docker": ("build",), "podman": ("build",), "buildah": ("bud", "--layers")}
_WORKS = {"docker": ("version",), "podman": ("version",), "buildah": ("version",)}  # docker: asks its daemon
BUILDERS = tuple(_BUILD)


def builder(name: str) -> str:
    """The builder called `name`, or with "auto" the first that works. Raises `OperatorError`."""
    found = next((program for program in (BUILDERS if name == "auto" else (name,)) if _works(program)), None)
    if found is None:
        looked = " nor ".join(BUILDERS) if name == "auto" else name
        raise OperatorError(
            f"{'neither ' if name == 'auto' else ''}{looked} works here",
            where="--builder",
            hint="install one of them, and for docker start its daemon; or write the build context with --out DIR "
            "for any other builder of Dockerfiles",
        )
    return found


def _works(program: str) -> bool:
    if shutil.which(program) is None:
        return False
    asked = subprocess.run((program, *_WORKS[program]), capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return asked.returncode == 0


def run(program: str, options: Sequence[str], folder: Path) -> str:
    """Build `folder`; what the builder says goes to standard error. The image's id. Raises `OperatorError`."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-image-") as scratch:
        said = Path(scratch) / "id"
        argv = (program, *_BUILD[program], "--iidfile", str(said), *options, str(folder))
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=2, check=False)
        if ran.returncode != 0:
            raise OperatorError(
                f"{program} ended with exit code {ran.returncode}; what failed stands above",
                hint="mend that; an environment that cannot be built may need a --base with its Python and "
                "libraries, or its compilers by --bake-packages",
            )
        return said.read_text().strip()
