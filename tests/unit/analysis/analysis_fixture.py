"""What an analysis finds, made by hand: every part filled, no number computed."""

from __future__ import annotations

import random
from dataclasses import replace

from trialfleet_analysis.analysis_plan.analyse import Analysis, Method, Repeats
from trialfleet_analysis.analysis_plan.margin import EquivalenceFinding
from trialfleet_analysis.analysis_plan.measures import CostPerPass, CostRatio, Distribution, MeasureContrast
from trialfleet_analysis.analysis_plan.power_summary import DeclaredPower, Detectable, More, PowerSummary
from trialfleet_analysis.analysis_plan.screens import TaskEffect, TaskScreening
from trialfleet_analysis.analysis_plan.sensitivity import (
    DriftCheck,
    LossTestFinding,
    RobustnessFinding,
    ScenarioFinding,
    Sensitivity,
)
from trialfleet_analysis.analysis_plan.subgroups import Subgroup, Subgroups
from trialfleet_analysis.analysis_plan.timing import (
    AfterFirstEdit,
    EditTiming,
    HitSplit,
    IncidenceFinding,
    PhaseTurns,
    TimeToPass,
    Timing,
)
from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.composition import Composition, DeliveryChange
from trialfleet_designs.comparison.contrast import BlockCompanion, Contrast, HeterogeneityFinding, OnTheseTasks
from trialfleet_designs.comparison.correction import AdjustedPValue, Family
from trialfleet_designs.comparison.tasks_like_these import LeaveOneOut, OnTasksLikeThese
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.comparisons import StratifiedTest
from trialfleet_statistics.continuous import BootstrapInterval, PermutationTest, SignedRankInterval
from trialfleet_statistics.estimates import Estimand, Interval, Test
from trialfleet_statistics.multiplicity import Attainability
from trialfleet_statistics.repeats import RepeatsInterval
from trialfleet_statistics.timing import HitGroup

ESTIMANDS: tuple[Estimand, Estimand] = ("these_tasks", "tasks_like_these")


def _between(draw: random.Random, estimand: Estimand, width: float) -> Interval:
    centre = draw.uniform(-0.25, 0.3)
    return Interval(centre, centre - width, centre + width, 0.95, 100, "made", estimand)


def _test(draw: random.Random) -> Test:
    return Test(draw.random() ** 3, 3.0, "made", attainable_p=1e-6, n_informative=5)


def _stratified(draw: random.Random) -> StratifiedTest:
    return StratifiedTest(draw.random() ** 3, 3.0, "made", attainable_p=1e-6, n_informative=5, direction=1)


def _contrast(draw: random.Random, treatment: str, control: str, role: str, tasks: list[str]) -> Contrast:
    beside = None if role == "primary" else AdjustedPValue("beside the primary", draw.random())
    treated, controlled = draw.random(), draw.random()
    return Contrast(
        treatment=treatment,
        control=control,
        role="primary" if role == "primary" else "secondary",
        compared=ComparedTasks(tuple(tasks)),
        treatment_rate=treated,
        control_rate=controlled,
        composition=Composition(
            (DeliveryChange("inline", "added"), DeliveryChange("pull", "dropped")), ("{files: tree, pull: true}",)
        ),
        these_tasks=OnTheseTasks(
            test=_stratified(draw),
            conflict=False,
            adjusted=beside,
            difference=_between(draw, "these_tasks", 0.12),
            agrees=draw.choice([True, True, False]),
            odds_ratio=Interval(2.4, 1.1, None, 0.95, 100, "made", "these_tasks", "unbounded: high"),
            strata=len(tasks),
            informative=len(tasks) - 1,
            over_width=1.02,
            largest_size=0.057 if len(tasks) == 1 else None,
            by_block=BlockCompanion(_stratified(draw), 50, 13, 5, 1),
        ),
        tasks_like_these=OnTasksLikeThese(
            test=_test(draw),
            adjusted=AdjustedPValue("beside the primary, like these", draw.random()),
            difference=replace(_between(draw, "tasks_like_these", 0.2), n=len(tasks)),
            leave_one_out=LeaveOneOut(0.1, 0.225, 0.058, 0.312),
            largest_task=tasks[0],
            largest_share=0.5,
            moved=len(tasks),
            caveat="assumes no rare strong task effects",
            treatment_rate=treated,
            control_rate=controlled,
        ),
        heterogeneity=HeterogeneityFinding(
            0.039, _between(draw, "tasks_like_these", 0.3), _test(draw), _test(draw), None
        ),
    )


