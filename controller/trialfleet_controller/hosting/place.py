"""Where supervisor and dispatchers run: on a private Ray, on a Ray cluster, or in threads of this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from trialfleet_controller.backends.local.capacity import UNBOUNDED, local_slots
from trialfleet_controller.dispatch.events import LOG_VARIABLE
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import Supervisor
from trialfleet_controller.hosting.shard_host import DispatcherJob, ShardHost
from trialfleet_controller.hosting.supervisor import CampaignSupervisor
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.errors import OperatorError

if TYPE_CHECKING:
    from trialfleet_controller.hosting.private_ray import PrivateRay

WORTH_A_RAY = 200  # planned trials of a local campaign: Ray takes some 10 s to start
_CPUS = 4  # of the private Ray of a Kubernetes campaign

# Hosts a campaign, given the name of its actors, its limits and its jobs.
Place = Callable[[str, Pool, Sequence[DispatcherJob]], AbstractContextManager[Supervisor]]


@dataclass(frozen=True)
class Hosts:
    """Where the controller's own parts run, and where its log goes. `ray`: through Ray or not; None: the number of
    trials decides. `ray_address`: None: a private Ray. `log`: a file for JSON lines; "-": standard error; None: no
    log. `metrics_port`: where a private Ray exports metrics. `private`: that Ray, if it has started already."""

    ray: bool | None = None
    ray_address: str | None = None
    log: str | None = None
    metrics_port: int | None = None
    private: PrivateRay | None = None

    def through_ray(self, *, local: bool, trials: int) -> bool:
        """Whether Ray hosts a campaign of this many trials: its start takes longer than a few small runs.

        >>> Hosts().through_ray(local=True, trials=199), Hosts(ray=True).through_ray(local=True, trials=2)
        (False, True)
        """
        return (not local or trials >= WORTH_A_RAY) if self.ray is None else self.ray

    @staticmethod
    def asked(
        *,
        ray: bool | None,
        ray_address: str | None,
        log: str | None,
        local: bool,
        metrics_port: int | None = None,
    ) -> Hosts:
        """From the options of a command. Raises `OperatorError` when they contradict each other."""
        if ray_address is not None and (ray is False or local):
            raise OperatorError(
                "a local campaign does not use a Ray cluster" if local else "it contradicts --no-ray",
                where="--ray-address",
                hint="leave it out" if local else "drop one of --ray-address and --no-ray",
            )
        if metrics_port is not None and (ray is False or local or ray_address is not None):
            raise OperatorError(
                "only a Kubernetes campaign exports metrics"
                if local
                else "only a Ray that starts with this command exports metrics there",
                where="--metrics-port",
                hint="leave it out; nodes of a Ray cluster decide where they export (docs/reference/metrics.md)",
            )
        log = log or ("-" if os.environ.get(LOG_VARIABLE) == "json" else None)
        return Hosts(ray, ray_address, log, metrics_port)


@contextmanager
def early_ray(hosts: Hosts, spec: CampaignSpec, tasks: int) -> Generator[Hosts]:
    """`hosts` with the private Ray that a campaign of so many tasks needs, if it needs one, until the block ends.
    It starts while the campaign is prepared, since both take many seconds. Raises `OperatorError` when not one
    trial fits on this machine."""
    local = spec.kubernetes is None
    trials = tasks * len(spec.single_conditions) * spec.reps
    if hosts.ray_address is not None or not hosts.through_ray(local=local, trials=trials):
        yield hosts
        return
    from trialfleet_controller.hosting.private_ray import PrivateRay
    from trialfleet_controller.hosting.ray_backend import ray_for

    limits = spec.limits.frozen()
    if local:
        slots = local_slots(limits, spec.limits.parallel or UNBOUNDED)
        private = ray_for(slots=slots, cpu=limits.cpu, memory_bytes=limits.memory_bytes)
    else:
        private = PrivateRay(cpus=_CPUS, metrics_port=hosts.metrics_port)
    with closing(private):
        yield replace(hosts, private=private)


@contextmanager
def place(hosts: Hosts, *, trials: int) -> Generator[Place]:
    """Where a Kubernetes campaign of so many trials is hosted. Raises `OperatorError`.

    Enter it before signal handlers are set: importing Ray sets one for SIGTERM.
    """
    if not hosts.through_ray(local=False, trials=trials):
        yield lambda _, pool, jobs: in_threads(pool, jobs)
        return
    from trialfleet_controller.hosting import on_ray

    if hosts.ray_address is None:
        from trialfleet_controller.hosting.private_ray import PrivateRay

        with closing(hosts.private or PrivateRay(cpus=_CPUS, metrics_port=hosts.metrics_port)) as private:
            yield partial(on_ray.hosted, private.ray)
        return
    from trialfleet_controller.hosting.joined_ray import JoinedRay

    with closing(JoinedRay(hosts.ray_address)) as joined:
        yield partial(on_ray.hosted, joined.ray, cut_off=joined.cut_off)


@contextmanager
def in_threads(pool: Pool, jobs: Sequence[DispatcherJob]) -> Generator[Supervisor]:
    """The supervisor, with its dispatchers running in threads of this process, without Ray; the block ends when
    none of them runs."""
    campaign = CampaignSupervisor(pool, len(jobs))
    hosts = [ShardHost(job, campaign.exchange) for job in jobs]
    try:
        for host in hosts:
            host.start()
        yield campaign
    finally:
        for host in hosts:
            host.close()
