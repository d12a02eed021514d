"""Driving a frozen campaign on this machine, from the claim to its last trial: what `run` and `resume` share."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import click

from trialfleet_controller import epochs
from trialfleet_controller.backend import Backend
from trialfleet_controller.capacity import local_slots
from trialfleet_controller.disk import disk_room
from trialfleet_controller.dispatcher import Dispatcher, Ending, Interrupt
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.model import check_model
from trialfleet_controller.plan import trials
from trialfleet_controller.progress import view
from trialfleet_runner.agents.protocol import Identity
from trialfleet_runner.agents.registry import agent
from trialfleet_runner.attempt.scratch import scratch_root
from trialfleet_runner.campaign import Amendment, Plan
from trialfleet_runner.contract import Limits
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import StoreError


def effective_reps(plan: Plan, amendments: tuple[Amendment, ...]) -> int:
    """The plan's reps, or those of the amendment that asks for most."""
    return max([plan.reps, *(a.reps for a in amendments if a.reps is not None)])


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
    use_ray: bool = True,
    amend: Callable[[], None] = lambda: None,
) -> Ending:
    """Run what is missing. `amend` is called once this controller is the campaign's only one. Raises
    `OperatorError`; the campaign can be resumed whatever happens."""
    check_model(check_drift(plan), plan.agent, plan.limits)
    slots = local_slots(plan.limits, plan.parallel)
    with _store_and_disk(ledger):
        driver = epochs.claim(ledger.store, plan.campaign, epochs.Pulse(), tell=_say)
        try:
            amend()
        except OperatorError:
            driver.end()
            raise
        every = trials(plan, effective_reps(plan, ledger.amendments()))
        _say(f"{len(every)} trials planned, {slots} at a time", quiet=as_json)
        backend = _backend(plan.limits, slots, use_ray=use_ray)
        # After the backend: importing Ray sets a handler for SIGTERM.
        with _interruptible() as interrupt, view(as_json=as_json, terminal=sys.stdout.isatty()) as shown:
            ending = Dispatcher(
                plan, every, ledger, backend, driver, interrupt=interrupt, on_change=shown.show, tell=shown.tell
            ).run()
        driver.end()
    return ending


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
                hint="what is measured stays; a campaign of another name may go on with another cap",
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
