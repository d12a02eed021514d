"""The default plan of analysis, from columns to findings, and the methods that make its numbers: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trialfleet_analysis.analysis_plan.margin import EquivalenceFinding, equivalences
from trialfleet_analysis.analysis_plan.measures import (
    CostPerPass,
    CostRatio,
    Distribution,
    MeasureContrast,
    cost_ratios,
    costs,
    distributions,
    measured,
)
from trialfleet_analysis.analysis_plan.power_summary import PowerSummary, power_summary
from trialfleet_analysis.analysis_plan.screens import Screened, TaskScreening, screened
from trialfleet_analysis.analysis_plan.sensitivity import (
    DriftCheck,
    LossTestFinding,
    RobustnessFinding,
    Sensitivity,
    drift_checks,
    loss_test,
    robust,
    sensitivities,
)
from trialfleet_analysis.analysis_plan.subgroups import Subgroups, by_factor
from trialfleet_analysis.analysis_plan.timing import (
    IncidenceFinding,
    TimeToPass,
    Timing,
    incidence,
    times_to_pass,
    timing,
)
from trialfleet_designs.anytime.finding import AnytimeCompanion, anytime_companion
from trialfleet_designs.comparison.columns import CellCounts, Columns, Scheme, TrialsRun, counted, trials_run
from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.contrast import Contrast, all_contrasts, sides
from trialfleet_designs.comparison.correction import Corrected, Family
from trialfleet_designs.protocol import Observed
from trialfleet_designs.recount import recount_looks
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.repeats import RepeatsInterval, pass_at_k, pass_hat_k


@dataclass(frozen=True)
class Method:
    """Which method made which number, and with what."""

    number: str
    method: str


METHODS: tuple[tuple[str, str], ...] = (
    ("a cell's rate", "Wilson's score interval; also Clopper and Pearson's exact interval"),
    (
        "a condition's rate, these tasks",
        "mean of the tasks' rates; Wilson's interval at the effective sample size",
    ),
    ("a condition's rate, tasks like these", "hierarchical beta-binomial model, flat priors, summed on a grid"),
    ("a contrast, these tasks", "exact conditional test, tasks as strata of equal weight, central mid-p"),
    ("its difference", "stratified Miettinen-Nurminen interval, equal weights"),
    ("its odds ratio", "conditional estimate and mid-p limits, which agree with the test"),
    (
        "its companion by block",
        "exact conditional test over complete task × block pairs, mid-p: McNemar's where tasks have as many",
    ),
    (
        "a contrast at declared looks",
        "exact group-sequential test by task × stage; stage-wise estimate and limits of campaigns that crossed or "
        "reached their end, else the raw difference and repeated limits",
    ),
    (
        "treatments that are halved",
        "two of four go on, by pass rates after 40% of the blocks; the exact test at alpha / 4 (Bonferroni)",
    ),
    (
        "a contrast without a fixed end",
        "sign betting on discordant task × block pairs (Ville); confidence sequence from the same bets",
    ),
    (
        "a trend over doses",
        "exact conditional trend test, tasks as strata, mid-p; slope by logistic regression with task effects",
    ),
    (
        "a declared metric",
        "ratio in a typical task: mean over tasks of the differences of mean logs; labels permuted within task "
        "(at looks: within task × stage, the same permutations through all looks); limits by the "
        "same permutations",
    ),
    ("a contrast, tasks like these", "paired t-test on the tasks' differences"),
    ("other contrasts, interactions", "Holm's correction in the named family"),
    ("heterogeneity", "moment estimate of the effect's SD; Breslow and Day; Gail and Simon"),
    ("subgroups", "exact conditional interaction test, mid-p; Welch's t on task differences"),
    (
        "equivalence",
        "two one-sided tests: Miettinen and Nurminen's score at the margin (at looks, against one-sided normal "
        "bounds); paired t-tests",
    ),
    ("each task", "Fisher's exact test, Benjamini and Hochberg's correction after Tarone's exclusion"),
    ("losses", "complete case, lost as failed, worst and best case on first agent-started attempts"),
    ("loss rates by condition", "Freeman and Halton's exact test"),
    ("metrics, these tasks", "permutation of ranks within tasks; percentile bootstrap over reps"),
    ("metrics, tasks like these", "exact signed-rank test (Pratt) and Hodges and Lehmann's estimate over tasks"),
    ("cost per pass", "ratio of sums; percentile bootstrap of the log ratio"),
    ("time to a pass", "cumulative incidence with failure competing; restricted mean, failures at the limit"),
    ("first edit, phases", "median over tasks' medians, bootstrap over trials; mean share with Satterthwaite's t"),
    ("turns after the first edit", "regression with task and condition effects; HC3; jackknife over tasks"),
    ("drift", "Cochran-Mantel-Haenszel by halves; Kruskal and Wallis; lag-1 autocorrelation by permutation"),
    ("what could be detected, these tasks", "simulation from each task's own rate, both arms together"),
    ("what could be detected, tasks like these", "normal approximation from variance components"),
    ("power at the declared effect", "simulation with the test that analyses"),
    ("pass@k, pass^k", "unbiased per task, t interval over tasks"),
)


def methods(scheme: Scheme) -> tuple[Method, ...]:
    """In the order of the report; the seed that all chance in it comes from is the campaign's."""
    found = tuple(Method(number, method) for number, method in METHODS)
    return (*found, Method("resampling", f"seeds derived from the campaign's seed, {scheme.seed}"))


