"""Drives a frozen campaign from this machine, from the claim to the last trial: for `run` and `resume`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import click

from trialfleet_agents.protocol import Identity
from trialfleet_agents.registry import agent
from trialfleet_controller.backends.local.capacity import MachineSize, disk_room, local_slots
from trialfleet_controller.backends.protocol import Backend
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.attempt_width import FROZEN, WidthBound, width_bound
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.drive_options import AmendedLimits, DriveOptions
from trialfleet_controller.dispatch.events import Note, json_log
from trialfleet_controller.dispatch.looks import Looks
from trialfleet_controller.dispatch.operator_signals import interruptible
from trialfleet_controller.dispatch.shards import Ending, Lease
from trialfleet_controller.hosting.place import Hosts, place
from trialfleet_controller.hosting.pods import drive_shards, pods
from trialfleet_controller.planning.model_check import check_model
from trialfleet_controller.planning.repository_programs import refuse_repository_program
from trialfleet_controller.status.progress import view
from trialfleet_deliveries import texts
from trialfleet_ledger.amendments import most_reps
from trialfleet_ledger.campaign_spec import StoreSpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan, PlannedAgent
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.trial_order import trials
from trialfleet_runner.exposure import refuse_folders
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.scratch import claim_scratch, scratch_root, sweep

ANOTHER_NAME = "start a campaign of another name"


def check_drift(plan: Plan) -> None:
    """Raises `OperatorError` if an agent of this machine is not the planned one, or lacks its model's key."""
    planned = {own.digest: own for own in plan.agents.values()}
    for own in planned.values():
        refuse_repository_program(own.spec)
        found = agent(own.spec.kind).identify(own.spec)
        if found.digest != own.digest:
            raise OperatorError(
                f"the agent has changed since the campaign was planned: {_change(own, found)}",
                where=f"agent: {own.spec.kind}",
                hint=f"install {own.spec.version or 'the planned agent'} again, or {ANOTHER_NAME}",
            )
        check_model(found, own.spec, plan.limits)


def check_texts(plan: Plan) -> None:
    """Raises `OperatorError` when a model would read other texts here than those that were planned."""
    here = texts.digests()
    changed = [name for name in sorted(plan.texts.keys() | here) if plan.texts.get(name) != here.get(name)]
    if changed:
        raise OperatorError(
            f"texts that a model reads have changed since the campaign was planned: {', '.join(changed)}",
            where=str(texts.FOLDER),
            hint="install the version that planned it, or start a campaign of another name",
        )


def _change(own: PlannedAgent, found: Identity) -> str:
    planned = [own.spec.version, own.spec.model]
    here = [found.version, found.model or own.spec.model]
    if planned != here:
        return f"planned {_named(planned)}, this machine has {_named(here)}"
    return (
        f"both are {_named(here)}, but the program's or its options' digest is {found.digest} here, "
        f"{own.digest} in the plan"
    )


def _named(version_and_model: list[str | None]) -> str:
    return " with ".join(name for name in version_and_model if name) or "without a version"


def drive(
    ledger: Ledger,
    plan: Plan,
    options: DriveOptions,
    *,
    as_json: bool,
    address: StoreSpec,
    hosts: Hosts,
    amend: Callable[[], None] = lambda: None,
) -> Ending:
    """Run what is missing. `address`: of the ledger's store; `amend` is called once this controller is the
    campaign's only one. Raises `OperatorError`; the campaign can be resumed after any failure."""
    if plan.kubernetes is None:
        check_texts(plan)
        check_drift(plan)
        local_slots(plan.limits, options.parallel)
        refuse_folders(choose())
        claim_scratch()  # refused before an epoch is claimed
    with _store_and_disk(ledger), json_log(hosts.log, plan.campaign) as note:
        driver = epochs.claim(ledger.store, plan.campaign, epochs.HeartbeatConfig(), tell=_say)
        try:
            amend()
        except OperatorError:
            driver.end()
            raise
        said = ledger.directives
        limits = AmendedLimits.of(plan, said.amendments(), said.first_driven_at(), said.decisions())
        if plan.kubernetes is None:
            ending = _drive_here(ledger, plan, options, limits, driver, hosts, note, as_json=as_json)
        else:
            ending = _drive_pods(ledger, plan, options, limits, address, driver, hosts, note, as_json=as_json)
        driver.end()
    return ending


