"""Driving a frozen campaign on this machine, from the claim to its last trial: what `run` and `resume` share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

import click

from trialfleet_controller import epochs
from trialfleet_controller.amending import effective_cost, effective_reps
from trialfleet_controller.backend import Backend
from trialfleet_controller.capacity import local_slots
from trialfleet_controller.disk import disk_room
from trialfleet_controller.dispatcher import Dispatcher
from trialfleet_controller.events import LOG_VARIABLE, Note, json_log
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.model import check_model
from trialfleet_controller.plan import trials
from trialfleet_controller.progress import view
from trialfleet_controller.shards import Ending
from trialfleet_controller.steering import Interrupt
from trialfleet_runner.agents.protocol import Identity
from trialfleet_runner.agents.registry import agent
from trialfleet_runner.attempt.exposure import refuse_company
from trialfleet_runner.attempt.scratch import scratch_root, sweep
from trialfleet_runner.campaign import Plan, StoreSpec
from trialfleet_runner.contract import Limits
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.sandbox.choose import choose
from trialfleet_runner.store.protocol import StoreError


@dataclass(frozen=True)
class Hosts:
    """Where the controller's own parts run, and where its log goes. `ray_address`: None: a Ray of our own; `log`:
    a file for JSON lines, "-": standard error, None: no log; `keep_failed`: how many failed pods stay to be looked
    at, in each namespace; `cluster_gone`: pods that nobody saw end are lost; `metrics_port`: where a Ray of our
    own exports."""

    use_ray: bool = True
    ray_address: str | None = None
    log: str | None = None
    keep_failed: int = 0
    metrics_port: int | None = None
    cluster_gone: bool = False

    @staticmethod
    def asked(
        *,
        no_ray: bool,
        ray_address: str | None,
        log: str | None,
        local: bool,
        keep_failed: int = 0,
        metrics_port: int | None = None,
        cluster_gone: bool = False,
    ) -> Hosts:
        """From the options of a command. Raises `OperatorError` when they contradict each other."""
        if ray_address is not None and (no_ray or local):
            raise OperatorError(
                "runners of this machine are not spread over a cluster" if local else "with Ray, or without it?",
                where="--ray-address",
                hint="leave it out" if local else "drop one of --ray-address and --no-ray",
            )
        if metrics_port is not None and (no_ray or local or ray_address is not None):
            raise OperatorError(
                "metrics are those of a Kubernetes campaign's dispatchers"
                if local
                else "metrics come from a Ray that starts with this command",
                where="--metrics-port",
                hint="leave it out; the nodes of a Ray cluster say where they export (docs/reference/metrics.md)",
            )
        log = log or ("-" if os.environ.get(LOG_VARIABLE) == "json" else None)
        return Hosts(not no_ray, ray_address, log, keep_failed, metrics_port, cluster_gone)


def check_drift(plan: Plan) -> Identity:
    """The agent here, which must be the one that was planned. Raises `OperatorError`."""
    found = agent(plan.agent.kind).identify(plan.agent)
    if found.digest != plan.agent_digest:
        raise OperatorError(
            f"the agent has changed since the campaign was planned: {_change(plan, found)}",
            where=f"agent: {plan.agent.kind}",
            hint=f"bring back {plan.agent.version or 'what was planned'}, or start a campaign of another name",
        )
    return found


def _change(plan: Plan, found: Identity) -> str:
    planned = [plan.agent.version, plan.agent.model]
    here = [found.version, found.model or plan.agent.model]
    if planned != here:
        return f"planned {_named(planned)}, this machine has {_named(here)}"
    return (
        f"both are {_named(here)}, but the program's or its options' digest is {found.digest} here, "
        f"{plan.agent_digest} in the plan"
    )


def _named(version_and_model: list[str | None]) -> str:
    return " with ".join(name for name in version_and_model if name) or "without a version"


def drive(
    ledger: Ledger,
    plan: Plan,
    *,
    as_json: bool,
    address: StoreSpec,
    hosts: Hosts | None = None,
    amend: Callable[[], None] = lambda: None,
) -> Ending:
    """Run what is missing. `address`: of the ledger's store; `amend` is called once this controller is the
    campaign's only one. Raises `OperatorError`; the campaign can be resumed whatever happens."""
    hosts = hosts or Hosts()
    if plan.kubernetes is None:
        check_model(check_drift(plan), plan.agent, plan.limits)
        local_slots(plan.limits, plan.parallel)
        refuse_company(choose().name)
    with _store_and_disk(ledger), json_log(hosts.log, plan.campaign) as note:
        driver = epochs.claim(ledger.store, plan.campaign, epochs.Pulse(), tell=_say)
        try:
            amend()
        except OperatorError:
            driver.end()
            raise
        amendments = ledger.amendments()
        reps = effective_reps(plan, amendments)
        plan = plan.model_copy(update={"cost_usd_campaign": effective_cost(plan, amendments)})
        if plan.kubernetes is None:
            ending = _drive_here(ledger, plan, reps, driver, hosts, note, as_json=as_json)
        else:
            ending = _drive_pods(plan, reps, address, driver, hosts, note, as_json=as_json)
        driver.end()
    return ending


