"""From the options of `trialfleet power` to the question that they ask, and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from trialfleet_analysis.power_cli.known_tasks import (
    KnownTasksPlan,
    known_design,
    known_rates,
    seen,
    with_frontier,
)
from trialfleet_analysis.power_cli.plans import (
    Assumption,
    Assumptions,
    CampaignPlan,
    DeclaredDesign,
    EffectForReps,
    EqualCost,
    RepsForEffect,
    campaign_plan,
    effect_for_reps,
    equal_cost,
    reps_for_effect,
)
from trialfleet_analysis.power_cli.sources import (
    Pilot,
    Subject,
    from_pilot,
    read_earlier,
    read_pilot,
    read_subject,
)
from trialfleet_designs.document.figures import percent, unsigned_points
from trialfleet_designs.document.tables import spaced
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.halving import HalvingPlan, halving_plan
from trialfleet_designs.power.own_plan import OwnPlan
from trialfleet_designs.power.repositories import plan_repositories
from trialfleet_designs.power.stops import Stopping, StopsPlan
from trialfleet_designs.protocol import PowerQuestion
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.declaration import Declaration
from trialfleet_ledger.errors import OperatorError
from trialfleet_statistics.comparisons.repositories import UNKNOWN
from trialfleet_statistics.power import DrawnTasks, KnownTasks, Population, TaskRates, TestName

Answer = RepsForEffect | EffectForReps | CampaignPlan | EqualCost | KnownTasksPlan | OwnPlan

ALPHA, POWER = 0.05, 0.8
CONTROL, ICC, SIGMA_INT = 0.5, 0.4, 0.1  # what a plan assumes that nobody has measured yet
SIMULATIONS, SEED = 2_000, 1
LOOKS_SIMULATIONS = 1_000  # simulated again at about four numbers of reps
USUAL_REPS = (5, 10, 25, 50)
LARGEST = 1_000  # reps in one cell: beyond, enumeration takes minutes

_CELL = frozenset({"base", "to", "reps", "power", "alpha", "test"})
_ASSUMED = frozenset({"base", "icc", "sigma_int", "pilot", "treatment", "control", "store", "power", "alpha"})
_CAMPAIGN = _ASSUMED | {"campaign", "to", "reps", "tasks", "simulations", "seed", "cost_rep"}
_KNOWN = frozenset(
    {
        "from_campaign",
        "control",
        "store",
        "power",
        "alpha",
        "campaign",
        "to",
        "reps",
        "simulations",
        "seed",
        "cost_rep",
    }
)
_IN_PLACE = _CAMPAIGN - {"cost_rep"}
_BUDGET = _ASSUMED | {"budget", "cost_task", "cost_rep"}
EXAMPLES = (
    "trialfleet power campaign.yaml; or --from 0.4 --to 0.6; or --reps 25; or --tasks 8 --reps 25; "
    "or --budget 1000 --cost-task 20"
)


@dataclass(frozen=True)
class PowerOptions:
    """The options as given; None: not given. `base` is --from."""

    campaign: str | None = None
    store: str | None = None
    base: float | None = None
    to: float | None = None
    reps: tuple[int, ...] | None = None
    tasks: int | None = None
    icc: float | None = None
    sigma_int: float | None = None
    budget: float | None = None
    cost_task: float | None = None
    cost_rep: float | None = None
    pilot: str | None = None
    from_campaign: str | None = None
    treatment: str | None = None
    control: str | None = None
    power: float | None = None
    alpha: float | None = None
    test: TestName | None = None
    simulations: int | None = None
    seed: int | None = None
    cv: float | None = None


@dataclass(frozen=True)
class Answered:
    """`pilot`: its estimates, if there was one."""

    answer: Answer
    pilot: Pilot | None = None


def answered(asked: PowerOptions) -> Answered:
    """Raises `OperatorError` for options that ask nothing, contradict each other or have no effect."""
    if asked.base is not None and asked.base == asked.to:
        raise OperatorError("equal rates: there is no effect to detect", where="--to", hint="name another rate")
    if asked.from_campaign is not None:
        _refuse_others(asked, _KNOWN, "tasks whose rates an earlier campaign gives")
        return _located(lambda: Answered(_known(asked)))
    if asked.pilot is None and (asked.treatment or asked.control):
        option, given = ("--control", asked.control) if asked.control else ("--treatment", asked.treatment)
        raise OperatorError(
            f"{given!r}: it names a condition of a pilot, and there is none",
            where=option,
            hint="add --pilot or --from-campaign; an expected pass rate is given with --from and --to",
        )
    if asked.budget is not None:
        _refuse_others(asked, _BUDGET, "a budget")
        return _located(lambda: _equal_cost(asked))
    if asked.campaign is not None or asked.tasks is not None or asked.pilot is not None:
        return _located(lambda: _campaign(asked))
    _refuse_others(asked, _CELL, "one cell")
    return Answered(_cell(asked))


def _cell(asked: PowerOptions) -> Answer:
    power, alpha, test = asked.power or POWER, asked.alpha or ALPHA, asked.test or "fisher"
    reps = asked.reps or ()
    if reps and max(reps) > LARGEST:
        raise OperatorError(
            f"{max(reps)} reps in one cell are not enumerated, at most {LARGEST} are",
            where="--reps",
            hint="spread them over tasks: --tasks T --reps R",
        )
    if asked.to is not None:
        if asked.base is None:
            raise OperatorError("no rate to compare with", where="--to", hint="add the control's: --from 0.4")
        return reps_for_effect(asked.base, asked.to, power=power, alpha=alpha, test=test, reps=reps)
    if reps:
        return effect_for_reps(reps, asked.base, power=power, alpha=alpha, test=test)
    raise OperatorError("nothing is asked", where="trialfleet power", hint=EXAMPLES)


def _campaign(asked: PowerOptions) -> Answered:
    subject = read_subject(asked.campaign, asked.store).take_alpha(asked.alpha) if asked.campaign else None
    if subject is not None and subject.in_place is not None:
        taken = _IN_PLACE | frozenset({"cv"} if find_design(subject.in_place).plans_variation else ())
        _refuse_others(asked, taken, f"a declared {spaced(subject.in_place.design)}")
        pilot = _pilot(asked)
        return Answered(_in_place(asked, subject, subject.in_place, pilot), pilot)
    _refuse_others(asked, _CAMPAIGN, "a campaign")
    pilot = _pilot(asked)
    tasks = asked.tasks or (subject.tasks if subject else len(pilot.tasks) if pilot else 0)
    effort = _effort(asked, subject)
    repositories = subject.claim_of(tasks) if subject else UNKNOWN
    assumptions, declared = _assumptions(asked, pilot), subject.declared if subject else None

    _check_room(asked, assumptions.control.value, declared, "say what you expect of the control: --from 0.3")

    def planned(treatment: float | None) -> CampaignPlan:
        return campaign_plan(tasks, _reps(asked, subject), treatment, assumptions, effort, declared, repositories)

    plan = planned(asked.to)
    if asked.to is None and declared is not None and declared.effect is not None:
        plan = replace(plan, at_declared=planned(assumptions.control.value + declared.effect))
    price = asked.cost_rep or (pilot.cost_rep if pilot else None)
    plan = replace(plan, halvings=_halvings(subject, tasks, _reps(asked, subject), price))
    if subject is not None:
        plan = replace(plan, limits=subject.limits)
    if subject is not None and tasks == subject.tasks:
        plan = replace(plan, repositories=plan_repositories(subject.repositories))
    elif subject is not None:
        plan = replace(plan, guesses_repositories=subject.claim_of(None).bear)
    if not (subject and find_design(subject.primary).allows_for_looks):
        return Answered(plan, pilot)
    shown = _effect_with_looks(subject, plan)
    if shown is None:
        return Answered(replace(plan, lacks_stop=True), pilot)
    drawn = _draw(plan.assumptions, tasks, min(effort.simulations, LOOKS_SIMULATIONS), effort)
    return Answered(replace(plan, **_stops(subject, drawn, shown, effort, price)), pilot)


def _check_room(
    asked: PowerOptions,
    control: float,
    declared: DeclaredDesign | None,
    way_out: str,
    *,
    may_be_sure: bool = False,
) -> None:
    """Raises `OperatorError` where the file's effect, and no other, is planned for, and cannot be.

    `may_be_sure`: a rate of 1 can be planned with."""
    effect = None if declared is None or asked.to is not None else declared.effect
    if effect is not None and (control + effect > 1 or (control + effect == 1 and not may_be_sure)):
        passes, gain = percent(control), f"{unsigned_points(effect)} points"
        raise OperatorError(
            f"primary.effect: a control that passes {passes} leaves no room for {gain}",
            where=asked.campaign or "trialfleet power",
            hint=f"{way_out}, or declare a smaller effect",
        )


def _draw(assumed: Assumptions, tasks: int, simulations: int, effort: Effort) -> DrawnTasks:
    """One population for every figure of an answer."""
    control = assumed.control.value
    population = Population(control, control, assumed.icc.value, assumed.sigma_int.value)
    return DrawnTasks(population, tasks, simulations, effort.seed)


def _halvings(
    subject: Subject | None, tasks: int, reps: tuple[int, ...], price: float | None
) -> tuple[HalvingPlan, ...]:
    each = (halving_plan(subject.primary if subject else None, tasks, several, price) for several in reps)
    return tuple(one for one in each if one is not None)


def _effect_with_looks(subject: Subject, plan: CampaignPlan) -> float | None:
    """The named effect, the declared one, or the one that the design detects. None where there is none, and for
    other reps than the campaign's, to which its looks belong."""
    only = plan.rows[0] if len(plan.rows) == 1 else None
    if only is None or only.reps != subject.reps:
        return None
    detected = only.effect.get("these_tasks")
    named = None if plan.treatment is None else plan.treatment - plan.assumptions.control.value
    return named or subject.declared.effect or (detected and detected.effect) or None


