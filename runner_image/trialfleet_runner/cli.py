"""`trialfleet`: one binary; every package brings its commands by the entry-point group `trialfleet.commands`.

A command's module is imported only when that command is called, so that `--help` stays fast.
"""

from __future__ import annotations

import importlib.metadata
import sys
from importlib.util import find_spec

import click

from trialfleet_runner.errors import OperatorError

GROUP = "trialfleet.commands"

# Said by --help without importing the command. A plug-in that is not listed here is imported for its help.
SUMMARIES = {
    "validate": "Prove that tasks hold: they fail before the fix and pass after it.",
    "plan": "Show what a campaign would run, or freeze it.",
    "run": "Run a campaign to its end and report.",
    "submit": "Let a Job in the cluster run a campaign.",
    "status": "Count what is done, running and lost.",
    "show": "Everything about one trial: prompt, patch, tests, trajectory, attempts.",
    "logs": "An attempt's output, also while it runs.",
    "cancel": "Stop starting trials; with --now stop running ones too.",
    "resume": "Go on after a stop: what is missing or lost, never a failure again.",
    "pull": "Copy a campaign's results to a folder.",
    "gc": "Remove caches and leftovers that nothing needs.",
    "prepull": "Pull a campaign's image on every node.",
    "image": "Build the image that pods run, with the tasks' environments in it.",
    "context": "Make the context files of tasks: by an agent, or counted from the code.",
    "targets": "Predict which files a request is about, without a model.",
    "power": "Plan a campaign: what it detects, the reps an effect needs, reps against tasks.",
    "report": "Write report.html, report.md and report.json.",
    "tables": "Write trials and attempts as tables that DuckDB, pandas and Polars read.",
    "doctor": "Check this machine, and say how to mend each thing.",
}


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """Of the packages that are here: an image holds no more than it needs."""
    found = importlib.metadata.entry_points(group=GROUP)
    return {point.name: point for point in found if find_spec(point.module.partition(".")[0]) is not None}


class Commands(click.Group):
    """A group whose members are entry points, loaded one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        found = _entry_points()
        return [name for name in SUMMARIES if name in found] + sorted(found.keys() - SUMMARIES.keys())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        point = _entry_points().get(cmd_name)
        if point is None:
            return None
        command = point.load()
        if not isinstance(command, click.Command):
            raise TypeError(f"entry point {cmd_name} ({point.value}) is not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, SUMMARIES.get(name) or self._own_help(ctx, name)) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _own_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(80) if command else ""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="trialfleet", prog_name="trialfleet")
def root() -> None:
    """High-rep campaigns of coding-agent trials: which context helps, with statistics that hold."""


def main() -> None:
    """Exit codes: 0 done, 1 a bug (with traceback), 2 what the operator can fix, 130 Ctrl-C."""
    try:
        code = root.main(standalone_mode=False)
    except OperatorError as error:
        click.echo(f"trialfleet: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("trialfleet: interrupted; `trialfleet resume` goes on from here", err=True)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
