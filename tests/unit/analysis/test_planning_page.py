"""The page on planning: every console block is a command and what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialfleet_analysis.commands.power import power

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "planning.md"
PROMPT = "$ trialfleet power "


def blocks(text: str) -> list[tuple[str, str]]:
    """(options, what the page says they print) of each console block."""
    return re.findall(rf"```console\n{re.escape(PROMPT)}([^\n]*)\n(.*?)```", text, re.S)


def printed(options: str) -> str:
    ran = CliRunner().invoke(power, shlex.split(options), catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return "\n".join(line.rstrip() for line in ran.output.splitlines())


@pytest.mark.parametrize(("options", "shown"), blocks(PAGE.read_text()), ids=lambda part: part.partition("\n")[0])
def test_the_page_shows_what_the_command_prints(options: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert shown.rstrip("\n") == printed(options).rstrip("\n")


def test_every_block_is_run() -> None:
    text = PAGE.read_text()
    assert len(blocks(text)) == text.count("```console") >= 6


def test_the_figures_that_the_text_names_are_in_the_blocks() -> None:
    by_options = dict(blocks(PAGE.read_text()))
    cell = by_options["--from 0.4 --to 0.6"]
    assert "108" in cell
    assert "102" in cell
    assert "23.7%" in cell
    few = by_options["--reps 5,25"]
    assert re.search(r"^ *5 +20\.0% +nothing", few, re.M)
    assert re.search(r"^ *5 +about 50% +83\.\d points", few, re.M)
    assert re.search(r"^ *25 +about 50% +40\.8 points", few, re.M)
    assert re.search(r"^ *25 +5\.0% +33\.9 points", few, re.M)
