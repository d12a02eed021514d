"""When a campaign is looked at while it runs, and what a look may change: one object for each kind. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from trialfleet_ledger.designs.halving import HalvingResult, halving_block
from trialfleet_ledger.designs.looks import (
    AnytimeResult,
    AnytimeRule,
    Decision,
    LookResult,
    StopRule,
    dropped_tasks,
    halving_of,
    revised_reps,
    stopped,
)
from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.plurals import plural


def word_p(p: float, digits: int = 4) -> str:
    """So many decimals; what these would show as 0 as a power of ten.

    >>> word_p(0.01234), word_p(2e-7)
    ('0.0123', '2e-07')
    """
    return f"{p:.{digits}f}" if round(p, digits) else f"{p:.1g}"


def word_spending(p: float, level: float) -> str:
    """A look's p, and what it may have spent: with as many decimals as show which is larger.

    >>> word_spending(0.0312, 0.008), word_spending(0.00804, 0.00801)
    ('p 0.0312, of which 0.0080 could be spent', 'p 0.00804, of which 0.00801 could be spent')
    """
    digits = next((n for n in range(4, 13) if (round(p, n) > round(level, n)) == (p > level)), 12)
    return f"p {word_p(p, digits)}, of which {word_p(level, digits)} could be spent"


@dataclass(frozen=True)
class LookCounts:
    """What `status` says of looks. `look_bounds`: by block, the p that decides; `dropped`: tasks left out, after
    how many blocks; `halving_after`: blocks after which two of four treatments are left out, 0: none are;
    `halved`: these two, None: not yet; `revised_from`: the planned reps, once a look has re-estimated them;
    `anytime`: it is looked at after every block, and has no fixed end; `decided`: what a look has ended it for."""

    looks_planned: int = 0
    looks_taken: int = 0
    look_bounds: Mapping[int, float] = field(default_factory=dict[int, float])
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    halving_after: int = 0
    halved: list[str] | None = None
    revised_from: int | None = None
    anytime: bool = False
    decided: str | None = None


class LookSchedule:
    """`key`: of the campaign file, below `primary`. `holds_back`: blocks after a look wait for it.
    `has_fixed_end`: the last look is the campaign's end, and more reps extend it. `compares_by_stage`: which tasks
    are compared is decided at each look, for its blocks. `needs_others`: so many conditions besides the compared
    ones, or no look is taken."""

    key = "stop"
    holds_back = True
    has_fixed_end = True
    compares_by_stage = True
    needs_others = 0

    @property
    def changes_plan(self) -> bool:
        """Whether a look may change what later blocks hold."""
        return False

    @property
    def drop_block(self) -> int:
        """The look after so many blocks leaves saturated tasks out; 0: none does."""
        return 0

    def blocks_at(self, planned: int, reps: int, decisions: Sequence[Decision]) -> tuple[int, ...]:
        """After how many complete blocks each look is. `planned`: reps of the plan; `reps`: with amendments."""
        raise NotImplementedError

    def most_reps(self, reps: int) -> int:
        """As many as a look may still make of `reps`."""
        return reps

    def undecided(self, planned: int, others: Sequence[str]) -> Mapping[str, int]:
        """Conditions of which a coming look leaves out all but one, after how many blocks. `others`: those that
        the declared result does not compare."""
        return {}

    def longest_stage(self, planned: int) -> tuple[int, str] | None:
        """The most blocks between two looks that hold back, and what bounds them. None: nothing is held back."""
        return None

    def allow_more(self, planned: int, least_blocks: int) -> str:
        """A value of the campaign file with which as many blocks as these may run at once, or "more …"."""
        return "more without it"

    def refuse_more_reps(self, planned: int, decisions: Sequence[Decision]) -> None:
        """Raises `FieldError` while more reps would move an end that was planned for."""

    def is_decided(self, decisions: Sequence[Decision]) -> bool:
        """Whether more reps extend a campaign whose results have decided something."""
        return bool(decisions)

    def count_looks(self, planned: int, reps: int, decisions: Sequence[Decision]) -> LookCounts:
        """For `status`."""
        raise NotImplementedError

    def describe(self, decision: Decision, looks: int) -> str:
        """A decision, for the operator. `looks`: how many there are."""
        raise NotImplementedError


@dataclass(frozen=True)
class AtLooks(LookSchedule):
    """After blocks that the campaign declares."""

    rule: StopRule
    alpha: float

    @property
    def changes_plan(self) -> bool:
        return self.rule.changes_plan

    @property
    def drop_block(self) -> int:
        return self.rule.drop_saturated

    def blocks_at(self, planned: int, reps: int, decisions: Sequence[Decision]) -> tuple[int, ...]:
        return self.rule.blocks(planned, revised_reps(decisions))

    def most_reps(self, reps: int) -> int:
        return reps if self.rule.reestimate is None else max(reps, self.rule.reestimate.cap)

    def longest_stage(self, planned: int) -> tuple[int, str]:
        blocks = max(later - earlier for earlier, later in pairwise((0, *self.rule.blocks(planned))))
        return blocks, f"at most {plural(blocks, 'block')} between two looks"

    def allow_more(self, planned: int, least_blocks: int) -> str:
        looks = planned // least_blocks
        return f"primary.stop: {{looks: {looks}}}" if looks > 1 else "more with fewer looks"

    def refuse_more_reps(self, planned: int, decisions: Sequence[Decision]) -> None:
        at = self.blocks_at(planned, planned, decisions)
        if stopped(decisions) is None and len(decisions) < len(at):
            raise FieldError(
                f"the campaign declares looks up to block {at[-1]}, and has taken {len(decisions)} of them",
                hint="reps can be added, labelled, once a look has decided; or run a campaign of another name",
            )

    def count_looks(self, planned: int, reps: int, decisions: Sequence[Decision]) -> LookCounts:
        revised = revised_reps(decisions)
        levels = self.rule.levels(planned, self.alpha, revised)
        return LookCounts(
            looks_planned=len(levels),
            looks_taken=len(decisions),
            look_bounds=dict(zip(self.rule.blocks(planned, revised), levels, strict=True)),
            dropped=dropped_tasks(decisions),
            revised_from=planned if revised else None,
            decided=verdict_of(decisions),
        )

    def describe(self, decision: Decision, looks: int) -> str:
        result = decision.result
        assert isinstance(result, LookResult), "this campaign's looks are group-sequential"
        detail = word_spending(result.p_value, 2 * result.level)
        if result.verdict == "futility" and self.rule.futility != "none":
            detail = f"{self.rule.futility.reason}: the power to show it at the end is {result.chance:.1%}"
        after = f"look {decision.number} of {looks} after {plural(decision.blocks, 'block')}"
        return f"{after}: decided for {result.verdict} ({detail})"


@dataclass(frozen=True)
class AfterEachBlock(LookSchedule):
    """Of a campaign without a fixed end."""

    rule: AnytimeRule
    holds_back = False
    has_fixed_end = False

    def blocks_at(self, planned: int, reps: int, decisions: Sequence[Decision]) -> tuple[int, ...]:
        return self.rule.blocks(reps)

    def is_decided(self, decisions: Sequence[Decision]) -> bool:
        return stopped(decisions) is not None

    def count_looks(self, planned: int, reps: int, decisions: Sequence[Decision]) -> LookCounts:
        return LookCounts(
            looks_planned=len(self.rule.blocks(reps)),
            looks_taken=len(decisions),
            anytime=True,
            decided=verdict_of(decisions),
        )

    def describe(self, decision: Decision, looks: int) -> str:
        result, after = decision.result, plural(decision.blocks, "block")
        assert isinstance(result, AnytimeResult), "this campaign is looked at after every block"
        return f"decided for {result.verdict} after {after}: p at any look {word_p(result.p_value)}"


@dataclass(frozen=True)
class AtHalving(LookSchedule):
    """Once, after 40% of the blocks: two of four treatments go on."""

    key = "halve"
    compares_by_stage = False
    needs_others = 2

    @property
    def changes_plan(self) -> bool:
        return True

    def blocks_at(self, planned: int, reps: int, decisions: Sequence[Decision]) -> tuple[int, ...]:
        return (halving_block(planned),)

    def undecided(self, planned: int, others: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(others, halving_block(planned))

    def longest_stage(self, planned: int) -> tuple[int, str]:
        first = halving_block(planned)
        blocks = max(first, planned - first)
        return blocks, f"at most {plural(blocks, 'block')} at once"

    def refuse_more_reps(self, planned: int, decisions: Sequence[Decision]) -> None:
        if not decisions:
            after = halving_block(planned)
            raise FieldError(
                f"the campaign halves its treatments after block {after}, and has not done so",
                hint="reps can be added, labelled, once it has; or run a campaign of another name",
            )

    def count_looks(self, planned: int, reps: int, decisions: Sequence[Decision]) -> LookCounts:
        done = halving_of(decisions)
        return LookCounts(halving_after=halving_block(planned), halved=list(done[1].left_out) if done else None)

    def describe(self, decision: Decision, looks: int) -> str:
        assert isinstance(decision.result, HalvingResult), "this campaign halves its treatments"
        return f"halved after {plural(decision.blocks, 'block')}"


def verdict_of(decisions: Sequence[Decision]) -> str | None:
    """What a look has ended the campaign for; None: none has."""
    end = stopped(decisions)
    return None if end is None else end.result.verdict
