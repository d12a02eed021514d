"""From stores to the three files of a combination."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_analysis.combining.combine import combined
from trialfleet_analysis.combining.effects import combine_effects, common_kind
from trialfleet_analysis.combining.effects_text import word_effects
from trialfleet_analysis.combining.evidence import CampaignEvidence, campaign_evidence, labelled
from trialfleet_analysis.combining.product import multiplied, without_a_fixed_end
from trialfleet_analysis.combining.product_text import worded_product
from trialfleet_analysis.combining.render import to_html, to_json, to_markdown
from trialfleet_analysis.combining.sameness import differences, refuse_different, refuse_twice
from trialfleet_analysis.combining.shown import Combined
from trialfleet_analysis.combining.wording import worded
from trialfleet_analysis.source import CampaignSource
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.output_files import replace_outputs
from trialfleet_statistics.pooling import Weighing


@dataclass(frozen=True)
class CombinationFiles:
    """Where the combination is."""

    html: Path
    markdown: Path
    json: Path


def make_combination(
    sources: Sequence[CampaignSource], *, across: bool = False, weighing: Weighing = "tasks", verify: bool = True
) -> Combined:
    """The declared test over all strata, or, of campaigns without a fixed end, the product of their evidence.

    Raises `OperatorError` for a campaign that cannot be combined (`campaign_evidence`), for campaigns with and
    without a fixed end, or of another question or metric, for the same trial twice, and, unless `across`, for
    campaigns that do not compare the same."""
    found = labelled([_read(source, verify=verify) for source in sources])
    kind = common_kind(found)
    endless = without_a_fixed_end(found)
    refuse_twice(found)
    apart = differences(found)
    if not across:
        refuse_different(apart)
    if kind is not None:
        bare = combine_effects(found, kind, weighing=weighing, apart=apart, versions=_versions())
        return word_effects(bare, found)
    if endless:
        _refuse_weights(weighing)
        return worded_product(multiplied(found, apart=apart, versions=_versions()))
    return worded(combined(found, weighing=weighing, apart=apart, versions=_versions()), found)


def _refuse_weights(weighing: Weighing) -> None:
    if weighing != "tasks":
        raise OperatorError(
            "campaigns without a fixed end are not weighed: their e-values multiply", hint="leave out --weigh"
        )


def _read(source: CampaignSource, *, verify: bool) -> CampaignEvidence:
    store = source.open()
    return campaign_evidence(
        open_campaign(store, source.campaign, verify=verify), f"{store.url}/{source.campaign}"
    )


def write_combination(found: Combined, folder: Path) -> CombinationFiles:
    """combined.html, combined.md and combined.json in `folder`, replaced if trialfleet wrote them. `OperatorError`
    when they cannot be written or are somebody else's."""
    written = CombinationFiles(*(folder / f"combined.{kind}" for kind in ("html", "md", "json")))
    texts = {written.html: to_html(found), written.markdown: to_markdown(found), written.json: to_json(found)}
    replace_outputs(folder, {path.name: text.encode() for path, text in texts.items()}, what="combination")
    return written


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("trialfleet", "numpy", "scipy", "statsmodels")}