@dataclass(frozen=True)
class Repeats:
    """pass@k: some of k reps passes; pass^k: all of k do. Mean over tasks, for tasks like these."""

    condition: str
    k: int
    pass_at_k: RepeatsInterval
    pass_hat_k: RepeatsInterval


KS = (1, 3, 5)


def repeats(scheme: Scheme, counts: CellCounts) -> tuple[Repeats, ...]:
    """For k = 1, 3 and 5, as far as every task with valid trials under the condition has that many."""
    found: list[Repeats] = []
    for place, name in enumerate(scheme.conditions):
        some = counts.valid[:, place] > 0
        passes, valid = counts.passes[some, place], counts.valid[some, place]
        ks = [k for k in KS if valid.size and k <= valid.min()]
        found += [Repeats(name, k, pass_at_k(passes, valid, k), pass_hat_k(passes, valid, k)) for k in ks]
    return tuple(found)


@dataclass(frozen=True)
class Analysis:
    """`compared`: what the declared contrast or trend is made of, and each condition's rate, cost and time with
    it; without one, all conditions together. `contrasts`: the declared primary first, then the others, each in
    both estimands; `families` names what was corrected together. `monitored`: blocks were still open, so no
    p-value here is valid as it stands. What needs a declared primary (equivalence, subgroups, robustness,
    sensitivities) is empty without one. `withdrawn`: trials that looks counted and that no longer count: the
    numbers are made without them. `extended`: of a contrast with a fixed end whose reps have grown. `design`: the
    name of what is declared; `found`: its own finding, None where it has none; `sides`: the conditions that it
    compares."""

    declared: Primary | None
    monitored: bool
    compared: ComparedTasks
    contrasts: tuple[Contrast, ...]
    families: tuple[Family, ...]
    equivalence: tuple[EquivalenceFinding, ...]
    subgroups: tuple[Subgroups, ...]
    screens: tuple[TaskScreening, ...]
    robustness: tuple[RobustnessFinding, ...]
    sensitivities: tuple[Sensitivity, ...]
    loss_test: LossTestFinding
    measures: tuple[MeasureContrast, ...]
    costs: tuple[CostPerPass, ...]
    cost_ratios: tuple[CostRatio, ...]
    incidence: tuple[IncidenceFinding, ...]
    time_to_pass: tuple[TimeToPass, ...]
    distributions: tuple[Distribution, ...]
    timing: Timing
    drift: tuple[DriftCheck, ...]
    outlook: PowerSummary
    repeats: tuple[Repeats, ...]
    methods: tuple[Method, ...]
    design: str = "fixed"
    found: Any = None
    sides: tuple[str, ...] = ()
    withdrawn: int = 0
    extended: AnytimeCompanion | None = None