def stop_what_runs(ledger: Ledger, plan: Plan, address: StoreSpec) -> None:
    """After `cancel --now`: mark pods that outlived their controller as lost, and stop them. A live controller
    does this itself. Without open trials, no cluster is contacted."""
    if not ledger.survey().open:
        return
    with suppress(epochs.AlreadyDriven):
        options, hosts = DriveOptions.of(plan), Hosts(ray=False)
        if drive(ledger, plan, options, as_json=False, address=address, hosts=hosts) is Ending.INTERRUPTED:
            raise click.exceptions.Exit(CommandExit.INTERRUPTED)


def _drive_here(
    ledger: Ledger,
    plan: Plan,
    options: DriveOptions,
    limits: AmendedLimits,
    driver: epochs.Driver,
    hosts: Hosts,
    note: Note,
    *,
    as_json: bool,
) -> Ending:
    sweep(claim_scratch())  # folders of killed runners may fill the disk
    every, slots = trials(plan, most_reps(plan, limits.reps)), local_slots(plan.limits, options.parallel)
    planned = ledger.directives.planned_reps(plan).trials(plan.cell_names)
    bound = width_bound(plan, parallel=options.parallel, reps=limits.reps, machine=MachineSize.here())
    _say(f"{plural(planned, 'trial')} planned, {_at_a_time(bound)}", quiet=as_json)
    backend = _backend(plan.limits, slots, hosts, trials=len(every))
    # After the backend: importing Ray sets a handler for SIGTERM.
    with interruptible() as interrupt, view(as_json=as_json, terminal=sys.stdout.isatty()) as shown:
        return Dispatcher(
            plan,
            every,
            ledger,
            backend,
            driver,
            lease=Lease.whole(options, limits.cost_usd),
            looks=Looks(
                plan,
                lambda: every,
                ledger,
                epoch=driver.number,
                reps=limits.reps,
                obey_futility=options.obey_futility,
            ),
            ends_at=limits.ends_at,
            interrupt=interrupt,
            on_change=shown.show,
            tell=shown.tell,
            note=note,
        ).run()


def _drive_pods(
    ledger: Ledger,
    plan: Plan,
    options: DriveOptions,
    limits: AmendedLimits,
    address: StoreSpec,
    driver: epochs.Driver,
    hosts: Hosts,
    note: Note,
    *,
    as_json: bool,
) -> Ending:
    access = pods(plan, address, options, elsewhere=hosts.ray_address is not None)
    most = ledger.directives.largest_reps(plan).trials(plan.cell_names)
    bound = width_bound(plan, parallel=options.parallel, reps=limits.reps)
    _say(f"up to {plural(most, 'trial')}, at most {_at_a_time(bound)}", quiet=as_json)
    with (
        place(hosts, trials=most) as where,
        interruptible() as interrupt,
        view(as_json=as_json, terminal=sys.stdout.isatty()) as shown,
    ):
        planned = ledger.directives.planned_reps(plan)
        ending = drive_shards(plan, limits, access, where, driver, interrupt, shown, note, planned=planned)
        if ending in (Ending.COMPLETE, Ending.DECIDED, Ending.INCOMPLETE, Ending.CANCELLED):
            _leave_cluster(plan, options, tell=shown.tell)
        return ending


def _at_a_time(bound: WidthBound) -> str:
    """With the reason, where the file asks for more than it allows."""
    number = f"{bound.attempts} at a time"
    return number if bound.remedy is None else f"{number}: {bound.reason} ({FROZEN})"


