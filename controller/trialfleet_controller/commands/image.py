"""`trialfleet image build`: builds the image that pods run, with the tasks' environments in it."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import click

from trialfleet_controller.commands.options import mirror_option

BUILDERS = ("auto", "docker", "podman", "buildah", "none")


@click.group("image")
def image() -> None:
    """Build the container images that pods run."""


@image.command("build")
@click.option("--tag", required=True, help="Name of the image, as in the campaign's `kubernetes.image`.")
@click.option(
    "--for",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Task file or campaign file; the image contains its tasks' environments. Repeatable.",
)
@click.option(
    "--base",
    metavar="IMAGE",
    help="Base image: Debian 12 or newer, or a derivative. [default: the slim Debian 12 of the Dockerfile]",
)
@click.option(
    "--target",
    type=click.Choice(("runner", "controller")),
    default="runner",
    show_default=True,
    help="runner: the image of attempts; controller: the image for `trialfleet submit`.",
)
@click.option(
    "--agents",
    metavar="KINDS",
    default="",
    help="Agents to install, comma-separated: KIND or KIND@VERSION, as `trialfleet agents list` names them.",
)
@click.option(
    "--bake-packages",
    metavar="NAMES",
    default="",
    help="Debian packages that building the environments needs, comma-separated.",
)
@click.option(
    "--base-has-tools",
    is_flag=True,
    help="The --base has the programs that tasks in other languages than Python need: copy and install none.",
)
@mirror_option
@click.option(
    "--builder", type=click.Choice(BUILDERS), help="Program that builds. [default: auto; none with --out]"
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the build context to DIR.")
@click.option(
    "--checkout",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Checkout of trialfleet to build from. [default: what is installed]",
)
def build(
    tag: str,
    files: tuple[Path, ...],
    base: str | None,
    target: str,
    agents: str,
    bake_packages: str,
    base_has_tools: bool,
    mirror: tuple[str, ...],
    builder: str | None,
    out: Path | None,
    checkout: Path | None,
) -> None:
    """Build an image with docker, podman or buildah, and print its id.

    With --out DIR the build context is written to DIR for another builder, and no image is built unless --builder
    is given.
    """
    from trialfleet_controller.images.build import (
        Build,
        context,
        options,
        run_builder,
        working_builder,
        write,
    )
    from trialfleet_controller.images.environments import image_environments
    from trialfleet_controller.images.toolchains import toolchains
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_repository.cache import Cache
    from trialfleet_tasks.settings import load_settings, mirror_map

    chosen = builder or ("none" if out else "auto")
    if chosen == "none" and out is None:
        raise OperatorError("nothing would be built or written", where="--builder none", hint="add --out DIR")
    if files and target != "runner":
        raise OperatorError(
            "only a runner image contains environments", where="--for", hint="remove --for, or use --target runner"
        )
    program = None if chosen == "none" else working_builder(chosen)
    mirrors = mirror_map(load_settings(), mirror)
    environments = image_environments(files, cache=Cache.default(), mirrors=mirrors)
    tools = toolchains(() if base_has_tools else environments.tools)
    asked = Build(tag, target, base, _names(agents), _names(bake_packages), tools.packages)
    made = context(environments, checkout)
    with tempfile.TemporaryDirectory(prefix="trialfleet-context-") as scratch:
        folder = out or Path(scratch) / "context"
        write(made, folder, tools.copied)
        if program is None:
            click.echo(shlex.join(("docker", "build", *options(asked), str(folder))))
        else:
            click.echo(f"{program} builds {tag}", err=True)
            click.echo(run_builder(program, options(asked), folder))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())