def made_analysis(
    draw: random.Random, tasks: list[str], conditions: list[str], reps: int, *, declared: bool
) -> Analysis:
    control = conditions[min(3, len(conditions) - 2)] if len(conditions) > 1 else conditions[0]
    others = [name for name in reversed(conditions) if name != control]
    roles = ["primary" if declared else "secondary", *["secondary"] * len(others)]
    contrasts = tuple(
        _contrast(draw, name, control, role, tasks) for name, role in zip(others, roles, strict=False)
    )
    primary = declared and bool(contrasts)
    frozen = Primary(treatment=others[0], control=control, margin=0.1, effect=0.15) if primary else None
    return Analysis(
        declared=frozen,
        sides=() if frozen is None else (frozen.treatment, frozen.control),
        monitored=False,
        compared=ComparedTasks(tuple(tasks)),
        contrasts=contrasts,
        families=(Family("beside the primary", "holm", 0.05, 7, ("one",)),) if contrasts else (),
        equivalence=tuple(
            EquivalenceFinding(name, 0.1, 0.05, 0.01, 0.4, 0.4, _between(draw, name, 0.1), False, True, None)
            for name in ESTIMANDS
            if primary
        ),
        subgroups=_subgroups(draw, tasks) if primary else (),
        screens=tuple(_screen(draw, one, tasks, reps) for one in contrasts),
        robustness=tuple(_robust(one, name) for one in contrasts[:1] for name in ESTIMANDS if primary),
        sensitivities=(Sensitivity("per_protocol", 2, 3, _between(draw, "these_tasks", 0.1), _stratified(draw)),)
        if primary
        else (),
        loss_test=LossTestFinding(
            _test(draw), 0.0004, tuple(conditions), (2,) * len(conditions), (50,) * len(conditions)
        ),
        measures=tuple(_measure(draw, one, key) for one in contrasts for key in ("turns", "agent_s", "cost_usd")),
        costs=tuple(CostPerPass(name, 40, 21, 26.79, None, 4, 26.79 / 21, None, None) for name in conditions),
        cost_ratios=tuple(_ratio(one) for one in contrasts),
        incidence=tuple(_incidence(draw, name) for name in conditions),
        time_to_pass=tuple(
            TimeToPass(one.treatment, one.control, 1800.0, Interval(-36.4, -80.6, 7.9, 0.95, 100, "made"))
            for one in contrasts
        ),
        distributions=tuple(
            _distribution(draw, key, name)
            for key in ("turns", "agent_s", "input_tokens", "output_tokens", "first_edit_turn", "wall_s")
            for name in conditions
        ),
        timing=_timing(draw, conditions),
        drift=_drift(draw, conditions[0]),
        outlook=_outlook(len(tasks), reps) if contrasts else PowerSummary(None, _nothing(), None, (), (), ()),
        repeats=tuple(_repeats(name, k) for name in conditions for k in (1, 3)),
        methods=(Method("a cell's rate", "Wilson's score interval"),),
    )


def _nothing() -> Interval:
    return Interval(None, None, None, 0.95, 0, "made", "tasks_like_these", "no task with valid trials")


def _subgroups(draw: random.Random, tasks: list[str]) -> tuple[Subgroups, ...]:
    half = len(tasks) // 2
    levels = tuple(
        Subgroup(name, tuple(some), _between(draw, "these_tasks", 0.15))
        for name, some in (("issue", tasks[:half]), ("failing test", tasks[half:]))
    )
    adjusted = AdjustedPValue("interactions", 0.41)
    tested = Subgroups("prompt source", levels, _test(draw), adjusted, _test(draw), adjusted, None)
    return tested, Subgroups("difficulty", (), None, None, None, None, "not in the plan for 5 of 5 tasks")


