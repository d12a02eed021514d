"""Which campaign in which store the words on the command line mean."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_ledger.errors import OperatorError

if TYPE_CHECKING:
    from trialfleet_ledger.store.protocol import Store


@dataclass(frozen=True)
class CampaignSource:
    """`store`: a URL or directory as `open_store` takes it; `base`: what a relative directory starts from."""

    store: str
    campaign: str
    base: Path | None = None
    endpoint: str | None = None
    path_style: bool | None = None

    def open(self) -> Store:
        from trialfleet_ledger.store.open import open_store

        return open_store(self.store, base=self.base, endpoint=self.endpoint, path_style=self.path_style)

    def default_folder(self) -> Path:
        """Beside the campaign in a directory store, else in the working directory, where a dry run has a folder of
        its store's name."""
        from trialfleet_ledger.campaign_spec import DRY_RUN_PREFIX

        opened = self.open()
        name = f"{self.campaign}-report"
        if opened.folder is not None:
            return plain(opened.folder) / name
        last = opened.url.rstrip("/").rpartition("/")[2]
        return Path(last, name) if last.startswith(DRY_RUN_PREFIX) else Path(name)


def plain(path: Path) -> Path:
    """`path` without `..`, where that names the same place: after a symbolic link it may not.

    >>> plain(Path("/a/no-such-folder/../runs")).as_posix()
    '/a/runs'
    """
    short = Path(os.path.normpath(path))
    return short if short.resolve() == path.resolve() else path


def find_source(campaign: str, store: str | None) -> CampaignSource:
    """A campaign file; a campaign's folder (also s3://bucket/prefix/name); or a name, with `store`.

    Raises `OperatorError` when it is none of these.
    """
    path = Path(campaign)
    if "://" in campaign:
        above, _, name = campaign.rstrip("/").rpartition("/")
        return CampaignSource(store or above, name)
    if path.is_file():
        return _from_file(path, store)
    if (path / "campaign.json").is_file():
        folder = path.resolve()
        return CampaignSource(store or str(folder.parent), folder.name)
    if store is not None:
        return CampaignSource(store, campaign)
    raise OperatorError(
        "neither a campaign file nor a campaign's folder",
        where=campaign,
        hint="give campaign.yaml, or <store>/<campaign>, or a name with --store",
    )


def _from_file(path: Path, store: str | None) -> CampaignSource:
    if path.name == "campaign.json":
        return CampaignSource(store or str(path.resolve().parent.parent), path.resolve().parent.name)
    from trialfleet_ledger.campaign_spec import CampaignSpec
    from trialfleet_tasks.yamlfile import load

    spec = load(path, CampaignSpec)
    there = spec.store_spec
    return CampaignSource(
        store or there.url,
        spec.campaign,
        base=None if store else path.parent,
        endpoint=there.endpoint,
        path_style=there.path_style,
    )
