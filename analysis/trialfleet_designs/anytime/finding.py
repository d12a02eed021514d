"""Contrasts of a campaign without a fixed end: what the bets on the declared one have won after each block, and
p-values and limits that hold at any look. The declared contrast's pairs are those of the ledger's decisions,
without what was withdrawn since (`recount`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trialfleet_designs.comparison.block_outcomes import stages_of_pair
from trialfleet_designs.comparison.columns import Columns, Scheme, TrialsRun, TrialsTaken, rates
from trialfleet_designs.comparison.contrast import Contrast, side
from trialfleet_designs.looks.finding import decided_counts
from trialfleet_designs.monitoring import bets_of, settle_blocks
from trialfleet_ledger.designs.looks import AnytimeResult, Decision, Verdict, stopped
from trialfleet_statistics.comparisons import StratifiedTest
from trialfleet_statistics.comparisons.convolution import informative
from trialfleet_statistics.estimates import Interval, rejects
from trialfleet_statistics.sequential import (
    Bets,
    BettingStages,
    anytime_p,
    at_all_looks,
    confidence_sequence,
    mean_margin,
)

ANYTIME = "bets on discordant pairs, valid at any look"
NO_LOOK = "no complete block has been looked at yet"
NOT_SETTLED = "no bet is settled yet: since trials were lost, that takes a complete pair of every task"
ONLY_DIFFERENCE = "limits that hold at any look are made for the difference alone"


@dataclass(frozen=True)
class AnytimeLook:
    """After one block: the settled pairs up to it, their mean margin, ln E, and 1 over the largest E so far."""

    blocks: int
    won: int
    lost: int
    equal: int
    margin: float | None
    log_evidence: float
    p_value: float


@dataclass(frozen=True)
class AnytimeFinding:
    """`bets`: the declared rule; `stake`: of the half that is bet for the declared effect, None with none.
    `ended`: why the campaign is over, None while it may go on. `p_value`: None before a stage is settled; `side`:
    which the bets favoured where they had won most, 1 the treatment. `difference`: of the two rates, over all
    valid trials of the `tasks` that are bet on, with a confidence sequence by the bets. `left`: tasks that losses
    have taken out. `broken`: pairs of which a trial has no verdict; `open_blocks`: the last ones, not settled yet.
    `trials`: all that ran up to the last look, and their cost: None where none is known."""

    bets: Literal["half", "mixture"]
    stake: float | None
    taken: tuple[AnytimeLook, ...]
    ended: Verdict | None
    p_value: float | None
    side: int
    difference: Interval
    treatment_rate: float | None
    control_rate: float | None
    tasks: tuple[str, ...]
    left: tuple[str, ...]
    broken: int
    open_blocks: int
    halted: tuple[str, ...]
    trials: TrialsTaken


def anytime_finding(scheme: Scheme, ran: TrialsRun) -> AnytimeFinding | None:
    """None where the campaign has a fixed end."""
    declared = scheme.declared
    if declared is None or declared.anytime is None:
        return None
    bets, decisions = bets_of(declared), scheme.decisions
    results = [one.result for one in decisions if isinstance(one.result, AnytimeResult)]
    end = stopped(decisions)
    settled = settle_blocks([one.stage for one in decisions], scheme.planned_reps)
    tasks, four = decided_counts([one.stage for one in decisions], settled.tasks)
    halted = {task for one in decisions for task in one.halted}
    seen = {one.task for decision in decisions for one in decision.stage}
    rate_a, rate_b = (rates(*four[:2]), rates(*four[2:])) if tasks else (None, None)
    estimate = None if rate_a is None or rate_b is None else float(np.mean(rate_a - rate_b))
    won = _SettledBets(settled.stages, bets)
    return AnytimeFinding(
        bets=declared.anytime.anytime,
        stake=bets.stake,
        taken=tuple(map(_look, results, range(1, len(results) + 1))),
        ended=None if end is None else _result(end).verdict,
        p_value=won.p_value,
        side=won.side,
        difference=won.difference(estimate, int(four[1].sum() + four[3].sum()), 1 - scheme.alpha),
        treatment_rate=None if rate_a is None else float(rate_a.mean()),
        control_rate=None if rate_b is None else float(rate_b.mean()),
        tasks=tasks,
        left=tuple(sorted(seen - settled.tasks - halted)),
        broken=settled.broken,
        open_blocks=results[-1].open_blocks if results else 0,
        halted=tuple(sorted(halted)),
        trials=ran.count_up_to(decisions[-1].blocks if decisions else 0),
    )


def _result(decision: Decision) -> AnytimeResult:
    assert isinstance(decision.result, AnytimeResult), "this campaign is looked at after every block"
    return decision.result


def _look(result: AnytimeResult, blocks: int) -> AnytimeLook:
    counts = result.won, result.lost, result.equal
    return AnytimeLook(blocks, *counts, result.margin, result.log_evidence, result.p_value)


@dataclass(frozen=True, eq=False)
class _SettledBets:
    """What bets have won on the pairs of the stages."""

    stages: BettingStages
    bets: Bets

    @property
    def evidence(self) -> list[float]:
        return [self.bets.log_evidence(one) for one in self.stages.pairs]

    @property
    def p_value(self) -> float | None:
        """1 over the largest evidence after any stage; None before the first."""
        return anytime_p(max(self.evidence)) if self.stages.pairs else None

    @property
    def side(self) -> int:
        if not self.stages.pairs:
            return 0
        return side(mean_margin(self.stages.pairs[int(np.argmax(self.evidence))]))

    def test(self, informative: int | None, no_look: str) -> StratifiedTest:
        pairs = self.stages.pairs[-1] if self.stages.pairs else ()
        return StratifiedTest(
            self.p_value,
            float(sum(one.won - one.lost for one in pairs)) if pairs else None,
            ANYTIME,
            reason=None if pairs else no_look,
            n_informative=informative,
            direction=self.side,
        )

    def difference(self, estimate: float | None, trials: int, level: float) -> Interval:
        """The estimate, with the limits that all stages leave; they hold it too."""
        after = self.stages.pairs or ((),)
        found = at_all_looks([confidence_sequence(one, self.bets, level=level) for one in after])
        if estimate is None or found.low is None or found.high is None:
            return replace(found, estimate=estimate, n=trials)
        return replace(
            found, estimate=estimate, low=min(found.low, estimate), high=max(found.high, estimate), n=trials
        )


def _declared_bets(scheme: Scheme) -> _SettledBets:
    """Of the ledger's decisions."""
    assert scheme.declared is not None, "without a fixed end, a contrast is declared"
    settled = settle_blocks([one.stage for one in scheme.decisions], scheme.planned_reps)
    return _SettledBets(settled.stages, bets_of(scheme.declared))


