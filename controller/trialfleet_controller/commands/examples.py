"""`trialfleet examples`, `demo` and `k8s`: what comes with the program, copied to work with it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from trialfleet_ledger.child_program import python_module

DEMO = "trialfleet-demo"


@dataclass(frozen=True)
class Example:
    """`parts`: a folder below the copy, and the place in the checkout of what goes there; `following`: the next
    command."""

    folder: str
    parts: dict[str, str]
    what: str
    following: str

    def copy(self, into: Path) -> None:
        """Raises `OperatorError` where something else is in the way."""
        from trialfleet_controller.shared_files import copy_shared

        for folder, source in self.parts.items():
            copy_shared(source, into / folder)


EXAMPLES = {
    "quickstart": Example(
        DEMO,
        {"quickstart": "tasks/quickstart", "contexts": "tasks/contexts"},
        "thirteen real bugs of seven projects, with context files",
        "trialfleet plan {0}/quickstart/campaign.yaml",
    ),
    "shop": Example(
        "shop",
        {"": "examples/shop"},
        "a small shop with a bug, for every delivery",
        "trialfleet validate --write {0}/task.yaml",
    ),
    "agents": Example(
        "agents",
        {"": "examples/agents"},
        "campaign files for Aider, Goose and Qwen Code",
        "less {0}/aider.yaml",
    ),
}


@click.group("examples")
def examples() -> None:
    """Copy examples that come with trialfleet."""


@examples.command("list")
def list_examples() -> None:
    """Name the examples."""
    for name, example in EXAMPLES.items():
        click.echo(f"{name:12}{example.what}")


@examples.command("copy")
@click.argument("name", metavar="EXAMPLE", type=click.Choice(list(EXAMPLES)))
@click.argument("folder", metavar="[FOLDER]", type=click.Path(path_type=Path), required=False)
def copy_example(name: str, folder: Path | None) -> None:
    """Copy an example to FOLDER. Nothing is overwritten."""
    example = EXAMPLES[name]
    into = folder or Path(example.folder)
    example.copy(into)
    click.echo(f"next: {example.following.format(shlex.quote(str(into)))}")


@click.command("demo")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=DEMO,
    show_default=True,
    help="Where its tasks, contexts and campaign files are copied to; results go to `runs` beside it.",
)
def demo(folder: Path) -> None:
    """Run two small campaigns of two real bugs on this machine, in three minutes: no key, no server.

    The sources of the two libraries come from your package index.
    """
    EXAMPLES["quickstart"].copy(folder)
    for words in _demo_steps(folder / "quickstart"):
        ended = subprocess.run([*python_module("trialfleet_runner.console"), *words], check=False)
        if ended.returncode:
            sys.exit(ended.returncode)


def _demo_steps(tasks: Path) -> Iterator[tuple[str, ...]]:
    yield ("validate", "--repeats", "1", "--campaign", str(tasks / "demo.yaml"))
    yield ("run", str(tasks / "placebo.yaml"))
    yield ("run", str(tasks / "demo.yaml"))


@click.group("k8s")
def k8s() -> None:
    """Write the manifests of a cluster."""


@k8s.command("manifests")
@click.option("--kuberay", "overlay", flag_value="kuberay", help="With a Ray cluster of KubeRay's.")
@click.option("--kueue", "overlay", flag_value="kueue", help="With a queue of Kueue's.")
@click.option("--kind", "overlay", flag_value="kind", help="With an S3 server, for a kind cluster.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="k8s",
    show_default=True,
    help="Folder to write to. Nothing is overwritten.",
)
def manifests(overlay: str | None, out: Path) -> None:
    """Write the kustomizations: namespace, accounts, roles, quota, network policies."""
    from trialfleet_controller.shared_files import copy_shared

    for name in dict.fromkeys(("base", overlay or "base")):
        copy_shared(f"k8s/{name}", out / name)
    click.echo(f"next: kubectl apply --server-side -k {shlex.quote(str(out / (overlay or 'base')))}")