def stop_what_runs(ledger: Ledger, plan: Plan, address: StoreSpec) -> None:
    """Of a campaign that was cancelled at once: pods that outlived their controller are marked as lost and
    stopped. A controller that lives does it itself. Without any, no cluster is asked for."""
    if not ledger.survey().open:
        return
    with suppress(epochs.Driven):
        drive(ledger, plan, as_json=False, address=address, hosts=Hosts(use_ray=False))


def _drive_here(
    ledger: Ledger, plan: Plan, reps: int, driver: epochs.Driver, hosts: Hosts, note: Note, *, as_json: bool
) -> Ending:
    sweep(scratch_root())  # a runner that was killed left its folder: it may be what fills the disk
    every, slots = trials(plan, reps), local_slots(plan.limits, plan.parallel)
    _say(f"{len(every)} trials planned, {slots} at a time", quiet=as_json)
    backend = _backend(plan.limits, slots, use_ray=hosts.use_ray)
    # After the backend: importing Ray sets a handler for SIGTERM.
    with _interruptible() as interrupt, view(as_json=as_json, terminal=sys.stdout.isatty()) as shown:
        return Dispatcher(
            plan,
            every,
            ledger,
            backend,
            driver,
            interrupt=interrupt,
            on_change=shown.show,
            tell=shown.tell,
            note=note,
        ).run()


def _drive_pods(
    plan: Plan,
    reps: int,
    address: StoreSpec,
    driver: epochs.Driver,
    hosts: Hosts,
    note: Note,
    *,
    as_json: bool,
) -> Ending:
    from trialfleet_controller.hosting.division import width
    from trialfleet_controller.hosting.drive import drive, pods
    from trialfleet_controller.hosting.place import place

    _say(f"{reps * len(plan.cells)} trials planned, at most {width(plan)} at a time", quiet=as_json)
    site = pods(
        plan,
        address,
        elsewhere=hosts.ray_address is not None,
        keep_failed=hosts.keep_failed,
        cluster_gone=hosts.cluster_gone,
    )
    with (
        place(use_ray=hosts.use_ray, address=hosts.ray_address, metrics_port=hosts.metrics_port) as where,
        _interruptible() as interrupt,
        view(as_json=as_json, terminal=sys.stdout.isatty()) as shown,
    ):
        return drive(plan, reps, site, where, driver, interrupt, shown, note)


@contextmanager
def _store_and_disk(ledger: Ledger) -> Generator[None]:
    """What the operator can mend, said as such."""
    try:
        with disk_room(f"{scratch_root()} or {ledger.store.url}"):
            yield
    except StoreError as error:
        raise OperatorError(
            str(error),
            where=ledger.store.url,
            hint="nothing is lost: mend the store, then `trialfleet resume`",
        ) from error


def finish(ending: Ending, store_url: str, campaign: str) -> None:
    """After the driving: the exit that belongs to the ending. Raises `OperatorError` or `click.Abort`."""
    at = f"{store_url.rstrip('/')}/{campaign}"
    match ending:
        case Ending.COMPLETE | Ending.CANCELLED:
            return
        case Ending.INTERRUPTED:
            raise click.Abort
        case Ending.HALTED:
            raise OperatorError(
                "halted before the end",
                where=at,
                hint=f"`trialfleet status {at}` says why; mend it, then `trialfleet resume --lift {at}`",
            )
        case Ending.OUTAGE:
            raise OperatorError(
                "stopped: attempts are lost in a row before they begin, or to a full disk or a broken store",
                where=at,
                hint=f"no trial is given up: make room or mend the store (`trialfleet doctor`), then "
                f"`trialfleet resume {at}`",
            )
        case Ending.OUT_OF_MONEY:
            raise OperatorError(
                "the campaign's cost cap does not allow another trial",
                where=f"{at}: limits.cost_usd.campaign",
                hint=f"what is measured stays; `trialfleet resume --cost USD {at}` goes on with another cap",
            )


def _backend(limits: Limits, slots: int, *, use_ray: bool) -> Backend:
    if not use_ray:
        from trialfleet_controller.process_backend import ProcessBackend

        return ProcessBackend(slots=slots)
    from trialfleet_controller.local import RayBackend

    return RayBackend(slots=slots, cpu=limits.cpu, memory_bytes=limits.memory_bytes)


@contextmanager
def _interruptible() -> Generator[Interrupt]:
    """SIGINT and SIGTERM ask; handlers are restored afterwards."""
    interrupt = Interrupt()

    def ask(number: int, frame: FrameType | None) -> None:
        del number, frame
        interrupt.ask()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(message: str, *, quiet: bool = False) -> None:
    if not quiet:
        click.echo(message, err=True)
