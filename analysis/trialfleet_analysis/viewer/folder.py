"""The viewer's pages as a folder of files, for a store of artifacts: no process, no network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from trialfleet_analysis.tables.columns import texts
from trialfleet_analysis.viewer.addresses import FolderAddresses
from trialfleet_analysis.viewer.assets import ASSETS, asset
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.discordant import discordant
from trialfleet_analysis.viewer.site import CampaignSite, sides_of
from trialfleet_ledger.errors import OperatorError


def write_folder(watched: WatchedCampaign, folder: Path) -> int:
    """Every page of the campaign as it stands, with its answer; how many files. Raises `OperatorError` where the
    campaign does not exist, or the folder is not empty or cannot be written."""
    if not watched.counts().exists:
        where = f"{watched.store.url}/{watched.campaign}"
        raise OperatorError("there is no such campaign", where=where, hint="`trialfleet run` makes one")
    try:
        return _written(watched, folder)
    except OSError as error:
        hint = "give another folder"
        raise OperatorError(f"cannot write: {error.strerror}", where=str(folder), hint=hint) from error


def _written(watched: WatchedCampaign, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise OperatorError("the folder is not empty", where=str(folder), hint="give another one with --bundle")
    written = 0
    for name, content in pages(watched):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        written += 1
    return written


def pages(watched: WatchedCampaign) -> Iterator[tuple[str, str | bytes]]:
    """Path below the folder, and content, of each file."""
    site = CampaignSite(watched, FolderAddresses(), answer_wait_s=None)
    below = replace(site, to=FolderAddresses("../"))
    yield from ((f"assets/{name}", asset(name)) for name in ASSETS if name not in ("live.js", "refresh.js"))
    yield "index.html", site.home({})
    yield "trials.html", site.trials({})
    yield "trials.csv", site.table({})
    yield "trials.parquet", site.parquet({})
    found = watched.state().tables
    for trial in texts(found.trials, "trial"):
        yield f"trial/{trial}.html", below.trial(trial or "")
    sides = sides_of(found, "", "")
    for task in discordant(found.trials, [row.task for row in found.tasks], *sides) if sides else ():
        for pair in (*task.only_a, *task.only_b):
            yield f"pair/{pair.a}-{pair.b}.html", below.pair(pair.a, pair.b)
