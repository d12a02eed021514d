"""A campaign on a cluster before it is planned: who is asked, about which pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trialfleet_controller.campaigns import Campaign
from trialfleet_controller.capacity import UNBOUNDED
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.manifest import Owner, pod
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.spec import CampaignFile
from trialfleet_runner.campaign import CampaignSpec, KubernetesPlan, Plan
from trialfleet_runner.errors import OperatorError

Json = dict[str, Any]
_NOBODY = "0" * 32


@dataclass(frozen=True)
class Target:
    """`plan`: frozen, or a sketch without trials. `pod`: an attempt's, as it would be created but for owner and
    grants. `width`: how many shall run at once, None: as many as there is room for."""

    client: Client
    kube: KubernetesPlan
    plan: Plan
    pod: Json
    width: int | None


def target_of(campaign: Campaign) -> Target:
    """Of a campaign file, or of a frozen plan. Raises `OperatorError`: not for Kubernetes, no kubeconfig."""
    if campaign.file is not None:
        return of_file(campaign.file)
    return _of_plan(Ledger(campaign.store, campaign.name).plan(), campaign.name)


def of_file(file: CampaignFile) -> Target:
    """As `target_of`."""
    return _of_plan(sketch(file), file.where("backend"))


def _of_plan(plan: Plan, where: str) -> Target:
    if plan.kubernetes is None:
        raise OperatorError(
            "the campaign does not run on Kubernetes",
            where=where,
            hint="write backend: kubernetes and a section kubernetes: into its file",
        )
    made = pod(plan, trial="a" * 26, attempt=1, owner=Owner("campaign", _NOBODY), grants_url="")
    del made["metadata"]["ownerReferences"]  # nobody's yet
    width = plan.parallel if plan.parallel < UNBOUNDED else None
    return Target(Client.connect(plan.kubernetes.context), plan.kubernetes, plan, made, width)


def sketch(file: CampaignFile) -> Plan:
    """A plan without trials: all that an attempt's pod is made of."""
    spec = file.spec
    return Plan(
        campaign=spec.campaign,
        uid=_NOBODY,
        created=0,
        seed=spec.seed,
        reps=spec.reps,
        agent=spec.agent,
        agent_digest="0" * 64,
        limits=spec.limits.frozen(),
        parallel=spec.limits.parallel or UNBOUNDED,
        retries=spec.limits.retries,
        blocks_ahead=spec.limits.blocks_ahead,
        conditions={},
        tasks=(),
        cells=(),
        inputs={},
        versions={},
        kubernetes=_kubernetes(spec),
    )


def _kubernetes(spec: CampaignSpec) -> KubernetesPlan | None:
    """Before anybody has looked."""
    if spec.kubernetes is None:
        return None
    endpoint = spec.store_spec.pod_endpoint
    return KubernetesPlan(**spec.kubernetes.model_dump(), image_id="", network="unenforced", pod_endpoint=endpoint)
