"""Resolves the campaign that a command names: a campaign file, its folder in a store, or a name with --store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store

if TYPE_CHECKING:
    from trialfleet_controller.planning.campaign_file import CampaignFile
    from trialfleet_controller.planning.dry_run import DryRunAgent
    from trialfleet_ledger.campaign_spec import StoreSpec
    from trialfleet_ledger.ledger import Ledger
    from trialfleet_ledger.plan import Plan


@dataclass(frozen=True)
class CampaignReference:
    """`file` is None when the campaign was named by its place in a store. `pod_endpoint`: what the plan says then
    that pods reach the store at. `origin`: of a dry run, the campaign's own store, which is only read."""

    name: str
    store: Store
    file: CampaignFile | None = None
    pod_endpoint: str | None = None
    origin: Store | None = None

    @property
    def ledger(self) -> Ledger:
        from trialfleet_ledger.ledger import Ledger

        return Ledger(self.store, self.name)

    @property
    def address(self) -> StoreSpec:
        """Where the store is, for another process."""
        from trialfleet_ledger.campaign_spec import StoreSpec

        bare = StoreSpec(url="", pod_endpoint=self.pod_endpoint)
        spec = self.file.spec.store_spec if self.file is not None else bare
        return spec.model_copy(update={"url": self.store.url})


def find(campaign: str, store: str | None = None) -> CampaignReference:
    """Raises `OperatorError` when `campaign` is none of the three."""
    path = Path(campaign)
    if "://" in campaign:
        above, _, name = campaign.rstrip("/").rpartition("/")
        return CampaignReference(name, open_store(store or above))
    if path.is_file() and path.name != "campaign.json":
        return from_file(path, store)
    folder = path.parent if path.name == "campaign.json" else path
    if (folder / "campaign.json").is_file():
        folder = folder.resolve()
        return CampaignReference(folder.name, open_store(store or str(folder.parent)))
    if store is not None:
        return CampaignReference(campaign, open_store(store))
    raise OperatorError(
        "neither a campaign file nor a campaign's folder",
        where=campaign,
        hint="give campaign.yaml, or <store>/<campaign>, or a name with --store",
    )


def signing_for_pods(campaign: CampaignReference, plan: Plan) -> CampaignReference:
    """With a store whose grants are for the address that pods see: a campaign file says it, a URL cannot, so the
    plan has kept it."""
    endpoint = plan.kubernetes.pod_endpoint if plan.kubernetes is not None else None
    if campaign.file is not None or endpoint is None:
        return campaign
    store = open_store(campaign.store.url, grant_endpoint=endpoint)
    return replace(campaign, store=store, pod_endpoint=endpoint)


def from_file(path: Path, store: str | None = None, dry_run: DryRunAgent | None = None) -> CampaignReference:
    """The campaign of a campaign file, or its dry run with this agent. A store that is a directory is relative to
    that file."""
    from trialfleet_controller.planning.campaign_file import load_campaign
    from trialfleet_controller.planning.dry_run import dry_run_store, with_dry_run_agents

    file = load_campaign(path)
    spec = file.spec.store_spec
    url = spec.url if store is None else store
    opened = partial(
        open_store,
        base=file.folder if store is None else None,
        where=file.where("store") if store is None else "--store",
        endpoint=spec.endpoint,
        grant_endpoint=spec.pod_endpoint,
        path_style=spec.path_style,
    )
    if dry_run is None:
        return CampaignReference(file.spec.campaign, opened(url), file)
    there = opened(dry_run_store(url, dry_run))
    return CampaignReference(file.spec.campaign, there, with_dry_run_agents(file, dry_run), origin=opened(url))
