"""The options that every command has which drives a campaign: where its parts run, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class HostOptions(TypedDict):
    """As `Hosts.asked` takes them."""

    no_ray: bool
    ray_address: str | None
    metrics_port: int | None
    log: str | None
    keep_failed: int


_HOSTS = (
    click.option("--no-ray", is_flag=True, help="Start runners directly instead of through Ray."),
    click.option("--ray-address", metavar="ADDRESS", help="Kubernetes: dispatchers on this Ray cluster."),
    click.option(
        "--metrics-port",
        type=click.IntRange(1, 65535),
        metavar="PORT",
        help="Kubernetes: metrics for Prometheus, on every address of this machine.",
    ),
    click.option("--log-json", "log", metavar="FILE", help="What happens, as JSON lines; -: on standard error."),
    click.option(
        "--keep-failed",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Kubernetes: the newest failed pods stay.",
    ),
)
_REPORT = (
    click.option("--out", metavar="DIR", help="Folder for the report. [default: beside the campaign]"),
    click.option("--no-report", is_flag=True, help="Leave the report out."),
)


def host_options(command: Command) -> Command:
    """Adds what `HostOptions` holds."""
    for option in reversed(_HOSTS):
        command = option(command)
    return command


def report_options(command: Command) -> Command:
    """Adds `out` and `no_report`."""
    for option in reversed(_REPORT):
        command = option(command)
    return command
