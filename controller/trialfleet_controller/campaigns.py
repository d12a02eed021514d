"""Which campaign a command means: a campaign file, its folder in a store, or a name with --store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.open import open_store
from trialfleet_runner.store.protocol import Store

if TYPE_CHECKING:
    from trialfleet_controller.spec import CampaignFile


@dataclass(frozen=True)
class Campaign:
    """`file` is None when the campaign was named by its place in a store."""

    name: str
    store: Store
    file: CampaignFile | None = None


def find(campaign: str, store: str | None = None) -> Campaign:
    """Raises `OperatorError` when `campaign` is none of the three."""
    path = Path(campaign)
    if "://" in campaign:
        above, _, name = campaign.rstrip("/").rpartition("/")
        return Campaign(name, open_store(store or above))
    if path.is_file() and path.name != "campaign.json":
        return from_file(path, store)
    folder = path.parent if path.name == "campaign.json" else path
    if (folder / "campaign.json").is_file():
        folder = folder.resolve()
        return Campaign(folder.name, open_store(store or str(folder.parent)))
    if store is not None:
        return Campaign(campaign, open_store(store))
    raise OperatorError(
        "neither a campaign file nor a campaign's folder",
        where=campaign,
        hint="give campaign.yaml, or <store>/<campaign>, or a name with --store",
    )


def from_file(path: Path, store: str | None = None) -> Campaign:
    """The campaign of a campaign file. A store that is a directory is relative to that file."""
    from trialfleet_controller.spec import load_campaign

    file = load_campaign(path)
    opened = (
        open_store(file.spec.store, base=file.folder, where=file.where("store"))
        if store is None
        else open_store(store, where="--store")
    )
    return Campaign(file.spec.campaign, opened, file)