def _screen(draw: random.Random, contrast: Contrast, tasks: list[str], reps: int) -> TaskScreening:
    effects: list[TaskEffect] = []
    for task in tasks:
        one, other = draw.randint(0, reps), draw.randint(0, reps)
        label, p = draw.choice(list(Attainability)), draw.random()
        dropped = label is Attainability.NOT_GIVEN_THESE_TOTALS
        between = (one - other) / reps
        effects.append(
            TaskEffect(
                task=task,
                passes_treatment=one,
                valid_treatment=reps,
                passes_control=other,
                valid_control=reps,
                difference=between,
                low=max(-1.0, between - 0.3),
                high=min(1.0, between + 0.3),
                p_value=p,
                adjusted=None if dropped else min(1.0, 2 * p),
                found=p < 0.02 and not dropped,
                attainable_p=0.008,
                label=label,
                tasks_needed=3 if label is Attainability.NOT_ALONE else None,
            )
        )
    return TaskScreening(contrast.treatment, contrast.control, f"tasks of {contrast.name}", tuple(effects))


def _robust(one: Contrast, estimand: Estimand) -> RobustnessFinding:
    scenarios = (
        ScenarioFinding("as_measured", 0.16, 0.069, False, 1),
        ScenarioFinding("complete_case", 0.135, 0.11, False, 1),
        ScenarioFinding("lost_as_failed", 0.2, 0.026, True, 1),
        ScenarioFinding("worst", -0.04, 0.24, False, -1),
        ScenarioFinding("best", 0.22, 0.015, True, 1),
    )
    return RobustnessFinding(
        one.treatment, one.control, estimand, 1, 5, 0, scenarios, False, 3, estimand == "these_tasks"
    )


def _measure(draw: random.Random, one: Contrast, key: str) -> MeasureContrast:
    centre = draw.uniform(-9, 9)
    return MeasureContrast(
        measure=key,
        treatment=one.treatment,
        control=one.control,
        tasks=one.tasks,
        trials_treatment=50,
        trials_control=49,
        median_treatment=19.0,
        median_control=25.5,
        cut_off_treatment=10,
        cut_off_control=13,
        mean_difference=BootstrapInterval(
            centre, centre - 4, centre + 4, 0.95, 100, "made", "these_tasks", monte_carlo_se=(0.06, 0.05)
        ),
        permutation=PermutationTest(0.2345, 3.0, "made", exact=False, resamples=9999, monte_carlo_se=0.0042),
        permutation_adjusted=AdjustedPValue("metrics", draw.random()),
        shift=SignedRankInterval(
            -3.0, None, None, 0.95, 5, "made", "tasks_like_these", "5 differences reach .938"
        ),
        signed_rank=Test(0.5, 4.0, "made"),
        signed_rank_adjusted=AdjustedPValue("metrics, like these", None),
    )


def _ratio(one: Contrast) -> CostRatio:
    these = BootstrapInterval(0.73, 0.51, 1.03, 0.95, 100, "made", "these_tasks", None, 9999, 0.002)
    return CostRatio(one.treatment, one.control, these, replace(these, low=0.41, high=1.38))


def _incidence(draw: random.Random, name: str) -> IncidenceFinding:
    last = draw.uniform(0.2, 0.9)
    return IncidenceFinding(
        name, tuple(75.0 * n for n in range(1, 25)), tuple(last * (n / 24) ** 0.7 for n in range(1, 25))
    )


def _distribution(draw: random.Random, key: str, name: str) -> Distribution:
    edges = tuple(4.0 + 1.5 * n for n in range(25))
    middle = draw.uniform(10, 30)
    counts = tuple(round(60 * 2.7 ** (-((edge - middle) ** 2) / 90) + draw.random() * 4) for edge in edges[:-1])
    return Distribution(key, name, edges, counts, (middle - 5, middle, middle + 6))


