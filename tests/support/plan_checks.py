"""Whether what `power` and `plan` say of a declaration contradicts it: figures are computed again from the
declaration alone, simulated ones by a plain simulation with normal tests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from scipy import special, stats

from tests.support.random_declarations import DrawnDeclaration
from trialfleet_analysis.power_cli.asking import Answer
from trialfleet_analysis.power_cli.plans import CampaignPlan
from trialfleet_designs.joint.planning import JointPlan
from trialfleet_designs.metric.planning import MetricPlan
from trialfleet_designs.power.own_plan import OwnPlan
from trialfleet_designs.power.stops import BetsPlan, LooksPlan
from trialfleet_designs.power.trend import TrendPlan
from trialfleet_designs.question.planning import QuestionPlan
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import CampaignEffect

ODD = re.compile(r"\bnan\b|\bNone\b|\binf\b|-0\.0|\b1 (?:trials|tasks|reps|looks|blocks|campaigns|conditions)\b")
CONTROL, ICC, SIGMA = 0.5, 0.4, 0.1  # assumed, as the text says
CAMPAIGNS = 2_000
ROUGH, SMALL = 0.05, 0.2  # of a power: normal tests in place of exact ones; where an arm has few trials
NORMAL = NormalDist()


def odd_words(text: str) -> list[str]:
    """What no sentence holds: undefined figures, and a plural of one."""
    return [f"in words: {found[0]!r}" for found in ODD.finditer(text)]


def of_plan(spec: CampaignSpec, tasks: int, text: str) -> Iterator[str]:
    """What `plan` says, of a campaign that has not run."""
    cells, reps, declared = tasks * len(spec.single_conditions), spec.reps, spec.primary
    trials = most = cells * reps
    if isinstance(declared, Primary) and declared.halve:
        trials = most = most - tasks * 2 * (reps - math.floor(0.4 * reps + 0.5))
    rule = declared.stop if isinstance(declared, Primary) else None
    if isinstance(rule, StopRule) and rule.reestimate is not None:
        most = cells * rule.reestimate.cap
    first = text.splitlines()[0]
    if not re.match(f"{trials:,} trials?: {tasks:,} tasks? under {len(spec.single_conditions)} cond", first):
        yield f"other counts than {trials}: {first}"
    if not re.search(rf"^trials .* = {trials:,}$", text, re.MULTILINE):
        yield f"another sum than {trials}"
    yield from _price(spec, most, first)


def _price(spec: CampaignSpec, trials: int, said: str) -> Iterator[str]:
    limit = spec.limits.cost_usd
    found = re.search(r"[Aa]t most \$([\d,.]*\d)", said)
    if (found is None) != (limit.trial is None):
        yield f"a limit is not said: {said}"
    if found is None or limit.trial is None:
        return
    shown, total = float(found[1].replace(",", "")), trials * limit.trial
    if not total - 1e-9 <= shown <= total + 0.01:
        yield f"at most {total}: {said}"
    capped = re.search(r"above \$([\d,.]*\d)", said)
    if (capped is None) != (limit.campaign is None):
        yield f"the campaign's limit is not said: {said}"
    if limit.campaign is not None and (limit.campaign < total) != (", but no trial" in said):
        yield f"which limit is the lower: {said}"


def of_power(drawn: DrawnDeclaration, answer: Answer, text: str) -> Iterator[str]:
    """What `power` says of the same."""
    assert drawn.spec is not None
    tasks = len(drawn.repositories) - drawn.apart
    if isinstance(answer, CampaignPlan):
        yield from _of_contrast(drawn.spec, tasks, answer, text)
    elif isinstance(answer, OwnPlan):
        yield from _of_own(drawn.spec, tasks, answer)


def _of_contrast(spec: CampaignSpec, tasks: int, found: CampaignPlan, text: str) -> Iterator[str]:
    [row] = found.rows
    alpha = spec.primary.tested.test_alpha if spec.primary is not None else 0.05
    trials = 2 * tasks * spec.reps
    if row.trials != trials or not text.startswith(f"{trials:,} trial"):
        yield f"other trials than {trials}: {text}"
    if found.effort.alpha != alpha:
        yield f"alpha is {alpha}"
    yield from _detected(tasks, spec.reps, alpha, row.effect["these_tasks"], text)
    if found.at_declared is not None and found.declared is not None and found.declared.effect:
        [at] = found.at_declared.rows
        power = at.power["these_tasks"]
        own = contrast_power(tasks, spec.reps, found.declared.effect, alpha)
        if abs(power.power - own) > rough(tasks, spec.reps) + 3 * error(power.power, power.simulations):
            yield f"power at {found.declared.effect} is {own:.3f}, not {power.power:.3f}"
    yield from _frontier(found, tasks * spec.reps, alpha)
    yield from _stops(spec, tasks, found, text)


def _detected(tasks: int, reps: int, alpha: float, found: CampaignEffect, text: str) -> Iterator[str]:
    doubt = rough(tasks, reps)
    if not found.is_known:
        if "a gain that is not known on these tasks" not in text:
            yield f"that it is not known is not said: {text}"
        return
    if found.effect is None or found.se is None:
        if (most := contrast_power(tasks, reps, 0.49, alpha)) > 0.8 + doubt:
            yield f"the largest gain has power {most:.3f}, and nothing is said to be detected"
        return
    ends = (found.effect - 3 * found.se, min(found.effect + 3 * found.se, 0.49))
    low, high = (contrast_power(tasks, reps, one, alpha) for one in ends)
    if low > 0.8 + doubt or high < 0.8 - doubt:
        yield f"power at {found.effect:.3f} ± {found.se:.3f} is {low:.3f} to {high:.3f}"
    if f"a gain of {100 * found.effect:.1f} points" not in text:
        yield f"the gain is not said: {text}"


def _stops(spec: CampaignSpec, tasks: int, found: CampaignPlan, text: str) -> Iterator[str]:
    trials, simulations = 2 * tasks * spec.reps, found.effort.simulations
    if found.looks is not None and isinstance(spec.primary, Primary):
        yield from _looks(spec, tasks, spec.primary, found.looks, min(simulations, 1_000))
        trials = 2 * tasks * (found.looks.most or spec.reps)
    if found.bets is not None:
        yield from _bets(spec, tasks, found.effort.alpha, found.bets, min(simulations, 1_000))
    elif not found.halvings:
        yield from _price(spec, trials, text)
    for one in found.halvings:
        after = math.floor(0.4 * spec.reps + 0.5)
        if (one.after, one.trials) != (after, tasks * (5 * after + 3 * (spec.reps - after))):
            yield f"a halving: {one}"


def _frontier(found: CampaignPlan, total: int, alpha: float) -> Iterator[str]:
    z = NORMAL.inv_cdf(1 - alpha / 2) + NORMAL.inv_cdf(0.8)
    for one in found.frontier:
        own = z * math.sqrt(2 * CONTROL * (1 - CONTROL) * (1 - ICC) / one.tasks / one.reps)
        if one.tasks * one.reps > total or abs((one.mde_these_tasks or 1.0) - min(own, 1)) > 1e-6:
            yield f"{one.tasks} × {one.reps} detects {own:.4f}"


def _looks(spec: CampaignSpec, tasks: int, declared: Primary, found: LooksPlan, simulations: int) -> Iterator[str]:
    rule = declared.stop
    assert isinstance(rule, StopRule)
    several = rule.looks if isinstance(rule.looks, int) else 0
    at = rule.looks if isinstance(rule.looks, tuple) else spaced(min(several, spec.reps), spec.reps)
    if found.looks != at:
        yield f"looks after {at}, not {found.looks}"
    for one in found.scenarios:
        doubt = rough(tasks, spec.reps) + 3 * error(one.power, simulations)
        if one.reps is None and abs(one.trials - one.share * 2 * tasks * spec.reps) > 1e-6:
            yield f"trials are {one.share} of the plan's: {one}"
        if one.reps is None and not at[0] / spec.reps - 1e-9 <= one.share <= 1 + 1e-9 and not found.drop_after:
            yield f"a share: {one}"
        if one.power + one.futile > 1 + 1e-9:
            yield f"shown and given up: {one}"
        own = contrast_power(tasks, spec.reps, one.effect, declared.alpha)
        if abs(one.fixed_power - own) > rough(tasks, spec.reps) + 3 * error(one.fixed_power, simulations):
            yield f"without looks {own:.3f}: {one}"
        if one.reps is None and one.power > own + doubt:
            yield f"looks find more than a fixed end, {own:.3f}: {one}"
        if one.effect == 0 and one.power > declared.alpha + 3 * error(declared.alpha, simulations):
            yield f"size: {one}"


def _bets(spec: CampaignSpec, tasks: int, alpha: float, found: BetsPlan, simulations: int) -> Iterator[str]:
    powers: dict[float, list[float]] = {}
    for one in found.scenarios:
        powers.setdefault(one.effect, []).append(one.power)
        if not 0 < one.trials <= 2 * tasks * one.reps + 1e-9:
            yield f"trials: {one}"
        if one.effect == 0 and one.power > alpha + 3 * error(alpha, simulations):
            yield f"size: {one}"
    if any(b < a - 6 * error(a, simulations) for each in powers.values() for a, b in pairwise(each)):
        yield f"more reps find less: {powers}"
    if found.scenarios[0].reps != spec.reps:
        yield "other reps"


def _of_own(spec: CampaignSpec, tasks: int, found: OwnPlan) -> Iterator[str]:
    if isinstance(found, JointPlan):
        yield from _of_own(spec, tasks, found.within)
        yield from _of_own(spec, tasks, found.metric)
        return
    assert isinstance(found, QuestionPlan | MetricPlan | TrendPlan)
    arms = len(found.conditions) if isinstance(found, TrendPlan) else 2
    for row in found.rows:
        if (row.reps, row.trials) != (spec.reps, arms * tasks * spec.reps) or found.tasks != tasks:
            yield f"counts: {row}"
    if isinstance(found, TrendPlan):
        yield from _trend(spec, tasks, found)
        return
    rule = getattr(spec.primary, "stop", None)
    several = 0 if rule is None else len(rule.blocks(spec.reps))
    if found.looks != several or found.rows[0].lacks_looks:
        yield f"{several} looks"
    ends = rule is None or found.needed is None or rule.blocks(found.needed)[-1] == found.needed
    if found.needed_lacks_looks == ends:
        yield "looks of other reps"
    if isinstance(found, MetricPlan):
        yield from _metric(tasks, found)
    elif not several and found.estimand == "these_tasks" and tasks * spec.reps >= 40:
        for one in found.rows[0].scenarios:
            own = question_power(tasks, spec.reps, one.difference, found.margin, found.effort.alpha, found.asked)
            if abs(own - one.power) > rough(tasks, spec.reps) + 3 * one.se + 3 * error(own, CAMPAIGNS):
                yield f"says yes {own:.3f}: {one}"


def _metric(tasks: int, found: MetricPlan) -> Iterator[str]:
    alpha = found.effort.alpha * (2 if found.one_sided else 1)
    reps = found.rows[0].reps
    for one in found.rows[0].scenarios:
        own = metric_power(tasks, reps, one.ratio, found.cv, found.scale, alpha)
        if found.looks == 0 and abs(own - one.power) > 1e-6:
            yield f"power {own:.4f}: {one}"
        if found.looks and one.power > own + 0.01:
            yield f"looks find more than a fixed end, {own:.4f}: {one}"
    if found.needed is not None and not found.looks:
        at, below = (
            metric_power(tasks, reps, found.effect, found.cv, found.scale, alpha)
            for reps in (found.needed, found.needed - 1)
        )
        if not below < 0.8 <= at + 1e-9:
            yield f"{found.needed} reps have {at:.3f}, one fewer {below:.3f}"


def metric_power(tasks: int, reps: int, ratio: float, cv: float, scale: str, alpha: float) -> float:
    """As the text says, by a t test of logs or by normal bounds on means; 0 where no permutation is that rare."""
    arrangements = min(math.comb(2 * reps, reps) ** tasks, 10**12)
    rare = math.floor(alpha / 2 * arrangements * (1 + 1e-7))
    if reps < (2 if scale == "difference" else 1) or not rare:
        return 0.0
    n = reps * tasks
    if scale == "difference":
        drift = abs(1 - ratio) / (cv * math.sqrt((1 + ratio**2) / n))
        return NORMAL.cdf(drift - NORMAL.inv_cdf(1 - alpha / 2))
    drift, freedom = abs(math.log(ratio)) / math.sqrt(2 * math.log1p(cv**2) / n), 2 * n - tasks - 1
    return float(stats.nct.sf(stats.t.isf(rare / arrangements, freedom), freedom, drift))


def _trend(spec: CampaignSpec, tasks: int, found: TrendPlan) -> Iterator[str]:
    declared = spec.primary
    assert isinstance(declared, TrendPrimary)
    for one in found.rows[0].scenarios:
        own = trend_power(tasks, spec.reps, one.effect, declared.doses, declared.alpha)
        if abs(own - one.power) > rough(tasks, spec.reps) + 3 * one.se + 3 * error(own, CAMPAIGNS):
            yield f"power {own:.3f}: {one}"


def spaced(looks: int, reps: int) -> tuple[int, ...]:
    return tuple(int(number * reps / looks + 0.5) for number in range(1, looks + 1))


def rough(tasks: int, reps: int) -> float:
    """What a normal test may be wrong by."""
    return ROUGH if tasks * reps >= 60 and reps > 2 else SMALL


def error(power: float, simulations: int) -> float:
    """Monte Carlo, never 0."""
    return math.sqrt(max(power * (1 - power), 0.25 / simulations) / simulations)


def contrast_power(tasks: int, reps: int, effect: float, alpha: float) -> float:
    """Of the stratified test on these tasks."""
    a, b = draw_rates(tasks, effect)
    rng = np.random.default_rng(5)
    x, y = rng.binomial(reps, a), rng.binomial(reps, b)
    passed, of = x + y, 2 * reps
    variance = (passed * (of - passed) / (4 * max(of - 1, 1))).sum(axis=1)
    z = ((x - y) / 2).sum(axis=1) / np.sqrt(np.maximum(variance, 1e-9))
    return float(np.mean(np.abs(z) > NORMAL.inv_cdf(1 - alpha / 2)))


def question_power(tasks: int, reps: int, difference: float, margin: float, alpha: float, asked: str) -> float:
    a, b = draw_rates(tasks, difference, sharp=False)
    rng = np.random.default_rng(6)
    x, y = rng.binomial(reps, a) / reps, rng.binomial(reps, b) / reps
    found = (x - y).mean(axis=1)
    spread = ((x * (1 - x) + y * (1 - y)) / max(reps - 1, 1)).sum(axis=1)
    se, z = np.sqrt(np.maximum(spread, 1e-4)) / tasks, NORMAL.inv_cdf(1 - alpha)
    shown = (found + margin) / se >= z
    return float(np.mean(shown & ((margin - found) / se >= z) if asked == "equivalent" else shown))


def trend_power(tasks: int, reps: int, effect: float, doses: tuple[int, ...], alpha: float) -> float:
    high, low = draw_rates(tasks, effect)
    at = (np.array(doses) - doses[0]) / (doses[-1] - doses[0])
    logits = special.logit(np.clip(low, 1e-9, 1 - 1e-9))[..., None]
    above = special.logit(np.clip(high, 1e-9, 1 - 1e-9))[..., None]
    passed = np.random.default_rng(7).binomial(reps, special.expit(logits + (above - logits) * at))
    centred, of, total = at - at.mean(), reps * at.size, passed.sum(axis=2)
    variance = (total * (of - total) / of / max(of - 1, 1)).sum(axis=1) * reps * float(np.sum(centred**2))
    z = (passed @ centred).sum(axis=1) / np.sqrt(np.maximum(variance, 1e-9))
    return float(np.mean(np.abs(z) > NORMAL.inv_cdf(1 - alpha / 2)))


def draw_rates(tasks: int, effect: float, *, sharp: bool = True) -> tuple[Floats, Floats]:
    """Rates of treatment and control, shape (CAMPAIGNS, tasks), of the population that the text assumes.
    `sharp`: without an effect no task has one."""
    rng, total = np.random.default_rng(4), 1 / ICC - 1
    if sharp and not effect:
        same = rng.beta(CONTROL * total, (1 - CONTROL) * total, (CAMPAIGNS, tasks))
        return same, same
    base = special.logit(np.clip(rng.beta(CONTROL * total, (1 - CONTROL) * total, 3_000), 1e-12, 1 - 1e-12))
    noise = rng.normal(size=3_000)

    def moved(sigma: float) -> tuple[float, float, float]:
        up, down = (
            _shift(base + sign * sigma / 2 * noise, goal) for sign, goal in ((1, CONTROL + effect), (-1, CONTROL))
        )
        a, b = special.expit(base + up + sigma / 2 * noise), special.expit(base + down - sigma / 2 * noise)
        return up, down, float(np.std(a - b))

    least, most = 0.0, 8.0
    if moved(0.0)[2] < SIGMA:
        for _ in range(12):
            middle = (least + most) / 2
            least, most = (least, middle) if moved(middle)[2] > SIGMA else (middle, most)
    up, down, _ = moved(least)
    drawn = special.logit(
        np.clip(rng.beta(CONTROL * total, (1 - CONTROL) * total, (CAMPAIGNS, tasks)), 1e-12, 1 - 1e-12)
    )
    half = least / 2 * rng.normal(size=drawn.shape)
    return special.expit(drawn + up + half), special.expit(drawn + down - half)


def _shift(logits: Floats, goal: float) -> float:
    low, high = -40.0, 40.0
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (low, middle) if float(np.mean(special.expit(logits + middle))) > goal else (middle, high)
    return (low + high) / 2
