"""Every command, every accident, and the cells of both.

Commands come from the command line itself, so a new one is included. An accident changes a copy of one small site:
a repository with a task, a campaign file, and the finished campaign in a directory store.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from trialfleet_runner.cli import root

_ARGUMENTS = {
    "repository": ".",
    "repositories": ".",
    "files": "task/task.yaml",
    "revisions": "HEAD",
    "trial": "shop-discount/none/0",
    "folder": "out",
    "prompt": "Prices with a discount are wrong",
    "kind": "nop",
    "name": "shop",
}
_COMPOSED = {("demo",), ("kind", "up"), ("kind", "down")}  # of other commands, or a script with tests of its own
_OPTIONS = {
    "submit": ("--controller-image", "example.org/trialfleet:1"),
    "image build": ("--tag", "trialfleet:none", "--for", "campaign.yaml"),
    "context build": ("--kind", "flat", "--agent", "search"),
    "tasks mine": ("--commits", "5"),
    "view": ("--no-open",),
    "completion install": ("--shell", "bash"),
    "completion show": ("--shell", "bash"),
}


@dataclass(frozen=True)
class Accident:
    """`prepare` changes the copied site; `inside` is a shell script that ends with `exec "$@"`; `env` replaces
    variables ("" removes one). `ends`: how the command is ended from outside."""

    name: str
    prepare: Callable[[Path], None] = lambda site: None
    inside: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    ends: str = ""


def _replaced(path: str, text: str | None) -> Callable[[Path], None]:
    """With a file of this text; None: with a folder."""

    def prepare(site: Path) -> None:
        at = site / path
        shutil.rmtree(at) if at.is_dir() else at.unlink()
        if text is None:
            at.mkdir()
        else:
            at.write_text(text)

    return prepare


def _with_file(path: str) -> Callable[[Path], None]:
    def prepare(site: Path) -> None:
        (site / path).write_text("no folder", encoding="utf-8")

    return prepare


def _pipe(path: str) -> Callable[[Path], None]:
    def prepare(site: Path) -> None:
        (site / path).unlink()
        os.mkfifo(site / path)

    return prepare


def _in_utf16(site: Path) -> None:
    file = site / "campaign.yaml"
    file.write_bytes(file.read_text().encode("utf-16"))


def _other_version(site: Path) -> None:
    for file in site.glob("store/*/**/*.json"):
        file.write_text(file.read_text().replace('"schema_version":1', '"schema_version":2'))


def _in_bucket(site: Path) -> None:
    file = site / "campaign.yaml"
    file.write_text("".join(line for line in file.open() if not line.startswith("store:")))
    with file.open("a") as end:
        end.write("store: s3://bucket/runs\n")


def _read_only(folder: str) -> str:
    return f'mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && cd . && exec "$@"'


_FULL = (
    "mount -t tmpfs -o size=2m none full && cp -a home store task *.yaml .git full/ && cd full && "
    '(cat /dev/zero >fill 2>/dev/null; true) && export HOME=$PWD/home TMPDIR=$PWD && exec "$@"'
)
_KEYS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
ACCIDENTS = (
    Accident("none"),
    Accident("no store", _in_bucket, env={**_KEYS, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}, ends="word"),
    Accident("silent store", _in_bucket, env={**_KEYS, "AWS_ENDPOINT_URL_S3": "SILENT"}, ends="word"),
    Accident("store's folder is gone", lambda site: shutil.rmtree(site / "store")),
    Accident("no network", inside='exec unshare -n -- "$@"'),
    Accident("no HOME", env={"HOME": "", "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}),
    Accident("read-only HOME", inside=_read_only("home")),
    Accident("read-only checkout", inside=_read_only("$PWD").replace("cd .", 'cd "$PWD"')),
    Accident("full disk", inside=_FULL),
    Accident("ASCII output", env={"PYTHONIOENCODING": "ascii"}),
    Accident("ASCII locale", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    Accident("no programs", env={"PATH": "/nonexistent"}),
    Accident("few open files", inside='ulimit -n 24 && exec "$@"'),
    Accident("closed stdout", inside='exec "$@" >&-'),
    Accident("reader ends", ends="reader"),
    Accident("SIGINT", ends="SIGINT"),
    Accident("store is a file", _replaced("store", "no folder")),
    Accident("cache is a file", _with_file("home/.cache")),
    Accident("out is a file", _with_file("out")),
    Accident("campaign file is a folder", _replaced("campaign.yaml", None)),
    Accident("task file is a folder", _replaced("task/task.yaml", None)),
    Accident("campaign file is a pipe", _pipe("campaign.yaml")),
    Accident("task file is a pipe", _pipe("task/task.yaml")),
    Accident("campaign file is UTF-16", _in_utf16),
    Accident("campaign file is empty", _replaced("campaign.yaml", "")),
    Accident("task file is empty", _replaced("task/task.yaml", "")),
    Accident("plan is empty", _replaced("store/demo/campaign.json", "")),
    Accident("records of another version", _other_version),
)


@dataclass(frozen=True)
class AccidentCell:
    command: tuple[str, ...]
    accident: Accident

    @property
    def name(self) -> str:
        return f"{' '.join(self.command)} × {self.accident.name}"


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command without subcommands, by its words."""

    def walk(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        if not isinstance(command, click.Group):
            yield words, command
            return
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, (*words, name))

    return ((words, command) for words, command in walk(root, ()) if words not in _COMPOSED)


def cells() -> list[AccidentCell]:
    return [AccidentCell(words, accident) for words, _ in commands() for accident in ACCIDENTS]


def drawn(number: int, seed: int) -> list[AccidentCell]:
    return random.Random(seed).sample(cells(), number)


def argv(words: tuple[str, ...]) -> list[str]:
    """The command on the site's files: every argument given, optional ones too."""
    command = dict(commands())[words]
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    given = [_ARGUMENTS.get(str(p.name), "campaign.yaml") for p in arguments]
    return [*words, *given, *_OPTIONS.get(" ".join(words), ())]
