"""Campaigns without a fixed end, combined: their e-values multiply. Pure.

Where no campaign has a difference, the evidence E of each has mean 1 at most whenever it is looked at, and so has
the product of independent campaigns: p = min(1, 1 / E). The factors are the evidence at each campaign's last look.
The largest evidence over its looks, which the p of a single campaign uses, is no e-value and does not multiply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trialfleet_analysis.combining.combine import common_name, in_several, least_alpha
from trialfleet_analysis.combining.evidence import CampaignEvidence
from trialfleet_analysis.combining.sameness import CampaignDifference
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.comparison.pair_evidence import PairEvidence
from trialfleet_ledger.errors import OperatorError
from trialfleet_statistics.estimates import rejects
from trialfleet_statistics.sequential import anytime_p


@dataclass(frozen=True, kw_only=True)
class MultipliedCampaign(PairEvidence):
    """One factor: what a campaign's bets have won, and whose they are."""

    label: str
    where: str
    uid: str
    treatment: str
    control: str


@dataclass(frozen=True)
class EvidenceProduct:
    """Several campaigns without a fixed end. `log_evidence`: ln E of all together, the sum of theirs; `p_value`:
    1 over E, at most 1, for "no difference in any of them". `direction`: of all pairs; `conflict`: a campaign
    whose evidence is above 1 points the other way. `differences`: what the campaigns do not have in common; with
    any, they were combined on request."""

    schema_version: Literal[1]
    treatment: str
    control: str
    alpha: float
    verified: bool
    decision: Outcome
    answer: tuple[str, ...]
    cautions: tuple[str, ...]
    log_evidence: float
    p_value: float
    direction: int
    conflict: bool
    campaigns: tuple[MultipliedCampaign, ...]
    shared_tasks: tuple[str, ...]
    differences: tuple[CampaignDifference, ...]
    versions: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.treatment} − {self.control}"


def without_a_fixed_end(campaigns: Sequence[CampaignEvidence]) -> bool:
    """Whether all of them are; False: none is. Raises `OperatorError` for campaigns of both kinds."""
    kinds = {one.evidence is not None for one in campaigns}
    if len(kinds) < 2:
        return kinds == {True}
    endless = ", ".join(one.label for one in campaigns if one.evidence is not None)
    raise OperatorError(
        f"campaigns without a fixed end (primary.stop.anytime: {endless}) multiply their e-values, the others add "
        "their trials up in an exact test: no test over both kinds is specified",
        where=" and ".join(one.where for one in campaigns),
        hint="combine the campaigns of each kind on their own",
    )


def multiplied(
    campaigns: Sequence[CampaignEvidence],
    *,
    apart: Sequence[CampaignDifference] = (),
    versions: Mapping[str, str],
) -> EvidenceProduct:
    """Every number, without its sentences. `campaigns`: by `labelled`; where alphas differ, the least holds."""
    factors = tuple(_factor(one, one.evidence) for one in campaigns if one.evidence is not None)
    alpha, total = least_alpha(campaigns), math.fsum(one.log_evidence for one in factors)
    favoured = [one.side for one in factors if one.log_evidence > 0]
    side = favoured[0] if favoured else 0
    conflict = not side or any(one != side for one in favoured)
    return EvidenceProduct(
        schema_version=1,
        treatment=common_name([one.primary.treatment for one in campaigns], "treatment"),
        control=common_name([one.primary.control for one in campaigns], "control"),
        alpha=alpha,
        verified=all(one.verified for one in campaigns),
        decision=_decided(anytime_p(total), alpha, side, conflict=conflict),
        answer=(),
        cautions=(),
        log_evidence=total,
        p_value=anytime_p(total),
        direction=side,
        conflict=conflict,
        campaigns=factors,
        shared_tasks=in_several([sorted(_tasks(one)) for one in campaigns]),
        differences=tuple(apart),
        versions=dict(versions),
    )


def _factor(one: CampaignEvidence, found: PairEvidence) -> MultipliedCampaign:
    return MultipliedCampaign(
        label=one.label,
        where=one.where,
        uid=one.plan.uid,
        treatment=one.primary.treatment,
        control=one.primary.control,
        **vars(found),
    )


def _tasks(one: CampaignEvidence) -> set[str]:
    return {counts.task for decision in one.frame.decisions for counts in decision.stage}


def _decided(p: float, alpha: float, side: int, *, conflict: bool) -> Outcome:
    if not rejects(p, alpha):
        return "not_shown"
    return "conflict" if conflict else "more" if side > 0 else "less"
