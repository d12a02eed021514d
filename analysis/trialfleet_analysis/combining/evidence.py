"""What a campaign brings to a combination: the counts of its declared contrast, as its own report has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from trialfleet_analysis.analysis_plan.reading import columns_of, scheme_of
from trialfleet_analysis.cells import cell_counts
from trialfleet_analysis.ledger import Frame
from trialfleet_analysis.tables.columns import texts
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.rows import Use
from trialfleet_designs.comparison.columns import FourCounts, counted, trials_run
from trialfleet_designs.comparison.contrast import pair_tasks
from trialfleet_designs.comparison.pair_evidence import PairEvidence
from trialfleet_designs.protocol import Observed
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import plural


@dataclass(frozen=True, eq=False)
class CampaignEvidence:
    """One campaign. `label`: its name, unique among those that are combined. `tasks`: those that its
    contrast is made of, an entry of `four` each. `identities`: every trial's id with its agent's seed,
    and the digests of bundles: what two campaigns that hold the same trial have in common. `evidence`: what its
    bets have won; None: it has a fixed end, and has reached it."""

    label: str
    where: str
    frame: Frame
    primary: Primary
    tasks: tuple[str, ...]
    four: FourCounts
    lost: int
    verified: bool
    identities: frozenset[object]
    evidence: PairEvidence | None = None
    tampered: str = ""  # what is not as it was written

    @property
    def plan(self) -> Plan:
        return self.frame.plan

    @property
    def trials(self) -> int:
        return int(self.four[1].sum() + self.four[3].sum())


def campaign_evidence(found: CampaignTables, where: str) -> CampaignEvidence:
    """Raises `OperatorError` for a campaign whose numbers cannot be added to others': without a declared contrast,
    with declared looks, not finished although it has a fixed end, or without one and not looked at yet."""
    plan = found.frame.plan
    primary = _declared(plan, where)
    schedule = primary.schedule
    if schedule is None or schedule.has_fixed_end:
        _refuse_unfinished(found, where)
    else:
        _refuse_without_look(found.frame, where)
    cells = cell_counts(plan.cell_names, found.tasks, found.trials)
    names = [row.task for row in found.tasks if row.use is Use.PRIMARY]
    scheme = scheme_of(found.frame, found.tasks, names, monitored=False)
    columns = columns_of(found.trials, scheme)
    counts = counted(columns, scheme)
    a, b = scheme.pair(primary)
    compared = pair_tasks(scheme, columns, counts, a, b)
    sides = (primary.treatment, primary.control)
    design = find_design(primary)
    observed = Observed(scheme, columns, counts, trials_run(columns, scheme))
    return CampaignEvidence(
        label=plan.campaign,
        where=where,
        frame=found.frame,
        primary=primary,
        tasks=compared.tasks,
        four=counts.arms(a, b, compared.mask_among(scheme.tasks)),
        lost=sum(one.lost for one in cells if one.condition in sides and one.task in compared.tasks),
        verified=found.verified,
        identities=_identities(found),
        evidence=design.multiply(design.find(primary, observed)),
        tampered=found.tampered,
    )


def labelled(campaigns: Sequence[CampaignEvidence]) -> tuple[CampaignEvidence, ...]:
    """In the order of names, whatever order they were given in. Campaigns of one name get the beginning of their
    plan's uid."""
    names = Counter(one.plan.campaign for one in campaigns)
    ordered = sorted(campaigns, key=lambda one: (one.plan.campaign, one.plan.uid))
    return tuple(
        replace(one, label=f"{one.plan.campaign} ({one.plan.uid[:8]})") if names[one.plan.campaign] > 1 else one
        for one in ordered
    )


def _declared(plan: Plan, where: str) -> Primary:
    if plan.dry_run:
        raise OperatorError(
            "this is a dry run, and its trials are no evidence about the campaign's agent",
            where=where,
            hint="leave it out, or name the campaign itself",
        )
    refused = find_design(plan.declared).refuse_combining(plan.declared)
    if refused is not None:
        raise OperatorError(refused.message, where=where, hint=refused.hint)
    if plan.primary is None:
        raise OperatorError(
            "the campaign declares no primary contrast, so there is nothing to combine",
            where=where,
            hint="leave it out; a campaign that is to be combined declares `primary` before it runs",
        )
    if plan.primary.estimand == "other_repositories":
        raise OperatorError(
            "the campaign's claim is about other repositories, and no test over several of them is specified",
            where=where,
            hint="leave it out, and read its own report",
        )
    return plan.primary


def _refuse_without_look(frame: Frame, where: str) -> None:
    if not frame.decisions:
        raise OperatorError(
            "no complete block of the campaign has been looked at: its bets have won nothing yet",
            where=where,
            hint=f"{frame.way_on}; until then leave it out",
        )


def _refuse_unfinished(found: CampaignTables, where: str) -> None:
    if found.monitored or not found.terminal:
        raise OperatorError(
            f"the campaign is not finished: {found.trials.num_rows:,} of "
            f"{plural(found.frame.planned, 'trial')} are over",
            where=where,
            hint=f"{found.frame.way_on}; until then leave it out",
        )


def _identities(found: CampaignTables) -> frozenset[object]:
    trials = texts(found.trials, "trial")
    seeds: list[Any] = cast("Any", found.trials).column("seed").to_pylist()
    bundles = (digest for digest in texts(found.trials, "bundle_sha256") if digest is not None)
    return frozenset((*zip(trials, seeds, strict=True), *bundles))
