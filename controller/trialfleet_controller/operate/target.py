"""The cluster and the pods of a campaign, before or after it is planned."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_controller.backends.attempt_times import AttemptSettings
from trialfleet_controller.backends.kube.api_requests import Json
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.manifest import Owner, pod
from trialfleet_controller.backends.local.capacity import UNBOUNDED
from trialfleet_controller.campaigns import CampaignReference
from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import KubernetesPlan
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.treatments import distinct

_NOBODY = "0" * 32


@dataclass(frozen=True)
class FileSettings:
    """What a campaign file says of its attempts. `kubernetes`: with placeholders for what a probe pod finds."""

    campaign: str
    agent_specs: tuple[AgentSpec, ...]
    limits: Limits
    kubernetes: KubernetesPlan | None
    uid: str = _NOBODY


@dataclass(frozen=True)
class ClusterTarget:
    """`settings`: the frozen plan, or `FileSettings`. `pod`: an attempt's, without owner and grants. `width`: how
    many are to run at once, None: as many as fit."""

    client: Client
    kube: KubernetesPlan
    settings: AttemptSettings
    pod: Json
    width: int | None


def target_of(campaign: CampaignReference) -> ClusterTarget:
    """From a campaign file or a frozen plan. Raises `OperatorError`: not for Kubernetes, no kubeconfig."""
    if campaign.file is not None:
        return of_file(campaign.file)
    plan = campaign.ledger.plan()
    return _of(plan, plan.parallel, campaign.name)


def of_file(file: CampaignFile) -> ClusterTarget:
    """See `target_of`."""
    spec, kube = file.spec, None
    if spec.kubernetes is not None:
        found = {"image_id": "", "network": "unenforced", "pod_endpoint": spec.store_spec.pod_endpoint}
        kube = KubernetesPlan.model_validate({**spec.kubernetes.model_dump(), **found})
    settings = FileSettings(spec.campaign, distinct(file.agents.values()), spec.limits.frozen(), kube)
    return _of(settings, spec.limits.parallel or UNBOUNDED, file.where("backend"))


def _of(settings: AttemptSettings, parallel: int, where: str) -> ClusterTarget:
    kube = settings.kubernetes
    if kube is None:
        raise OperatorError(
            "the campaign does not run on Kubernetes",
            where=where,
            hint="add `backend: kubernetes` and a section `kubernetes:` to its file",
        )
    made = pod(settings, trial="a" * 26, attempt=1, owner=Owner("campaign", _NOBODY), grants_url="")
    del made["metadata"]["ownerReferences"]  # the owner does not exist yet
    width = parallel if parallel < UNBOUNDED else None
    return ClusterTarget(Client.connect(kube.context), kube, settings, made, width)
