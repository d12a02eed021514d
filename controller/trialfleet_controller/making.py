"""Making a plan on this machine: cache, sandbox and mirrors as the user has them, with a line of progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

from trialfleet_controller.disk import disk_room
from trialfleet_controller.model import check_model
from trialfleet_controller.prepare import Workshop, identified, prepare
from trialfleet_controller.spec import CampaignFile
from trialfleet_runner.attempt.scratch import scratch_root
from trialfleet_runner.cache import Cache
from trialfleet_runner.campaign import Plan
from trialfleet_runner.objects import Objects
from trialfleet_runner.sandbox.choose import choose
from trialfleet_runner.settings import load_settings, mirror_map
from trialfleet_runner.store.probe import probe
from trialfleet_runner.store.protocol import Store


def make_plan(file: CampaignFile, store: Store | None, mirror: tuple[str, ...]) -> Plan:
    """The plan, with its inputs uploaded when there is a store. Raises `OperatorError`."""
    identity, agent = identified(file)  # what is missing is said before the slow part
    if store is not None:
        check_model(identity, agent, file.spec.limits.frozen())
        probe(store)
    cache = Cache.default()
    folders = [str(cache.objects.parent), str(scratch_root()), *([store.url] if store is not None else [])]
    with disk_room(" or ".join(folders)), _progress() as say:
        return prepare(
            file,
            Workshop(
                cache=cache,
                objects=Objects(cache.objects, store),
                sandbox=choose(),
                mirrors=mirror_map(load_settings(), mirror),
                say=say,
            ),
        )


@contextmanager
def _progress() -> Generator[Callable[[str], None]]:
    """A changing line on a terminal; one plain line per task elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: click.echo(step, err=True) if ":" not in step else None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("preparing") as status:
        yield lambda step: status.update(Text(f"preparing {step}"))
