"""Driving a campaign whose runners are pods: the jobs of its dispatchers, and where they are hosted."""

from __future__ import annotations

from importlib.metadata import version

from trialfleet_controller.epochs import Driver
from trialfleet_controller.events import Note
from trialfleet_controller.hosting.division import shards, width
from trialfleet_controller.hosting.follow import follow
from trialfleet_controller.hosting.host import Job, Site
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.place import Place
from trialfleet_controller.hosting.pods import Pods
from trialfleet_controller.plan import trials
from trialfleet_controller.progress import View
from trialfleet_controller.shards import Ending
from trialfleet_controller.steering import Interrupt
from trialfleet_controller.tally import Tally
from trialfleet_runner.campaign import Plan, StoreSpec


def drive(
    plan: Plan, reps: int, site: Site, place: Place, driver: Driver, interrupt: Interrupt, view: View, note: Note
) -> Ending:
    """To the end of every shard. Raises what `follow` raises."""
    name = f"{plan.campaign}-{plan.uid[:8]}-{driver.number}"
    with place(name, Pool.of(plan), jobs(plan, reps, driver.number, site)) as supervisor:
        return follow(supervisor, driver, interrupt, view, note, empty=Tally.of(trials(plan, reps)))


def jobs(plan: Plan, reps: int, epoch: int, site: Site) -> list[Job]:
    here = version("trialfleet")
    return [Job(plan.campaign, shard, epoch, reps, site, here) for shard in shards(plan)]


def pods(
    plan: Plan, address: StoreSpec, *, elsewhere: bool, keep_failed: int = 0, cluster_gone: bool = False
) -> Pods:
    """`elsewhere`: dispatchers run on machines of their own. Those see the store as pods do, and use their own
    service account instead of this user's kubeconfig."""
    assert plan.kubernetes is not None
    kube = plan.kubernetes
    seen = address.pod_endpoint or kube.pod_endpoint
    address = address.model_copy(update={"pod_endpoint": seen})
    if elsewhere:
        address = address.model_copy(update={"endpoint": seen or address.endpoint})
    return Pods(
        address,
        context=None if elsewhere else kube.context,
        parallel=width(plan),
        max_pending=kube.max_pending,
        creates_per_s=kube.creates_per_s,
        creates_burst=kube.creates_burst,
        keep_failed=keep_failed,
        cluster_gone=cluster_gone,
    )
