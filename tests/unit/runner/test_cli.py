"""Which commands there are."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import click
import pytest
from click.testing import CliRunner

from trialfleet_ledger.errors import OperatorError
from trialfleet_runner import cli


@pytest.mark.parametrize(("odd", "absent"), [("validate", "report"), ("of-another", "of-an-absent")])
def test_commands_of_absent_packages_are_absent_too(
    odd: str, absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this distribution and of others: one that is no command, and one of a package that is not installed."""
    places = {odd: "trialfleet_runner.interrupts:Interrupts", absent: "trialfleet_of_another_image.x:Interrupts"}
    points = EntryPoints(EntryPoint(name, place, cli.GROUP) for name, place in places.items())
    monkeypatch.setattr(importlib.metadata, "entry_points", points.select)
    monkeypatch.setattr(cli, "place", places.get)
    assert cli.root.list_commands(click.Context(cli.root)) == [odd]
    with pytest.raises(TypeError, match=f"command {odd} of trialfleet_runner.interrupts is not a click command"):
        cli.load_command(odd)
    ran = CliRunner().invoke(cli.root, [absent])
    assert ran.exit_code == 2
    assert f"No such command '{absent}'" in ran.output


def test_every_command_of_ours_has_its_summary_here() -> None:
    """Help would import the command to ask it: a third of a second."""
    ours = {
        point.name
        for point in importlib.metadata.entry_points(group=cli.GROUP)
        if point.module.partition(".")[0].startswith("trialfleet_")
    }
    assert ours == cli.SUMMARIES.keys()


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (OperatorError("no", where="campaign.yaml:3: reps"), 2),
        (click.UsageError("no"), 2),
        (click.exceptions.Exit(2), 2),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as left:
        _main(raised, monkeypatch)
    assert left.value.code == code


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter prints it and exits 1."""
    with pytest.raises(ZeroDivisionError):
        _main(ZeroDivisionError(), monkeypatch)


def _main(raised: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def breaking() -> None:
        raise raised

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: breaking)
    monkeypatch.setattr("sys.argv", ["trialfleet", "breaking"])
    cli.main()


# What takes long to import, and what the import of a command may bring along of it: that is its start.
HEAVY = (
    *("boto3", "importlib.metadata", "kubernetes", "matplotlib", "networkx", "numpy", "psutil", "pydantic"),
    *("ray", "rich", "scipy", "statsmodels", "tiktoken", "tree_sitter", "yaml"),
    *("trialfleet_agents.registry", "trialfleet_ledger.campaign_spec", "trialfleet_repository.languages"),
)
MAY_IMPORT = {
    "submit": {"pydantic"},  # amounts of memory
    "tasks": {
        *("importlib.metadata", "pydantic", "rich", "yaml", "trialfleet_agents.registry"),
        *("trialfleet_ledger.campaign_spec", "trialfleet_repository.languages"),  # names of languages are choices
    },
}
LOADED = f"""
import os, sys
from trialfleet_runner import cli
for name in cli.SUMMARIES:
    if (child := os.fork()) == 0:
        cli.load_command(name)
        print(name, *sorted(set({HEAVY}) & sys.modules.keys()), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_what_the_start_of_each_command_imports() -> None:
    ran = subprocess.run((sys.executable, "-c", LOADED), capture_output=True, text=True, check=True)
    imported = {name: set(heavy) for name, *heavy in map(str.split, ran.stdout.splitlines())}
    assert imported == {name: MAY_IMPORT.get(name, set()) for name in cli.SUMMARIES}


def test_the_list_of_commands_imports_no_models_of_records() -> None:
    """Nor arrays: they would take half of its time."""
    listed = (sys.executable, "-X", "importtime", "-m", "trialfleet_runner.console", "--help")
    ran = subprocess.run(listed, capture_output=True, text=True, check=True)
    assert "click" in ran.stderr
    assert re.findall(r"\| +((?:pydantic|numpy|boto3)\S*)", ran.stderr) == []
