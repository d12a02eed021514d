"""Which commands there are."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from trialfleet_ledger.errors import OperatorError
from trialfleet_runner import cli


@pytest.fixture(params=["this distribution", "others"])
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`validate` of the runner, and a command of a package that is not installed."""
    points = EntryPoints(
        EntryPoint(name, f"{package}.interrupts:Interrupts", cli.GROUP)
        for name, package in (("validate", "trialfleet_runner"), ("report", "trialfleet_of_another_image"))
    )
    own = SimpleNamespace(entry_points=points if request.param == "this distribution" else EntryPoints())
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: own)
    monkeypatch.setattr(importlib.metadata, "entry_points", points.select)


@pytest.mark.usefixtures("two")
def test_commands_of_absent_packages_are_absent_too() -> None:
    assert cli.root.list_commands(click.Context(cli.root)) == ["validate"]
    with pytest.raises(TypeError, match=r"entry point validate .* is not a click command"):
        cli.load_command("validate")
    ran = CliRunner().invoke(cli.root, ["report"])
    assert ran.exit_code == 2
    assert "No such command 'report'" in ran.output


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


def test_the_list_of_commands_imports_no_models_of_records() -> None:
    """Nor arrays: they would take half of its time."""
    listed = (sys.executable, "-X", "importtime", "-m", "trialfleet_runner.console", "--help")
    ran = subprocess.run(listed, capture_output=True, text=True, check=True)
    assert "click" in ran.stderr
    assert re.findall(r"\| +((?:pydantic|numpy|boto3)\S*)", ran.stderr) == []
