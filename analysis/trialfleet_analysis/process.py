"""How the trials went: medians of their metrics, why agents stopped, what was delivered, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from trialfleet_analysis.tables import TrialRow
from trialfleet_runner.conditions import Condition
from trialfleet_runner.contract import Coverage, Metrics, Stop, Verdict

Unit = Literal["count", "s", "usd", "share"]


@dataclass(frozen=True)
class Measure:
    """One metric of an attempt. Unit `share`: a yes or no, averaged instead of its median taken."""

    key: str
    label: str
    unit: Unit
    value: Callable[[Metrics], float | None]


def _lines(metrics: Metrics) -> float | None:
    added, removed = metrics.lines_added, metrics.lines_removed
    return None if added is None or removed is None else added + removed


MEASURES: tuple[Measure, ...] = (
    Measure("turns", "Turns", "count", lambda m: m.turns),
    Measure("tool_calls", "Tool calls", "count", lambda m: m.tool_calls),
    Measure("agent_s", "Agent time", "s", lambda m: m.agent_s),
    Measure("wall_s", "Wall clock", "s", lambda m: m.wall_s),
    Measure("tests_s", "Test time", "s", lambda m: m.tests_s),
    Measure("throttled_s", "Throttled by the provider", "s", lambda m: m.throttled_s),
    Measure("input_tokens", "Input tokens", "count", lambda m: m.input_tokens),
    Measure("output_tokens", "Output tokens", "count", lambda m: m.output_tokens),
    Measure("cache_read_tokens", "Cache-read tokens", "count", lambda m: m.cache_read_tokens),
    Measure("cache_write_tokens", "Cache-write tokens", "count", lambda m: m.cache_write_tokens),
    Measure("cost_usd", "Cost", "usd", lambda m: m.cost_usd),
    Measure("first_edit_turn", "First edit, turn", "count", lambda m: m.first_edit_turn),
    Measure("first_edit_s", "First edit, time", "s", lambda m: m.first_edit_s),
    Measure("exploration_turns", "Turns before the first edit", "count", lambda m: m.exploration_turns),
    Measure("edit_turns", "Turns from first to last edit", "count", lambda m: m.edit_turns),
    Measure("tail_turns", "Turns after the last edit", "count", lambda m: m.tail_turns),
    Measure("files_read_before_edit", "Files read before the edit", "count", lambda m: m.files_read_before_edit),
    Measure("context_files_read", "Context files read", "count", lambda m: m.context_files_read),
    Measure("hook_firings", "Hook firings", "count", lambda m: m.hook_firings),
    Measure("target_hit", "Edited a file that the fix changes", "share", lambda m: m.target_hit),
    Measure("files_changed", "Files changed", "count", lambda m: m.files_changed),
    Measure("lines_changed", "Lines changed", "count", _lines),
)


@dataclass(frozen=True)
class Typical:
    """One metric under one condition: the median over tasks of the tasks' medians, so that each task counts
    once; for shares, means in both places. None when no trial has the metric. `trials`, `tasks`: with a value."""

    measure: str
    condition: str
    value: float | None
    trials: int
    tasks: int


@dataclass(frozen=True)
class VerdictCount:
    """How a condition's trials ended; `verdict` None: lost."""

    condition: str
    verdict: Verdict | None
    trials: int


@dataclass(frozen=True)
class StopCount:
    """Why a condition's agents stopped, and how many of those trials passed."""

    condition: str
    stop: Stop
    trials: int
    passes: int


@dataclass(frozen=True)
class BlockResult:
    """One launch block over all compared cells: balanced, so its plain rate compares with other blocks'."""

    block: int
    passes: int
    valid: int
    lost: int


@dataclass(frozen=True)
class Channel:
    """One delivery of a condition, and whether the canary saw it reach the model.

    `unknown`: agents without a model, or claims that could not be made. `reached + not_reached + unknown` is the
    number of measured trials.
    """

    condition: str
    channel: Literal["files", "inline", "hook"]
    declared: bool
    reached: int
    not_reached: int
    unknown: int


@dataclass(frozen=True)
class InlineText:
    """What a condition's inline text came to: tokens (median over covered trials), cut, or nothing to say."""

    condition: str
    covered: int
    none: int
    truncated: int
    median_tokens: float | None
    tokenizers: tuple[str, ...]


@dataclass(frozen=True)
class CoreSeconds:
    """Core seconds of measured trials: medians of the parts, median and mean of their sum."""

    trials: int
    overhead: float | None
    agent: float | None
    tests: float | None
    median: float | None
    mean: float | None