def analyse(
    scheme: Scheme,
    columns: Columns,
    *,
    lost_attempts: Sequence[int] = (),
    requested: Sequence[tuple[str, str]] = (),
    ran: TrialsRun | None = None,
) -> Analysis:
    """Everything that the plan of analysis finds. Same columns, scheme and seed: the same numbers.

    `lost_attempts`: of each condition, those lost once the agent had started (none known: empty). `requested`:
    further contrasts, (treatment, control), that the plan did not name. `ran`: all trials that were run for the
    answer (None: those of `columns`). Order of trials does not matter.
    """
    recount, ran = recount_looks(scheme, columns), ran or trials_run(columns, scheme)
    scheme, counts = replace(scheme, decisions=recount.decisions), counted(columns, scheme)
    declared, design = scheme.declaration, find_design(scheme.declaration)
    observed = Observed(scheme, columns, counts, ran, withdrawn=recount.withdrawn > 0)
    found = None if declared is None else design.find(declared, observed)

    def adapted(one: Contrast) -> Contrast:
        return design.adapt(found, one, scheme, columns)

    def valid(one: EquivalenceFinding | RobustnessFinding) -> bool:
        """Without a fixed end, nothing that tests these tasks as if there were one."""
        return design.is_fixed_on(one.estimand)

    contrasts = all_contrasts(scheme, columns, counts, sides(scheme, requested), adapted=adapted)
    primary = next((one for one in contrasts.found if one.role == "primary"), None)
    factors = by_factor(primary, scheme, counts) if primary else Corrected((), ())
    screens = _screens(contrasts.found, scheme, counts)
    metrics = measured(contrasts.found, scheme, columns)
    compared = _compared(primary, design.choose_tasks(found), scheme, counts)
    shown = columns.of_tasks(compared.mask_among(scheme.tasks))
    judge = design.judge_runs(found, scheme)
    robustness = robust(primary, scheme, columns, counts, judge=judge) if primary else ()
    return Analysis(
        compared=compared,
        declared=scheme.declared,
        monitored=scheme.monitored,
        contrasts=contrasts.found,
        families=(*contrasts.families, *factors.families, *(one.family for one in screens), *metrics.families),
        equivalence=tuple(filter(valid, equivalences(primary, scheme, counts, design))),
        subgroups=factors.found,
        screens=tuple(one.screen for one in screens),
        robustness=tuple(filter(valid, robustness)),
        sensitivities=sensitivities(primary, scheme, columns) if primary else (),
        loss_test=loss_test(scheme, columns),
        measures=metrics.found,
        costs=costs(scheme, shown, lost_attempts or [0] * len(scheme.conditions)),
        cost_ratios=cost_ratios(contrasts.found, scheme, columns),
        incidence=incidence(scheme, shown),
        time_to_pass=times_to_pass(contrasts.found, scheme, columns),
        distributions=distributions(scheme, shown),
        timing=timing(scheme, shown),
        drift=drift_checks(scheme, columns),
        outlook=power_summary(primary or next(iter(contrasts.found), None), scheme, counts),
        repeats=repeats(scheme, counted(shown, scheme)),
        methods=methods(scheme),
        design="fixed" if declared is None else declared.design,
        found=found,
        sides=() if declared is None else tuple(declared.sides.values()),
        withdrawn=recount.withdrawn,
        extended=anytime_companion(primary, scheme, columns)
        if primary and not design.allows_for_looks and scheme.reps > scheme.planned_reps > 0
        else None,
    )


def _compared(
    primary: Contrast | None, chosen: ComparedTasks | None, scheme: Scheme, counts: CellCounts
) -> ComparedTasks:
    declared = chosen if primary is None else primary.compared
    if declared is not None and declared.tasks:
        return declared
    every = range(len(scheme.conditions))
    alive = [place for place in every if counts.valid[:, place].any()]
    return counts.compare_conditions(scheme, *(alive or every))


def _screens(contrasts: Sequence[Contrast], scheme: Scheme, counts: CellCounts) -> list[Screened]:
    """Of the planned contrasts: screening every pair of conditions would find something somewhere."""
    planned = [one for one in contrasts if one.role not in ("unplanned", "ceiling")]
    return [found for one in planned if (found := screened(one, scheme, counts)) is not None]
