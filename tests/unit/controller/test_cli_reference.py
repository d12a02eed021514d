"""docs/reference/cli.md is what the commands say today."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from trialfleet_controller.commands import agents_reference, reference

PAGE = Path(__file__).parents[3] / "docs/reference/cli.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == reference.page(), "run `make cli-reference`"


def test_the_table_of_agents_is_current() -> None:
    text = PAGE.with_name("agents.md").read_text()
    assert text == agents_reference.renewed(text), "run `make cli-reference`"


def test_a_page_without_the_marks_of_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no line"):
        agents_reference.renewed("# Agents\n")


def test_every_command_has_its_section() -> None:
    sections = {line.removeprefix("## ") for line in reference.page().splitlines() if line.startswith("## ")}
    assert {"trialfleet run", "trialfleet report", "trialfleet validate", "trialfleet targets predict"} <= sections


def section(command: click.Command) -> str:
    group = click.Group("group", commands={"sample": command})
    return next(text for _, _, text in reference.commands(group, click.Context(group, info_name="group")))


def test_an_option_states_its_values_its_meaning_and_its_default() -> None:
    @click.command()
    @click.option("--every", type=click.FloatRange(min=0.5), default=10, metavar="S", help="Seconds <between>.")
    @click.option("--kind", type=click.Choice(("a", "b")), required=True, help="Which. [default: the file's]")
    @click.option("--plain", is_flag=True, help="No colours.")
    def sample() -> None:
        """Do it."""

    assert section(sample).splitlines()[-7:-2] == [
        "| --- | --- | --- |",
        "| `--every` `S` | Seconds &lt;between>. (x≥0.5) | `10` |",
        "| `--kind` `[a\\|b]` | Which. Required. | the file's |",
        "| `--plain` | No colours. |  |",
        "",
    ]


def test_an_argument_without_a_meaning_is_refused() -> None:
    @click.command()
    @click.argument("unheard_of")
    def sample() -> None:
        """Do it."""

    with pytest.raises(KeyError, match="UNHEARD_OF"):
        section(sample)
