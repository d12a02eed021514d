"""Making a plan on this machine: cache, sandbox and mirrors as the user has them, with a line of progress.

Tasks are always validated here. The agent is the one of the place where trials will run: this machine, or the
campaign's image in its cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

from trialfleet_controller.disk import disk_room
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.model import check_model, check_price
from trialfleet_controller.prepare import Workshop, frozen_agent, identified, prepare
from trialfleet_controller.spec import CampaignFile
from trialfleet_runner.agents.protocol import Identity
from trialfleet_runner.attempt.exposure import refuse_company
from trialfleet_runner.attempt.scratch import scratch_root
from trialfleet_runner.cache import Cache
from trialfleet_runner.campaign import KubernetesPlan, Plan
from trialfleet_runner.objects import Objects
from trialfleet_runner.sandbox.choose import choose
from trialfleet_runner.settings import load_settings, mirror_map
from trialfleet_runner.store.probe import probe
from trialfleet_runner.store.protocol import Store


def make_plan(file: CampaignFile, store: Store | None, mirror: tuple[str, ...], *, submits: bool = False) -> Plan:
    """The plan, with its inputs uploaded when there is a store. `submits`: a Job in the cluster is to drive it.
    Raises `OperatorError`: what is missing is said before the slow part."""
    cache = Cache.default()
    folders = [str(cache.objects.parent), str(scratch_root()), *([store.url] if store is not None else [])]
    sandbox = choose()
    refuse_company(sandbox.name)
    with disk_room(" or ".join(folders)), _progress() as say:
        identity, kubernetes = _place(file, store, say, submits=submits)
        return prepare(
            file,
            Workshop(
                cache=cache,
                objects=Objects(cache.objects, store),
                sandbox=sandbox,
                mirrors=mirror_map(load_settings(), mirror),
                say=say,
            ),
            identity,
            kubernetes,
        )


def freeze(ledger: Ledger, made: Plan) -> tuple[Plan, bool]:
    """As `Ledger.freeze`, with the plan's contexts in the store afterwards."""
    plan, new = ledger.freeze(made)
    if new:
        contexts_in_place(plan, Objects(Cache.default().objects, ledger.store))
    return plan, new


def contexts_in_place(plan: Plan, objects: Objects) -> None:
    """A collector of unused contexts may have run while the plan was made, and found nobody who names them: what
    it took is brought back from this machine. It spares what a frozen plan names. `objects` must not have uploaded
    yet: they remember what they did."""
    named = {digest for cell in plan.cells for digest in (cell.condition.files, cell.condition.context) if digest}
    objects.upload(sorted(named))


def _place(
    file: CampaignFile, store: Store | None, say: Callable[[str], None], *, submits: bool
) -> tuple[Identity, KubernetesPlan | None]:
    """The agent where trials will run, and what is frozen of that place."""
    limits = file.spec.limits.frozen()
    if file.spec.kubernetes is None:
        identity = identified(file)
        if store is not None:
            check_model(identity, frozen_agent(file.spec.agent, identity), limits)
            probe(store)
        return identity, None
    from trialfleet_controller.operate.preflight import clear

    if store is not None:
        probe(store)
    identity, kubernetes = clear(file, store, say=say, submits=submits)
    check_price(identity, frozen_agent(file.spec.agent, identity), limits)
    return identity, kubernetes


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
