"""Options of the commands that make a report."""

from __future__ import annotations

import click

contrast_option = click.option(
    "--contrast",
    "contrasts",
    multiple=True,
    metavar="TREATMENT:CONTROL",
    help="Compare two more conditions, corrected with the other unplanned contrasts. May be repeated.",
)
packages_option = click.option(
    "--packages",
    is_flag=True,
    help="Also compare conditions that differ in several deliveries, as packages: no single part has the effect.",
)
cutoff_option = click.option(
    "--cutoff",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="When the model's training data ends (YYYY-MM-DD): tasks are split into those before it and since.",
)
no_verify_option = click.option(
    "--no-verify", is_flag=True, help="Look up that bundles exist instead of comparing their SHA-256."
)
