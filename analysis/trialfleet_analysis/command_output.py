"""What a command prints of a result and of the files that it has written: JSON, or text for a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trialfleet_ledger.display_text import printable_json

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 160  # columns where there is no terminal to fit


def print_json(document: str, files: Sequence[Path] | None = None) -> None:
    """The JSON object of `document`, with the paths of the `files`; None: it writes none."""
    written = {} if files is None else {"files": [str(path) for path in files]}
    click.echo(printable_json({**json.loads(document), **written}, indent=1))


def print_text(show: Callable[[Console], None], files: Sequence[Path] = ()) -> None:
    """What `show` prints on the console; below it, the paths of the `files`."""
    from trialfleet_ledger.screen import Screen

    console = Screen()
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    show(console)
    for path in files:
        click.echo(path)
