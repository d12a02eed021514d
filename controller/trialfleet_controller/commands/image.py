"""`trialfleet image build`: the image that pods run, with the tasks' environments in it."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import click

BUILDERS = ("auto", "docker", "podman", "buildah", "none")


@click.group("image")
def image() -> None:
    """Images for pods."""


@image.command("build")
@click.option("--tag", required=True, help="Its name, as the campaign's `kubernetes.image` will say.")
@click.option(
    "--for",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Task or campaign file whose environments are baked in. May be given again.",
)
@click.option("--base", metavar="IMAGE", help="What it stands on: Debian 12, newer or derived. [default: slim 12]")
@click.option("--target", type=click.Choice(("runner", "controller")), default="runner", show_default=True)
@click.option("--agents", metavar="NAMES", default="", help="To install, by commas: claude-code[@VERSION].")
@click.option(
    "--bake-packages", metavar="NAMES", default="", help="Debian packages that building needs, by commas."
)
@click.option("--builder", type=click.Choice(BUILDERS), help="[default: auto; none with --out]")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Leave the build context here.")
@click.option(
    "--checkout", type=click.Path(path_type=Path), metavar="DIR", help="Of trialfleet. [default: this one]"
)
def build(
    tag: str,
    files: tuple[Path, ...],
    base: str | None,
    target: str,
    agents: str,
    bake_packages: str,
    builder: str | None,
    out: Path | None,
    checkout: Path | None,
) -> None:
    """Build an image with docker, podman or buildah, and print its id.

    With --out DIR the context is left there for a builder of your own, and nothing is built unless --builder is
    given.
    """
    from trialfleet_controller import builders
    from trialfleet_controller.image import Build, context, options, recipes_for, write
    from trialfleet_runner.errors import OperatorError

    chosen = builder or ("none" if out else "auto")
    if chosen == "none" and out is None:
        raise OperatorError("nothing would be built or written", where="--builder none", hint="add --out DIR")
    if files and target != "runner":
        raise OperatorError(
            "only runners hold environments", where="--for", hint="leave it out, or --target runner"
        )
    program = None if chosen == "none" else builders.builder(chosen)
    asked = Build(tag, target, base, _names(agents), _names(bake_packages))
    made = context(checkout or _own_checkout(), recipes_for(files))
    with tempfile.TemporaryDirectory(prefix="trialfleet-context-") as scratch:
        folder = out or Path(scratch) / "context"
        write(made, folder)
        if program is None:
            click.echo(shlex.join(("docker", "build", *options(asked), str(folder))))
        else:
            click.echo(builders.run(program, options(asked), folder))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _own_checkout() -> Path:
    """Where this package lies, three folders below a checkout's root if it is one."""
    return Path(__file__).resolve().parents[3]
