"""Options that several commands share: the store, where runners start, logs, metrics and the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class ResourceAmount(click.ParamType[Any]):
    """An amount of CPU or memory, as the campaign file's fields take it. `of`: its annotated type."""

    name = "amount"

    def __init__(self, of: Any) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from pydantic import TypeAdapter, ValidationError

        from trialfleet_ledger.errors import FieldError, OperatorError

        try:
            return TypeAdapter[Any](self._of).validate_python(value)
        except ValidationError as error:
            refused = error.errors()[0].get("ctx", {}).get("error")
            message, hint = (
                (str(refused), refused.hint)
                if isinstance(refused, FieldError)
                else (f"{value!r} is no possible amount: {_lowered(error.errors()[0]['msg'])}", "see --help")
            )
            where = None if param is None else param.opts[0]
            raise OperatorError(message, where=where, hint=hint) from None


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


class HostOptions(TypedDict):
    """As `Hosts.asked` takes them."""

    ray: bool | None
    ray_address: str | None
    metrics_port: int | None
    log: str | None


_HOSTS = (
    click.option(
        "--ray/--no-ray",
        default=None,
        help="Start runners through Ray or directly. [default: directly for a campaign of fewer than 200 trials "
        "on this machine, otherwise through Ray]",
    ),
    click.option("--ray-address", metavar="ADDRESS", help="Kubernetes: run the dispatchers on this Ray cluster."),
    click.option(
        "--metrics-port",
        type=click.IntRange(1, 65535),
        metavar="PORT",
        help="Kubernetes: serve metrics for Prometheus on this port, on every address of this machine.",
    ),
    click.option(
        "--log-json", "log", metavar="FILE", help="Write events as JSON lines to FILE; - is standard error."
    ),
    click.option(
        "--keep-failed",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Kubernetes: keep the newest N failed pods of each namespace for inspection.",
    ),
)
_REPORT = (
    click.option("--out", metavar="DIR", help="Folder for the report. [default: next to the campaign]"),
    click.option("--no-report", is_flag=True, help="Do not write a report."),
)

store_option = click.option("--store", metavar="URL", help="The campaign's store; required if CAMPAIGN is a name.")
mirror_option = click.option(
    "--mirror",
    multiple=True,
    metavar="URL=DIR",
    help="Read the repository URL from the local clone DIR. Repeatable.",
)


def host_options(command: Command) -> Command:
    """Add the options of `HostOptions`."""
    for option in reversed(_HOSTS):
        command = option(command)
    return command


def report_options(command: Command) -> Command:
    """Add `--out` and `--no-report`."""
    for option in reversed(_REPORT):
        command = option(command)
    return command