def _in_place(asked: PowerOptions, subject: Subject, declared: Declaration, pilot: Pilot | None) -> Answer:
    """For other tasks and reps too; `--to` is the rate under the condition that is expected to pass most."""
    what = f"a declared {spaced(declared.design)}"
    assumed, effort = _assumptions(asked, pilot), _effort(asked, subject)
    base = assumed.control.value
    way_out = "say what you expect of the control: --from 0.3"
    _check_room(asked, base, subject.declared, way_out, may_be_sure=True)
    question = PowerQuestion(
        campaign=subject.declared.campaign,
        rates=_draw(assumed, asked.tasks or subject.tasks, effort.simulations, effort),
        population=assumed.describe_population(),
        reps=_reps(asked, subject),
        effect=declared.planned_effect if asked.to is None else asked.to - base,
        effort=effort,
        cv=asked.cv,
        pilot=pilot.variation if pilot else {},
        pilot_of_means=pilot.mean_variation if pilot else {},
        repositories=subject.claim_of(asked.tasks),
    )
    plan = find_design(declared).plan_power(declared, question)
    if plan is None:
        raise OperatorError(
            f"the power of {what} cannot be computed",
            where=subject.declared.campaign,
            hint="plan without `primary`",
        )
    return plan


def _stops(subject: Subject, rates: TaskRates, effect: float, effort: Effort, cost_rep: float | None) -> StopsPlan:
    """What the declared looks, or bets, are expected to find and to take."""
    assert subject.primary is not None
    taken = Stopping(
        subject.primary,
        rates,
        subject.reps,
        effect,
        cost_rep,
        min(effort.simulations, LOOKS_SIMULATIONS),
        effort.seed,
    )
    return find_design(subject.primary).plan_stops(taken)


