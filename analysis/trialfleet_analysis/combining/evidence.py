"""What a campaign brings to a combination: the counts of its declared contrast, as its own report has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trialfleet_analysis.analysis_plan.reading import columns_of, scheme_of
from trialfleet_analysis.cells import cell_counts
from trialfleet_analysis.ledger import Frame
from trialfleet_analysis.tables.columns import texts
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.rows import Use
from trialfleet_designs.comparison.columns import FourCounts, counted, rates, trials_run
from trialfleet_designs.comparison.contrast import pair_tasks
from trialfleet_designs.comparison.declared_effect import DeclaredEffect
from trialfleet_designs.comparison.pair_evidence import PairEvidence
from trialfleet_designs.comparison.tasks_like_these import TasksClaim
from trialfleet_designs.protocol import Observed
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.metric import MetricPrimary
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_statistics.comparisons import PairedT, RepositoriesTest
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.pooling import CampaignVariance


@dataclass(frozen=True, eq=False)
class CampaignEvidence:
    """One campaign. `label`: its name, unique among those that are combined. `tasks`: those that its
    contrast is made of, an entry of `four` each. `identities`: every trial's id with its agent's seed,
    and the digests of bundles: what two campaigns that hold the same trial have in common. `evidence`: what its
    bets have won; None: it has a fixed end, and has reached it. `claim`: what its tasks say of others; `effect`:
    of a declared question or metric; None: a contrast is declared."""

    label: str
    where: str
    frame: Frame
    primary: Primary | QuestionPrimary | MetricPrimary
    tasks: tuple[str, ...]
    four: FourCounts
    lost: int
    verified: bool
    identities: frozenset[object]
    claim: TasksClaim
    evidence: PairEvidence | None = None
    effect: DeclaredEffect | None = None
    tampered: str = ""  # what is not as it was written
    cut_short: bool = False  # by a cancellation or the wall-clock limit, before its last trial

    @property
    def plan(self) -> Plan:
        return self.frame.plan

    @property
    def estimand(self) -> Estimand:
        """The declared one; about other repositories, too, it is one about other tasks."""
        return "these_tasks" if self.primary.estimand == "these_tasks" else "tasks_like_these"

    def judge_tasks(self, alpha: float) -> PairedT | RepositoriesTest:
        """The test of tasks like these, as its own report makes it."""
        rate_a, rate_b = rates(self.four[0], self.four[1]), rates(self.four[2], self.four[3])
        return self.claim.judge(rate_a, rate_b, np.ones(rate_a.size, dtype=np.bool_), alpha)

    def variance_of_tasks(self) -> CampaignVariance:
        """Of the mean difference, as of tasks like these: what other tasks would have changed is in it; of several
        repositories, within them."""
        found = self.judge_tasks(0.05)
        if isinstance(found, RepositoriesTest):
            return CampaignVariance(found.error and found.error**2, reason=None if found.error else found.reason)
        differences = rates(self.four[0], self.four[1]) - rates(self.four[2], self.four[3])
        if differences.size < 2:
            return CampaignVariance(None, reason="fewer than two tasks")
        variance = float(np.var(differences, ddof=1)) / differences.size
        if variance <= 0:
            return CampaignVariance(None, reason="all tasks have the same difference")
        return CampaignVariance(variance)

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
        _refuse_without_look(found, where)
    cells = cell_counts(plan.cell_names, found.tasks, found.trials)
    names = [row.task for row in found.tasks if row.use is Use.PRIMARY]
    scheme = scheme_of(found.frame, found.tasks, names, monitored=False)
    columns = columns_of(found.trials, scheme)
    counts = counted(columns, scheme)
    a, b = scheme.pair(primary)
    sides = (primary.treatment, primary.control)
    design = find_design(primary)
    observed = Observed(scheme, columns, counts, trials_run(columns, scheme))
    finding = design.find(primary, observed)
    effect = design.bring_effect(primary, finding, observed)
    compared = pair_tasks(scheme, columns, counts, a, b) if effect is None else effect.compared
    mask = compared.mask_among(scheme.tasks)
    return CampaignEvidence(
        label=plan.campaign,
        where=where,
        frame=found.frame,
        primary=primary,
        tasks=compared.tasks,
        four=counts.arms(a, b, mask),
        lost=sum(one.lost for one in cells if one.condition in sides and one.task in compared.tasks),
        verified=found.verified,
        identities=_identities(found),
        claim=TasksClaim.of(scheme, mask, primary=effect is None),
        evidence=design.multiply(finding),
        effect=effect,
        tampered=found.tampered,
        cut_short=_is_cut_short(found),
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


def _declared(plan: Plan, where: str) -> Primary | QuestionPrimary | MetricPrimary:
    if plan.dry_run:
        raise OperatorError(
            "this is a dry run, and its trials are no evidence about the campaign's agent",
            where=where,
            hint="leave it out, or name the campaign itself",
        )
    refused = find_design(plan.declared).refuse_combining(plan.declared)
    if refused is not None:
        raise OperatorError(refused.message, where=where, hint=refused.hint)
    if isinstance(plan.declared, QuestionPrimary | MetricPrimary):
        return plan.declared
    if plan.primary is None:
        raise OperatorError(
            "the campaign declares no result that is combined, so there is nothing to combine",
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


def _refuse_without_look(found: CampaignTables, where: str) -> None:
    if not found.frame.decisions:
        raise OperatorError(
            "no complete block of the campaign has been looked at: its bets have won nothing yet",
            where=where,
            hint=f"{found.way_on}; until then leave it out",
        )


def _is_cut_short(found: CampaignTables) -> bool:
    """A campaign that ran to its end before is not: its limit is behind it, too."""
    stopped = found.frame.cancel is not None or found.frame.out_of_time
    return stopped and LossClass.CANCELLED in texts(found.trials, "abandoned")


def _refuse_unfinished(found: CampaignTables, where: str) -> None:
    if found.monitored or not found.terminal:
        raise OperatorError(
            f"the campaign is not finished: {found.trials.num_rows:,} of "
            f"{plural(found.frame.planned, 'trial')} are over",
            where=where,
            hint=f"{found.way_on}; until then leave it out",
        )


def _identities(found: CampaignTables) -> frozenset[object]:
    trials = texts(found.trials, "trial")
    seeds = found.trials.listed("seed")
    bundles = (digest for digest in texts(found.trials, "bundle_sha256") if digest is not None)
    return frozenset((*zip(trials, seeds, strict=True), *bundles))