def at_any_look(found: Contrast, anytime: AnytimeFinding, scheme: Scheme, columns: Columns) -> Contrast:
    """The contrast on these tasks with a p and limits that hold at any look. The declared contrast is that of the
    ledger's decisions; any other is bet on with a mixture over all effects."""
    won = _SettledBets(stages_of_pair(scheme, columns, *scheme.pair(found)), Bets())
    on_these = found.these_tasks
    test = won.test(on_these.test.n_informative, NOT_SETTLED)
    companion = replace(on_these.by_block, test=test)
    found = replace(found, these_tasks=replace(on_these, by_block=companion))
    if found.role != "primary":
        estimate, trials = on_these.difference.estimate, on_these.difference.n
        return _with(found, test, won.difference(estimate, trials, 1 - scheme.alpha), scheme.alpha)
    seen = decided_counts([one.stage for one in scheme.decisions], anytime.tasks)[1]
    told = int(np.sum(informative(*seen)))
    test = _declared_bets(scheme).test(told, NOT_SETTLED if anytime.taken else NO_LOOK)
    empty = tuple(one for one in found.compared.empty if one not in (*anytime.tasks, *anytime.left))
    found = replace(
        found,
        these_tasks=replace(found.these_tasks, strata=len(anytime.tasks), informative=told),
        compared=replace(found.compared, tasks=anytime.tasks, thin=anytime.left, empty=empty),
        treatment_rate=anytime.treatment_rate,
        control_rate=anytime.control_rate,
    )
    return _with(found, test, anytime.difference, scheme.alpha)


@dataclass(frozen=True)
class AnytimeCompanion:
    """What bets on the declared contrast's pairs say of a campaign with a fixed end that was given more reps: they
    hold at any look, and so after results were seen."""

    p_value: float | None
    difference: Interval


def anytime_companion(found: Contrast, scheme: Scheme, columns: Columns) -> AnytimeCompanion:
    """On the tasks of the contrast, by a mixture over all effects, since none was planned. Stages are those of the
    plan: no later end is known before results."""
    tasks = found.compared.mask_among(scheme.tasks)
    won = _SettledBets(stages_of_pair(scheme, columns, *scheme.pair(found), among=tasks), Bets())
    shown = found.these_tasks.difference
    return AnytimeCompanion(won.p_value, won.difference(shown.estimate, shown.n, 1 - scheme.alpha))


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
            conflict=test.direction * side(difference.estimate) < 0,
            agrees=outside,
            over_width=None,
            largest_size=None,
        ),
    )