def _known(asked: PowerOptions) -> KnownTasksPlan:
    """For the tasks of the campaign that is planned, else for those of the earlier one."""
    subject = read_subject(asked.campaign, asked.store).take_alpha(asked.alpha) if asked.campaign else None
    if subject is not None and subject.in_place is not None:
        raise OperatorError(
            f"a declared {spaced(subject.in_place.design)} is not planned with each task's own rate",
            where="--from-campaign",
            hint="leave it out, and say what you expect: --from 0.4 --icc 0.3",
        )
    earlier = read_earlier(asked.from_campaign or "", asked.store, asked.control)
    rates = known_rates(earlier, subject.names if subject else ())
    effort, reps = _effort(asked, subject), _reps(asked, subject)
    effect = subject.declared.effect if subject else None
    if asked.to is not None:
        effect = asked.to - float(rates.rates.mean())
    price = asked.cost_rep or earlier.cost_rep
    declared = subject.declared if subject else None
    _check_room(asked, float(rates.rates.mean()), declared, "name the pass rate to plan for: --to 0.9")
    designs = tuple(known_design(rates.rates, n, effect, effort, price) for n in reps)
    known = seen(earlier, rates, max(reps))
    plan = KnownTasksPlan(subject.declared if subject else None, known, effort, effect, designs, price)
    plan = replace(plan, halvings=_halvings(subject, rates.rates.size, reps, price))
    plan = with_frontier(plan, earlier.sigma_int, subject.claim_of(len(known.tasks)) if subject else UNKNOWN)
    shown = effect or designs[0].detects.effect
    if subject is None or not find_design(subject.primary).allows_for_looks:
        return plan
    if not shown or reps != (subject.reps,):
        return replace(plan, lacks_stop=True)
    return replace(plan, **_stops(subject, KnownTasks(rates.rates), shown, effort, price))


