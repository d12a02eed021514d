"""`trialfleet completion`: completes commands and options in the shell."""

from __future__ import annotations

import os
from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")
# Where a shell looks by itself, below the home folder.
_FILES = {
    "bash": ".local/share/bash-completion/completions/trialfleet",
    "zsh": ".local/share/zsh/site-functions/_trialfleet",
    "fish": ".config/fish/completions/trialfleet.fish",
}
_shell = click.option("--shell", type=click.Choice(SHELLS), help="The shell. [default: that of $SHELL]")


@click.group("completion")
def completion() -> None:
    """Complete commands and options with the tab key."""


@completion.command("show")
@_shell
def show(shell: str | None) -> None:
    """Print the script."""
    click.echo(_script(_chosen(shell)), nl=False)


@completion.command("install")
@_shell
def install(shell: str | None) -> None:
    """Write the script where the shell looks for it. A file of somebody else's is not replaced."""
    from trialfleet_ledger.atomic_file import write_whole
    from trialfleet_ledger.errors import OperatorError

    chosen = _chosen(shell)
    script, path = _script(chosen), Path.home() / _FILES[chosen]
    if path.is_symlink() or (path.exists() and "_TRIALFLEET_COMPLETE" not in path.read_text(errors="replace")):
        raise OperatorError(
            "this file is not from trialfleet, and it is not replaced",
            where=str(path),
            hint=f"move it away, or use `trialfleet completion show --shell {chosen}`",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, script.encode())
    click.echo(f"{path}: new shells complete trialfleet")
    if chosen == "zsh":
        click.echo(f"zsh finds it once its .zshrc has: fpath=({path.parent} $fpath), before compinit", err=True)


def _chosen(shell: str | None) -> str:
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise click.UsageError(f"the shell {name or 'is not known'}: add --shell, one of {', '.join(SHELLS)}")
    return name


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    from trialfleet_runner.cli import root

    found = get_completion_class(shell)
    assert found is not None, "click knows these three"
    return found(root, {}, "trialfleet", "_TRIALFLEET_COMPLETE").source()
