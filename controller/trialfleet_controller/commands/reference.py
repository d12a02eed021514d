"""Writes the reference page of the command line: `python -m trialfleet_controller.commands.reference PAGE`.

The page is generated from the commands of the entry-point group `trialfleet.commands`; a test compares both.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from trialfleet_runner.cli import SUMMARIES, root

HEAD = """\
# Command line

<!-- Generated from the commands by `make cli-reference`. Do not edit this page. -->

`trialfleet [-h | --help] [--version] COMMAND …`. Every command prints its own help with `-h` or `--help`.

Exit codes: 0 done, 1 a bug, 2 an error that the operator can fix, 3 a campaign that is over and not complete,
130 Ctrl-C ([details](exit-codes.md)). An error message names what is wrong, where, and how to fix it.
"""
ARGUMENTS = {
    "CAMPAIGN": "A campaign file, a campaign's folder or URL in its store, or a name with `--store`.",
    "CAMPAIGN_FILE": "A [campaign file](campaign-file.md).",
    "EXAMPLE": "One that `trialfleet examples list` names.",
    "FILES": "Task files, or folders of task files.",
    "KIND": "An agent kind that `trialfleet agents list` names with a pinned version.",
    "FOLDER": "The folder to copy to; it is created if it is absent.",
    "OTHER": "Another campaign, named in the same ways.",
    "PROMPT": "The request as text; `-` reads it from standard input.",
    "REPOSITORY": "A git repository: a checkout, one of its folders, a linked work tree or a bare repository.",
    "REVISIONS": "`REV1..REV2`, such as `origin/main..HEAD`; `REV1..` for the working tree.",
    "TASKS": "Task files.",
    "TRIAL": "`TASK/CONDITION/REP`, where reps count from 0, or the beginning of a trial's id.",
}


def page() -> str:
    """The reference of every registered command, in the order of `trialfleet --help`."""
    found = [*commands(root, click.Context(root, info_name="trialfleet"))]
    contents = [f"| [`{path}`](#{path.replace(' ', '-')}) | {summary} |" for path, summary, _ in found]
    sections = [section for _, _, section in found]
    return "\n".join([HEAD, "| command | purpose |", "|---|---|", *contents, "", "\n".join(sections).rstrip(), ""])


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, str, str]]:
    """(Path, summary, section) of each command below `group`, depth first."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inside = click.Context(command, parent=context, info_name=name)
        summary = SUMMARIES[name] if group is root else command.get_short_help_str(200)
        yield inside.command_path, summary, _section(command, inside)
        if isinstance(command, click.Group):
            yield from commands(command, inside)


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    arguments = [_argument(each, context) for each in command.params if isinstance(each, click.Argument)]
    options = [_option(each, context) for each in command.params if isinstance(each, click.Option)]
    parts = [f"## {context.command_path}", _prose(command.help or ""), f"```\n{usage}\n```"]
    if arguments:
        parts.append(_table(("argument", "meaning"), arguments))
    if options:
        parts.append(_table(("option", "meaning", "default"), options))
    return "\n\n".join([*parts, "[Exit codes](exit-codes.md)", ""])


def _prose(text: str) -> str:
    """A docstring as Markdown. Click marks a paragraph that keeps its lines with a line that holds `\\b`."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(f"```\n{p[2:]}\n```" if p.startswith("\b\n") else p for p in paragraphs)


def _argument(argument: click.Argument, context: click.Context) -> tuple[str, str]:
    shown = argument.make_metavar(context)
    name = re.sub(r"[^A-Z_]", "", shown)
    return f"`{shown}`", ARGUMENTS[name]


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.make_metavar(context).removesuffix(' RANGE')}`"
    meaning, default = _split(option.help or "")
    limits = option.get_help_extra(context).get("range")
    words = [meaning, *([f"({_typeset(limits)})"] if limits else []), *(["Required."] if option.required else [])]
    return names + value, " ".join(words), default or _default(option)


def _split(text: str) -> tuple[str, str]:
    """Meaning and default of a help text that states its default in words.

    >>> _split("Folder for the report. [default: next to the campaign]")
    ('Folder for the report.', 'next to the campaign')
    """
    found = re.fullmatch(r"(.*?)\s*\[default: (.+)\]", text, re.DOTALL)
    return (found[1], found[2]) if found else (text, "")


def _typeset(limits: str) -> str:
    """
    >>> _typeset("1<=x<=1000")
    '1≤x≤1000'
    """
    return limits.replace("<=", "≤").replace(">=", "≥")


def _default(option: click.Option) -> str:
    """A flag is off by default; an option without a value has none."""
    found = option.to_info_dict()["default"]
    if option.is_flag or found == "":
        return ""
    return f"`{found:g}`" if isinstance(found, int | float) else f"`{found}`" if isinstance(found, str) else ""


def _table(titles: tuple[str, ...], rows: list[tuple[str, str]] | list[tuple[str, str, str]]) -> str:
    lines = [titles, ("---",) * len(titles), *(tuple(map(_escaped, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
