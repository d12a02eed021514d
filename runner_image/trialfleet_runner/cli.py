"""`trialfleet`: one binary. Each package registers its commands in the entry-point group `trialfleet.commands`.

A command's module is imported only when that command is called, so that `--help` stays fast.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.operator_errors import operator_error
from trialfleet_runner.interrupts import Interrupts
from trialfleet_runner.quick_start import import_quickly

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "trialfleet.commands"

# Shown by --help without importing the command. A command that is not listed here is imported for its help.
GROUPS = {
    "Start": {
        "demo": "Run two small campaigns here, in three minutes, without a key.",
        "init": "Write a campaign about a repository's own context files.",
        "compare": "Write a campaign that compares the contexts of two revisions.",
        "tasks": "Make tasks of a repository's own history.",
        "validate": "Prove that tests fail before a task's fix and pass after it.",
        "context": "Build context files of tasks, with an agent or from the code.",
        "targets": "Predict which files a request is about, without a model.",
        "examples": "Copy examples that come with trialfleet.",
        "agents": "Say what each agent can be given, and measure it.",
        "doctor": "Check what campaigns need, and how to fix what is missing.",
        "completion": "Complete commands and options with the tab key.",
    },
    "Plan and run": {
        "power": "Say which effects a campaign detects, and which reps it needs.",
        "plan": "Show what a campaign would run, or freeze it.",
        "run": "Run a campaign to its end and write the report.",
        "resume": "Run what is missing or lost, never a failure again.",
        "cancel": "Stop starting trials; with --now also stop running attempts.",
        "gc": "Remove leftovers, caches, contexts and old results.",
    },
    "Look": {
        "status": "Count measured, running, pending and lost trials.",
        "view": "Look at a campaign in the browser.",
        "show": "Show a trial: prompt, patch, tests, trajectory, attempts.",
        "logs": "Print an attempt's output, also while it runs.",
        "report": "Write report.html, report.md and report.json.",
        "figures": "Write the report's figures and tables, for papers and slides.",
        "combine": "Combine several campaigns of one contrast.",
        "side-by-side": "Show two campaigns over the tasks that both have.",
        "tables": "Write trials and attempts as tables, for DuckDB or pandas.",
        "pull": "Copy a campaign's results to a folder.",
    },
    "Cluster": {
        "image": "Build the image of pods, with the tasks' environments in it.",
        "kind": "Make a cluster here, with a store and the image in it.",
        "k8s": "Write the manifests of a cluster.",
        "submit": "Start a Job in the cluster that drives a campaign.",
        "prepull": "Pull a campaign's image on the cluster's nodes.",
    },
}
SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}
OTHERS = "Of other packages"
# Where they are: `trialfleet_controller.commands.NAME:NAME`, unless these say otherwise.
_PACKAGES = {
    **dict.fromkeys(("init", "tasks", "validate"), "trialfleet_tasks"),
    **dict.fromkeys(
        ("combine", "figures", "power", "report", "side-by-side", "tables", "view"), "trialfleet_analysis"
    ),
    "completion": "trialfleet_runner",
    "targets": "trialfleet_targets",
}
_MODULES = {"demo": "examples", "k8s": "examples", "tasks": "mine"}


def place(name: str) -> str:
    """Module and attribute of a command in `SUMMARIES`, as its entry point has it.

    >>> place("side-by-side"), place("k8s")
    ('trialfleet_analysis.commands.side_by_side:side_by_side', 'trialfleet_controller.commands.examples:k8s')
    """
    attribute = name.replace("-", "_")
    package = _PACKAGES.get(name, "trialfleet_controller")
    return f"{package}.commands.{_MODULES.get(name, attribute)}:{attribute}"


def _entry_points() -> Iterable[EntryPoint]:
    """Commands of the installed packages."""
    from importlib.metadata import entry_points  # with what it reads, it takes as long as a short command

    return (point for point in entry_points(group=GROUP) if _is_there(point))


def _is_there(point: EntryPoint) -> bool:
    """An image does not contain every package."""
    return find_spec(point.module.partition(".")[0]) is not None


def load_command(name: str) -> click.Command | None:
    """The command of this name; None: no installed package has it."""
    with import_quickly():
        if name in SUMMARIES:
            module, _, attribute = place(name).partition(":")
            if find_spec(module.partition(".")[0]) is None:
                return None
            command = getattr(importlib.import_module(module), attribute)
        elif (point := next((one for one in _entry_points() if one.name == name), None)) is not None:
            command, module = point.load(), point.module
        else:
            return None
    if not isinstance(command, click.Command):
        raise TypeError(f"command {name} of {module} is not a click command")
    return command


class LazyGroup(click.Group):
    """A group whose members are entry points, loaded one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        found = {point.name for point in _entry_points()}
        return [name for name in SUMMARIES if name in found] + sorted(found - SUMMARIES.keys())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            if not (near := get_close_matches(args[0], self.list_commands(ctx), n=2)):
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(near)}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        here = self.list_commands(ctx)
        rest = {name: self._own_help(ctx, name) for name in here if name not in SUMMARIES}
        for title, group in {**GROUPS, OTHERS: rest}.items():
            if rows := [(name, summary) for name, summary in group.items() if name in here]:
                with formatter.section(click.style(title, bold=True) if sys.stdout.isatty() else title):
                    formatter.write_dl(rows)

    def _own_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(80) if command else ""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="trialfleet", prog_name="trialfleet")
def root() -> None:
    """Run campaigns of coding-agent trials and find out which context helps, with valid statistics."""


def main(interrupts: Interrupts | None = None) -> None:
    """Exits with a code of `CommandExit`; a bug ends with the interpreter's traceback."""
    sys.exit(_run(interrupts or Interrupts()))


def _run(interrupts: Interrupts) -> int:
    try:
        code = root.main(standalone_mode=False)
        sys.stdout.flush()  # a full disk shows itself here
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except Exception as error:
        if interrupts.seen:
            return _interrupted()
        if (known := operator_error(error)) is None:
            raise
        _complain(str(known))
        return CommandExit.OPERATOR
    return code if isinstance(code, int) else CommandExit.DONE


def command_name() -> str:
    """The first word of the command line that is no option; "" without one."""
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")


def _interrupted() -> int:
    way_on = "; the same command continues the campaign" if command_name() in ("run", "resume") else ""
    _complain(f"interrupted{way_on}")
    return CommandExit.INTERRUPTED


def _complain(sentence: str) -> None:
    """The exit code says it too where standard error cannot be written, as on a full disk."""
    with suppress(OSError):
        click.echo(f"trialfleet: {sentence}", err=True)


if __name__ == "__main__":
    main()
