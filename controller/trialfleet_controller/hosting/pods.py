"""Driving a campaign whose runners are pods: how its dispatchers reach store and pods, and their jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

from trialfleet_controller.backends.attempt_times import grants_expire_s
from trialfleet_controller.backends.protocol import Backend
from trialfleet_controller.dispatch.drive_options import AmendedLimits, DriveOptions
from trialfleet_controller.dispatch.epochs import Driver
from trialfleet_controller.dispatch.events import Note
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt
from trialfleet_controller.dispatch.tally import CampaignTally
from trialfleet_controller.hosting.division import Shard, shards, width
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.monitor import monitor
from trialfleet_controller.hosting.place import Place
from trialfleet_controller.hosting.shard_host import DispatcherJob
from trialfleet_controller.status.progress import View
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.campaign_spec import StoreSpec
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.trial_order import planned_trials


@dataclass(frozen=True)
class Pods:
    """`address`: the store; its `pod_endpoint` is what grants are signed for."""

    address: StoreSpec
    options: DriveOptions

    def store(self) -> Store:
        return open_store(
            self.address.url,
            endpoint=self.address.endpoint,
            grant_endpoint=self.address.pod_endpoint,
            path_style=self.address.path_style,
        )

    def backend(self, plan: Plan, shard: Shard, tell: Callable[[str], None]) -> Backend:
        from trialfleet_controller.backends.kube.backend import THREADS, KubernetesBackend
        from trialfleet_controller.backends.kube.client import Client

        options = self.options
        return KubernetesBackend(
            plan,
            Client.connect(options.context, threads=THREADS),
            store_url=self.address.url,
            namespace=shard.namespace,
            shard=shard.index,
            parallel=options.parallel,
            max_pending=options.max_pending,
            keep_failed=options.keep_failed,
            elsewhere=lambda cluster_id, only_named: (
                not options.cluster_gone
                and runs_elsewhere(
                    Ledger(self.store(), plan.campaign), shard, plan, cluster_id=cluster_id, only_named=only_named
                )
            ),
            tell=tell,
        )


def runs_elsewhere(
    ledger: Ledger, shard: Shard, plan: Plan, *, cluster_id: str | None, only_named: bool = False
) -> bool:
    """Whether a pod of the shard's namespace may run in another cluster than `cluster_id`. Its attempt has a start
    and no end, its deadline has not passed, and its intent does not name this cluster. `only_named`: the intent
    names another one."""
    here = {cluster_id, None} if only_named else {cluster_id} - {None}
    since = time.time() - grants_expire_s(plan)
    return any(
        attempt.start is not None
        and attempt.start.pod is not None
        and attempt.end is None
        and attempt.start.at > since
        and attempt.intent.cluster_id not in here
        for trial in ledger.survey().open
        if shard.shares_namespace(trial)
        for attempt in ledger.attempts.chain(trial)
    )


def drive_shards(
    plan: Plan,
    limits: AmendedLimits,
    access: Pods,
    place: Place,
    driver: Driver,
    interrupt: Interrupt,
    view: View,
    note: Note,
    *,
    planned: PlannedReps,
) -> Ending:
    """Drive every shard to its end. `planned`: as the campaign stands. Raises what `monitor` raises."""
    name = f"{plan.campaign}-{plan.uid[:8]}-{driver.number}"
    here = version("trialfleet")
    jobs = [
        DispatcherJob(
            plan.campaign,
            shard,
            driver.number,
            limits.reps,
            access,
            here,
            limits.ends_at,
            obey_futility=access.options.obey_futility,
        )
        for shard in shards(plan, access.options)
    ]
    with place(name, Pool.of(plan, access.options, limits.cost_usd), jobs) as supervisor:
        tally = CampaignTally.of(planned_trials(plan, planned))
        tally.left_out = planned.left_out(plan.cell_names)
        return monitor(supervisor, driver, interrupt, view, note, empty=tally, limits=plan.limits)


def pods(plan: Plan, address: StoreSpec, options: DriveOptions, *, elsewhere: bool) -> Pods:
    """`elsewhere`: dispatchers run on other machines. These reach the store as pods do, and use their own
    service account instead of this user's kubeconfig."""
    assert plan.kubernetes is not None
    seen = address.pod_endpoint or plan.kubernetes.pod_endpoint
    address = address.model_copy(update={"pod_endpoint": seen})
    options = replace(options, parallel=width(plan, options))
    if elsewhere:
        address = address.model_copy(update={"endpoint": seen or address.endpoint})
        options = replace(options, context=None)
    return Pods(address, options)