def _timing(draw: random.Random, conditions: list[str]) -> Timing:
    """The first condition's median has no upper limit, the last one's trials mostly never edited."""
    reason = "at least half of the trials of the middle task never did it"
    never = BootstrapInterval(None, None, None, 0.95, 50, "made", "these_tasks", reason)

    def median(name: str, scale: float) -> BootstrapInterval:
        if name == conditions[-1]:
            return never
        centre = scale * draw.uniform(5, 12)
        high = None if name == conditions[0] else centre * 1.3
        return BootstrapInterval(
            centre, centre * 0.8, high, 0.95, 50, "made", "these_tasks", None if high else "beyond"
        )

    def phases(name: str) -> tuple[PhaseTurns, ...]:
        first, second = draw.uniform(0.3, 0.5), draw.uniform(0.2, 0.3)
        shares = (first, second, 1 - first - second)
        return tuple(
            PhaseTurns(phase, Interval(of, of - 0.1, of + 0.1, 0.95, 50, "made", "these_tasks"), median(name, 1))
            for phase, of in zip(("exploration", "edit", "tail"), shares, strict=True)
        )

    slope = Interval(0.21, -0.18, 0.6, 0.95, 50, "made", "these_tasks")
    like = Interval(0.21, None, None, 0.95, 50, "made", "tasks_like_these", "one task alone carries the slope")
    groups = (HitGroup(True, 30, 5, 21, 6.0, 17.0), HitGroup(False, 20, 4, 3, None, 31.5))
    return Timing(
        tuple(
            EditTiming(
                name,
                50,
                44,
                2,
                _between(draw, "these_tasks", 0.1),
                median(name, 1),
                median(name, 9.5),
                phases(name),
            )
            for name in conditions
        ),
        tuple(AfterFirstEdit(name, 44, 7, slope, like) for name in (None, *conditions)),
        tuple(HitSplit(of, name, groups) for of in ("target_hit", "predicted_hit") for name in conditions),
    )


def _drift(draw: random.Random, alone: str) -> tuple[DriftCheck, ...]:
    return (
        DriftCheck("order_effect", "Did the second half pass more, or less?", True, _test(draw), 0.03, ()),
        DriftCheck("balance", "Did every condition run at the same hours?", False, _test(draw), None, (alone,)),
        DriftCheck("autocorrelation", "Alike?", True, Test(None, None, "made", reason="one rep"), None, (), 0.1),
    )


def _outlook(tasks: int, reps: int) -> PowerSummary:
    designs = ((tasks, reps), (tasks, 2 * reps), (tasks, 4 * reps), (2 * tasks, reps), (4 * tasks, reps))
    more = tuple(More(t, r, t * r, 1.6 / (t * r) ** 0.5, 1.2 / t**0.5 * (1 + 1 / r)) for t, r in designs)
    return PowerSummary(
        mean=0.6,
        icc=Interval(0.28, 0.1, 0.5, 0.95, 50, "made"),
        sigma_int=0.039,
        detectable=(
            Detectable("these_tasks", tasks, reps, 0.8, 0.05, more[0].mde_these_tasks, None, 0.004),
            Detectable("tasks_like_these", tasks, reps, 0.8, 0.05, None, "more than 100 points", None),
        ),
        more=more,
        declared=(
            DeclaredPower("these_tasks", 0.15, 0.71, 0.01, 2000, None),
            DeclaredPower("tasks_like_these", 0.15, None, None, 0, "not known"),
        ),
        equal=more[:1],
        balance_reps=13.3,
    )


def _repeats(name: str, k: int) -> Repeats:
    some = RepeatsInterval(
        0.8, 0.6, 0.95, 0.95, 50, "pass_at_k", "tasks_like_these", None, "k is large" if k > 1 else None
    )
    return Repeats(name, k, some, RepeatsInterval(0.3, None, None, 0.95, 50, "pass_hat_k", None, "all alike"))