def typical(names: Sequence[str], rows: Sequence[TrialRow]) -> tuple[Typical, ...]:
    """Every measure that any trial has, under every condition. `rows`: measured trials of compared tasks."""
    found = [(row, row.metrics) for row in rows if row.metrics is not None]
    return tuple(
        _typical(
            measure,
            name,
            [
                (row.task, float(value))
                for row, metrics in found
                if row.condition == name and (value := measure.value(metrics)) is not None
            ],
        )
        for measure in MEASURES
        if any(measure.value(metrics) is not None for _, metrics in found)
        for name in names
    )


def verdict_counts(names: Sequence[str], rows: Sequence[TrialRow]) -> tuple[VerdictCount, ...]:
    counts = Counter((row.condition, row.verdict) for row in rows)
    kinds: tuple[Verdict | None, ...] = (*Verdict, None)
    return tuple(
        VerdictCount(name, kind, counts[name, kind]) for name in names for kind in kinds if counts[name, kind]
    )


def stop_counts(names: Sequence[str], rows: Sequence[TrialRow]) -> tuple[StopCount, ...]:
    counts = Counter((row.condition, row.stop) for row in rows if row.stop is not None)
    passes = Counter((row.condition, row.stop) for row in rows if row.passed)
    return tuple(
        StopCount(name, stop, counts[name, stop], passes[name, stop])
        for name in names
        for stop in Stop
        if counts[name, stop]
    )


def block_results(rows: Sequence[TrialRow]) -> tuple[BlockResult, ...]:
    blocks: dict[int, list[TrialRow]] = {}
    for row in rows:
        blocks.setdefault(row.block, []).append(row)
    return tuple(_block(number, found) for number, found in sorted(blocks.items()))


def channels(conditions: dict[str, Condition], rows: Sequence[TrialRow]) -> tuple[Channel, ...]:
    """Three per condition. A claim about a channel that was not declared says that it stayed empty."""
    names: tuple[Literal["files", "inline", "hook"], ...] = ("files", "inline", "hook")
    return tuple(
        _channel(name, condition, channel, rows) for name, condition in conditions.items() for channel in names
    )


def inline_texts(conditions: dict[str, Condition], rows: Sequence[TrialRow]) -> tuple[InlineText, ...]:
    return tuple(_inline(name, rows) for name, condition in conditions.items() if condition.inline is not None)


def core_seconds(rows: Sequence[TrialRow]) -> CoreSeconds:
    """Over the trials whose overhead was measured."""
    measured = [row for row in rows if row.core_s is not None and row.metrics is not None]
    totals = [row.core_s for row in measured if row.core_s is not None]

    def part(value: Callable[[Metrics], float | None]) -> float | None:
        return _median([v for row in measured if row.metrics and (v := value(row.metrics)) is not None])

    return CoreSeconds(
        trials=len(measured),
        overhead=part(lambda m: m.overhead_core_s),
        agent=part(lambda m: m.agent_core_s),
        tests=part(lambda m: m.tests_core_s),
        median=_median(totals),
        mean=fmean(totals) if totals else None,
    )


def _typical(measure: Measure, condition: str, values: Sequence[tuple[str, float]]) -> Typical:
    by_task: dict[str, list[float]] = {}
    for task, value in values:
        by_task.setdefault(task, []).append(value)
    middle = fmean if measure.unit == "share" else median
    centre = middle([middle(of_task) for of_task in by_task.values()]) if by_task else None
    return Typical(measure.key, condition, centre, len(values), len(by_task))


def _block(number: int, rows: Sequence[TrialRow]) -> BlockResult:
    valid = [row for row in rows if row.verdict is not None]
    return BlockResult(number, sum(row.passed is True for row in valid), len(valid), len(rows) - len(valid))


def _channel(
    name: str,
    condition: Condition,
    channel: Literal["files", "inline", "hook"],
    rows: Sequence[TrialRow],
) -> Channel:
    declared = {
        "files": condition.files is not None,
        "inline": condition.inline is not None,
        "hook": condition.hook is not None,
    }[channel]
    claims = Counter(
        row.delivery.reached_model.get(channel)
        for row in rows
        if row.condition == name and row.delivery is not None
    )
    return Channel(name, channel, declared, claims[True], claims[False], claims[None])


def _inline(name: str, rows: Sequence[TrialRow]) -> InlineText:
    found = [row.delivery for row in rows if row.condition == name and row.delivery is not None]
    covered = [delivery for delivery in found if delivery.coverage is Coverage.COVERED]
    tokens = [float(d.inline_tokens) for d in covered if d.inline_tokens is not None]
    return InlineText(
        condition=name,
        covered=len(covered),
        none=sum(delivery.coverage is Coverage.NONE for delivery in found),
        truncated=sum(delivery.inline_truncated for delivery in covered),
        median_tokens=_median(tokens),
        tokenizers=tuple(sorted({delivery.tokenizer for delivery in found if delivery.tokenizer})),
    )


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
