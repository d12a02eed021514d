"""The list of contents of a bundle."""

from __future__ import annotations

from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.base import BoundRecord, Count, Frozen, Name, Ordinal, Sha256
from trialfleet_ledger.records.trial import Trial


class BundleFile(Frozen):
    """One member of a bundle. `size`: its bytes as it is; `left_out`: those that it lacks, as it was too long."""

    path: str
    sha256: Sha256
    size: Count
    left_out: Count = 0


class Manifest(BoundRecord):
    """`manifest.json`, the first member of every bundle: what is in it and what made it."""

    campaign: Name
    trial: Trial
    attempt: Ordinal
    task: Sha256
    condition: Sha256
    agent: AgentSpec
    limits: Limits
    isolation: str
    warnings: tuple[str, ...] = ()
    versions: dict[str, str]
    texts: Sha256  # of the texts that this runner has for models
    files: tuple[BundleFile, ...]
