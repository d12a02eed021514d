"""`trialfleet init`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("init")
@click.argument("repository", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option("--commits", default=3000, show_default=True, type=click.IntRange(1), help="How far back to look.")
@click.option("--here", is_flag=True, help="Write to the folder that is named, not to the repository's root.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found and written as JSON.")
def init(repository: Path, commits: int, here: bool, as_json: bool) -> None:
    """Look at REPOSITORY and write a campaign that compares its own context files with none.

    Everything goes to the folder trialfleet/ of the repository's root, or to a nearer one that is there. Nothing
    is overwritten. Called again, it writes what is missing, and names the copies of context files that differ from
    the repository's.
    """
    from trialfleet_tasks.commands.own_campaign import write_campaign

    write_campaign(repository, commits=commits, here=here, as_json=as_json)
