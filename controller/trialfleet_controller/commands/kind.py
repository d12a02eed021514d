"""`trialfleet kind`: a kind cluster on this machine, with an S3 server and the runner's image in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

FOLDER = "trialfleet-kind"


@click.group("kind")
def kind() -> None:
    """A cluster on this machine, with a store and the runner's image in it."""


_name = click.option("--name", metavar="NAME", help="The cluster. [default: $KIND_CLUSTER, else trialfleet]")


@kind.command("up")
@_name
@click.option("--port", type=int, metavar="PORT", help="Port of this machine for its store. [default: 7070]")
@click.option("--agents", metavar="KINDS", help="Agents in the image, such as claude-code.")
@click.option(
    "--for", "files", multiple=True, metavar="FILE", help="Campaign whose environments the image has. Repeatable."
)
@click.option("--controller", is_flag=True, help="Also the controller's image, for `trialfleet submit`.")
def up(name: str | None, port: int | None, agents: str | None, files: tuple[str, ...], controller: bool) -> None:
    """Make the cluster, its store and the image, or what of them is missing; say what to run next.

    Needs docker or podman, kind and kubectl: `trialfleet doctor --kind` checks them.
    """
    given = {
        "KIND_CLUSTER": name,
        "KIND_PORT": None if port is None else str(port),
        "AGENTS": agents,
        "FOR": " ".join(str(Path(file).absolute()) for file in files) or None,
        "CONTROLLER": "1" if controller else None,
    }
    _run("up", given)


@kind.command("down")
@_name
def down(name: str | None) -> None:
    """Take the cluster away, with all results in its store."""
    _run("down", {"KIND_CLUSTER": name})


def _run(script: str, given: dict[str, str | None]) -> None:
    from trialfleet_controller.shared_files import copy_shared, find_checkout

    root = find_checkout()
    if root is None:
        from importlib.metadata import version

        root = Path(FOLDER, version("trialfleet"))  # another version's copy stays as it is
        copy_shared("k8s", root / "k8s")
        copy_shared("tasks/quickstart", root / "tasks/quickstart")
    variables = {name: value for name, value in given.items() if value is not None}
    program = {"TRIALFLEET_PROGRAM": str(Path(sys.argv[0]).absolute())}  # this one, wherever it is installed
    ended = subprocess.run(
        ("bash", str(root / "k8s/kind" / script)), env={**os.environ, **program, **variables}, check=False
    )
    sys.exit(ended.returncode)
