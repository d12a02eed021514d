"""Contrasts of a campaign without a fixed end: what the bets on the declared one have won after each block, and
p-values and limits that hold at any look. The declared contrast's pairs are those of the ledger's decisions,
without what was withdrawn since (`recount`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trialfleet_analysis.analysis_plan.columns import Columns, Scheme
from trialfleet_analysis.analysis_plan.contrast import FAILED, PASSED, Contrast, outcomes_by_block, side
from trialfleet_analysis.analysis_plan.looks import took
from trialfleet_analysis.monitoring import bets_of, complete, pairs_after
from trialfleet_analysis.statistics.comparisons import StratifiedTest
from trialfleet_analysis.statistics.estimates import Interval, rejects
from trialfleet_analysis.statistics.sequential import (
    Bets,
    Pairs,
    anytime_p,
    at_all_looks,
    confidence_sequence,
)
from trialfleet_ledger.looks import AnytimeResult, StageCounts, Verdict, stopped

ANYTIME = "bets on discordant pairs, valid at any look"
NO_LOOK = "no complete block has been looked at yet"
ONLY_DIFFERENCE = "limits that hold at any look are made for the difference alone"


@dataclass(frozen=True)
class AnytimeLook:
    """After one block: the pairs up to it, ln E of them, and 1 over the largest E so far."""

    blocks: int
    won: int
    lost: int
    equal: int
    log_evidence: float
    p_value: float


@dataclass(frozen=True)
class AnytimeFinding:
    """`bets`: the declared rule; `stake`: of the half that is bet for the declared effect, None with none.
    `ended`: why the campaign is over, None while it may go on. `difference`: over complete pairs, with a
    confidence sequence; the two rates are of the same trials. `broken`: pairs of which a trial has no verdict.
    `trials`: up to the last look, over all conditions, and their cost: None where not all of it is known."""

    bets: Literal["half", "mixture"]
    stake: float | None
    taken: tuple[AnytimeLook, ...]
    ended: Verdict | None
    p_value: float | None
    difference: Interval
    treatment_rate: float | None
    control_rate: float | None
    broken: int
    halted: tuple[str, ...]
    trials: int
    cost_usd: float | None


def anytime_finding(scheme: Scheme, columns: Columns) -> AnytimeFinding | None:
    """None where the campaign has a fixed end."""
    declared = scheme.declared
    if declared is None or declared.anytime is None:
        return None
    bets, decisions, stages = bets_of(declared), scheme.decisions, [one.stage for one in scheme.decisions]
    results = [one.result for one in decisions if isinstance(one.result, AnytimeResult)]
    after, end = pairs_after(stages), stopped(decisions)
    seen = took(columns, decisions[-1].blocks if decisions else 0)
    return AnytimeFinding(
        bets=declared.anytime.anytime,
        stake=bets.stake,
        taken=tuple(map(_look, results, range(1, len(results) + 1))),
        ended=None if end is None else end.result.verdict,
        p_value=_p_value(after, bets),
        difference=_sequence(after, bets, 1 - scheme.alpha),
        treatment_rate=_rate(stages, treated=True),
        control_rate=_rate(stages, treated=False),
        broken=results[-1].broken if results else 0,
        halted=tuple(sorted({task for one in decisions for task in one.halted})),
        trials=seen.trials,
        cost_usd=seen.cost_usd,
    )


def _look(result: AnytimeResult, blocks: int) -> AnytimeLook:
    return AnytimeLook(blocks, result.won, result.lost, result.equal, result.log_evidence, result.p_value)


def _rate(blocks: Sequence[Sequence[StageCounts]], *, treated: bool) -> float | None:
    """Over complete pairs."""
    used = [one for counts in blocks for one in complete(counts)]
    passed = sum(one.treatment_passed if treated else one.control_passed for one in used)
    return passed / len(used) if used else None


def _p_value(after: Sequence[Pairs], bets: Bets) -> float | None:
    """1 over the largest evidence after any of the blocks."""
    return anytime_p(max(map(bets.log_evidence, after))) if after else None


def _sequence(after: Sequence[Pairs], bets: Bets, level: float) -> Interval:
    """Limits that every block so far leaves."""
    return at_all_looks([confidence_sequence(one, bets, level=level) for one in after or [Pairs(0, 0, 0)]])


def at_any_look(found: Contrast, anytime: AnytimeFinding, scheme: Scheme, columns: Columns) -> Contrast:
    """The contrast on these tasks with a p and limits that hold at any look. The declared contrast is that of the
    ledger's decisions; any other is bet on with a mixture over all effects, and has the limits that its best look
    and its last one leave."""
    after = _pairs(found, scheme, columns)
    mixture = Bets()
    companion = replace(found.these_tasks.by_block, test=_test(after, _p_value(after, mixture), found))
    found = replace(found, these_tasks=replace(found.these_tasks, by_block=companion))
    if found.role == "primary":
        declared = pairs_after([one.stage for one in scheme.decisions])
        test, difference = _test(declared, anytime.p_value, found), anytime.difference
        found = replace(found, treatment_rate=anytime.treatment_rate, control_rate=anytime.control_rate)
    else:
        test = _test(after, _p_value(after, mixture), found)
        best = max(range(len(after)), key=lambda at: mixture.log_evidence(after[at]), default=0)
        difference = _sequence([*after[best : best + 1], *after[-1:]], mixture, 1 - scheme.alpha)
    return _with(found, test, difference, scheme.alpha)


@dataclass(frozen=True)
class AnytimeCompanion:
    """What bets on the declared contrast's pairs say of a campaign with a fixed end that was given more reps: they
    hold at any look, and so after results were seen."""

    p_value: float | None
    difference: Interval


def anytime_companion(found: Contrast, scheme: Scheme, columns: Columns) -> AnytimeCompanion:
    """By a mixture over all effects, since none was planned."""
    after, mixture = _pairs(found, scheme, columns), Bets()
    return AnytimeCompanion(_p_value(after, mixture), _sequence(after[-1:], mixture, 1 - scheme.alpha))


def _with(found: Contrast, test: StratifiedTest, difference: Interval, alpha: float) -> Contrast:
    on_these = found.these_tasks
    odds = replace(on_these.odds_ratio, low=None, high=None, reason=ONLY_DIFFERENCE)
    outside = None
    if difference.low is not None and difference.high is not None and test.p_value is not None:
        outside = rejects(test.p_value, alpha) == (difference.low > 0 or difference.high < 0)
    return replace(
        found,
        these_tasks=replace(
            on_these,
            test=test,
            difference=difference,
            odds_ratio=odds,
            conflict=False,
            agrees=outside,
            over_width=None,
            largest_size=None,
        ),
    )


def _test(after: Sequence[Pairs], p_value: float | None, found: Contrast) -> StratifiedTest:
    pairs = after[-1] if after else Pairs(0, 0, 0)
    return StratifiedTest(
        p_value,
        float(pairs.won - pairs.lost) if after else None,
        ANYTIME,
        reason=None if after else NO_LOOK,
        n_informative=found.these_tasks.test.n_informative,
        direction=side(pairs.won - pairs.lost),
    )


def _pairs(found: Contrast, scheme: Scheme, columns: Columns) -> list[Pairs]:
    """The complete pairs after each block in use."""
    tasks = np.ones(len(scheme.tasks), dtype=bool)
    of_a, of_b = (outcomes_by_block(columns, condition, tasks) for condition in scheme.pair(found))
    blocks = min(of_a.shape[1], of_b.shape[1])
    of_a, of_b = of_a[:, :blocks], of_b[:, :blocks]
    measured = (of_a >= FAILED) & (of_b >= FAILED)
    margin = np.where(measured, (of_a == PASSED).astype(int) - (of_b == PASSED).astype(int), 2)
    counts = [np.cumsum((margin == value).sum(axis=0)) for value in (1, -1, 0)]
    return [Pairs(int(won), int(lost), int(equal)) for won, lost, equal in zip(*counts, strict=True)]