def _leave_cluster(plan: Plan, options: DriveOptions, *, tell: Callable[[str], None]) -> None:
    """Delete what is left of a campaign that is over, except for failed pods that the operator wants to keep."""
    from trialfleet_controller.backends.kube.client import Client
    from trialfleet_controller.operate.leftovers import delete_owner, keep_owner

    leave = keep_owner if options.keep_failed else delete_owner
    try:
        leave(Client.connect(options.context), plan)
    except OperatorError as error:  # it expires without this
        tell(f"the campaign's ConfigMap stays until it expires: {error}")


@contextmanager
def _store_and_disk(ledger: Ledger) -> Generator[None]:
    """Raises a full disk and an unreachable store as `OperatorError`."""
    try:
        with disk_room(f"{scratch_root()} or {ledger.store.url}"):
            yield
    except StoreError as error:
        raise OperatorError(
            str(error),
            where=ledger.store.url,
            hint=f"nothing is lost: {error.hint or 'fix the store'}, then `trialfleet resume`",
        ) from error


_INCOMPLETE = {
    Ending.CANCELLED: "it was cancelled, and trials that had not started are not measured",
    Ending.OUT_OF_TIME: "its wall-clock limit is reached, and trials that had not started are not measured; "
    "`trialfleet resume --wall-clock SECONDS` starts them",
    Ending.INCOMPLETE: "trials were abandoned after repeated losses, or left out because their records were "
    "changed or deleted, and are not measured",
}


def finish(ending: Ending, store_url: str, campaign: str, *, in_job: bool = False) -> None:
    """Exit as the ending demands: by `OperatorError` or click's `Exit`. `in_job`: a Kubernetes Job
    restarts this command unless it exits 0."""
    at = shlex.quote(f"{store_url.rstrip('/')}/{campaign}")
    match ending:
        case Ending.COMPLETE | Ending.DECIDED:
            return
        case Ending.CANCELLED | Ending.OUT_OF_TIME | Ending.INCOMPLETE:
            _say(f"over and not complete: {_INCOMPLETE[ending]}; `trialfleet status {at}` counts them")
            raise click.exceptions.Exit(CommandExit.DONE if in_job else CommandExit.NOT_COMPLETE)
        case Ending.INTERRUPTED:
            _say(f"trialfleet: interrupted; `trialfleet resume {at}` continues from here")
            raise click.exceptions.Exit(CommandExit.INTERRUPTED)
        case Ending.HALTED:
            raise OperatorError(
                "halted before the end",
                where=at,
                hint=f"`trialfleet status {at}` says why; fix that, then `trialfleet resume --lift {at}`",
            )
        case Ending.OUTAGE:
            raise OperatorError(
                "stopped: attempts are lost in a row before they begin, or to a full disk or a broken store",
                where=at,
                hint="no trial is abandoned: the message above says what the last one was lost to, and "
                f"`trialfleet doctor` checks disk, store and cluster. Fix it, then `trialfleet resume {at}`",
            )
        case Ending.OUT_OF_MONEY:
            raise OperatorError(
                "the campaign's cost cap does not allow another trial",
                where=f"{at}: limits.cost_usd.campaign",
                hint=f"what is measured stays; `trialfleet resume --cost USD {at}` continues with another cap",
            )


def _backend(limits: Limits, slots: int, hosts: Hosts, *, trials: int) -> Backend:
    if not hosts.through_ray(local=True, trials=trials):
        from trialfleet_controller.backends.local.process_backend import ProcessBackend

        return ProcessBackend(slots=slots)
    from trialfleet_controller.hosting.ray_backend import RayBackend

    return RayBackend(slots=slots, cpu=limits.cpu, memory_bytes=limits.memory_bytes, private=hosts.private)


def _say(message: str, *, quiet: bool = False) -> None:
    if not quiet:
        click.echo(message, err=True)