def _effort(asked: PowerOptions, subject: Subject | None) -> Effort:
    return Effort(
        asked.power or POWER,
        (subject.alpha if subject else asked.alpha) or ALPHA,
        asked.simulations or SIMULATIONS,
        SEED if asked.seed is None else asked.seed,
    )


def _reps(asked: PowerOptions, subject: Subject | None) -> tuple[int, ...]:
    return asked.reps or ((subject.reps,) if subject else USUAL_REPS)


def _equal_cost(asked: PowerOptions) -> Answered:
    assert asked.budget is not None
    pilot = _pilot(asked)
    found = equal_cost(
        asked.budget,
        asked.cost_task or 0.0,
        asked.cost_rep or 1.0,
        _assumptions(asked, pilot),
        alpha=asked.alpha or ALPHA,
        power=asked.power or POWER,
    )
    return Answered(found, pilot)


def _pilot(asked: PowerOptions) -> Pilot | None:
    if asked.pilot is None:
        return None
    return read_pilot(asked.pilot, asked.store, asked.treatment, asked.control)


def _assumptions(asked: PowerOptions, pilot: Pilot | None) -> Assumptions:
    assumed = Assumptions(
        _assumed(asked.base, CONTROL), _assumed(asked.icc, ICC), _assumed(asked.sigma_int, SIGMA_INT)
    )
    return from_pilot(pilot, assumed) if pilot else assumed


def _assumed(given: float | None, default: float) -> Assumption:
    return Assumption(default, "assumed") if given is None else Assumption(given, "given")


def _refuse_others(asked: PowerOptions, taken: frozenset[str], question: str) -> None:
    """An option without effect would be believed."""
    for name, value in vars(asked).items():
        if value is not None and name not in taken:
            raise OperatorError(
                f"has no effect on a plan for {question}", where=option(name), hint=f"leave it out; {EXAMPLES}"
            )


def option(name: str) -> str:
    """The option as written on the command line."""
    return {"campaign": "CAMPAIGN", "base": "--from"}.get(name, "--" + name.replace("_", "-"))


def _located(ask: Callable[[], Answered]) -> Answered:
    try:
        return ask()
    except ValueError as error:
        raise OperatorError(
            str(error), where="trialfleet power", hint="change --from, --to, --icc, --sigma-int or --budget"
        ) from None
