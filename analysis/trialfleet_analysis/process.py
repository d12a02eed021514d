"""How the trials went: medians of their metrics, why agents stopped, what was delivered, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from trialfleet_analysis.estimates import Floats, Integers
from trialfleet_analysis.plan_of_analysis.columns import Columns, Scheme
from trialfleet_analysis.tables.arrays import among, codes, denied, integers, truths
from trialfleet_analysis.tables.columns import numbers, some, texts
from trialfleet_runner.conditions import Condition
from trialfleet_runner.contract import Coverage, Stop, Verdict

ChannelName = Literal["files", "inline", "hook", "rules"]
CHANNELS: tuple[ChannelName, ...] = get_args(ChannelName)
_FIRINGS = {"hook": "hook_firings", "rules": "rule_firings"}
Unit = Literal["count", "s", "usd", "share"]


@dataclass(frozen=True)
class Measure:
    """One metric of a trial: the sum of `columns` of the trials' table. Unit `share`: a yes or no, averaged
    instead of its median taken."""

    key: str
    label: str
    unit: Unit
    columns: tuple[str, ...] = ()

    def of(self, trials: pa.Table) -> Floats | None:
        """One value per row, NaN where it was not measured; None when it was nowhere."""
        found = np.sum([numbers(trials, name) for name in self.columns or (self.key,)], axis=0)
        return found if np.isfinite(found).any() else None


MEASURES: tuple[Measure, ...] = (
    Measure("turns", "Turns", "count"),
    Measure("tool_calls", "Tool calls", "count"),
    Measure("agent_s", "Agent time", "s"),
    Measure("wall_s", "Wall clock", "s"),
    Measure("tests_s", "Test time", "s"),
    Measure("throttled_s", "Throttled by the provider", "s"),
    Measure("input_tokens", "Input tokens", "count"),
    Measure("output_tokens", "Output tokens", "count"),
    Measure("cache_read_tokens", "Cache-read tokens", "count"),
    Measure("cache_write_tokens", "Cache-write tokens", "count"),
    Measure("cost_usd", "Cost", "usd"),
    Measure("first_edit_turn", "First edit, turn", "count"),
    Measure("first_edit_s", "First edit, time", "s"),
    Measure("exploration_turns", "Turns before the first edit", "count"),
    Measure("edit_turns", "Turns from first to last edit", "count"),
    Measure("tail_turns", "Turns after the last edit", "count"),
    Measure("files_read_before_edit", "Files read before the edit", "count"),
    Measure("context_files_read", "Context files read", "count"),
    Measure("hook_firings", "Hook firings", "count"),
    Measure("target_hit", "Edited a file that the fix changes", "share"),
    Measure("predicted_hit", "A predicted file is one that the fix changes", "share"),
    Measure("preflight_hit", "Pre-flight pointed at a file that the fix changes", "share"),
    Measure("preflight_turns", "Turns of the pre-flight", "count"),
    Measure("preflight_s", "Time of the pre-flight", "s"),
    Measure(
        "preflight_tokens",
        "Input and output tokens of the pre-flight",
        "count",
        ("preflight_input_tokens", "preflight_output_tokens"),
    ),
    Measure("preflight_cost_usd", "Cost of the pre-flight", "usd"),
    Measure("rule_firings", "Rule firings", "count"),
    Measure("fail_fast_denials", "Denials by the fail-fast hook", "count"),
    Measure("files_changed", "Files changed", "count"),
    Measure("lines_changed", "Lines changed", "count", ("lines_added", "lines_removed")),
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

    `silent`: nothing was pushed there, since the agent touched nothing that the hook or the rule is about.
    `unknown`: agents without a model, or claims that could not be made. The four add up to the measured trials.
    """

    condition: str
    channel: ChannelName
    declared: bool
    reached: int
    not_reached: int
    silent: int
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


def typical(scheme: Scheme, columns: Columns) -> tuple[Typical, ...]:
    """Every measure that any trial has, under every condition."""
    found: list[Typical] = []
    for measure in MEASURES:
        values = columns.measures.get(measure.key)
        if values is None:
            continue
        for place, name in enumerate(scheme.conditions):
            mine = (columns.condition == place) & columns.valid & np.isfinite(values)
            found.append(_typical(measure, name, columns.task[mine], values[mine]))
    return tuple(found)


def verdict_counts(names: Sequence[str], used: pa.Table) -> tuple[VerdictCount, ...]:
    kinds: tuple[Verdict | None, ...] = (*Verdict, None)
    verdict = codes(used, "verdict", list(Verdict))  # −1, the last kind, is lost
    counts = _crossed(codes(used, "condition", names), verdict % len(kinds), len(names), len(kinds))
    return tuple(
        VerdictCount(name, kind, int(counts[n, k]))
        for n, name in enumerate(names)
        for k, kind in enumerate(kinds)
        if counts[n, k]
    )


def stop_counts(names: Sequence[str], used: pa.Table) -> tuple[StopCount, ...]:
    stopped = some(used, among(used, "stop", list(Stop)))
    condition, stop, passed = (
        codes(stopped, "condition", names),
        codes(stopped, "stop", list(Stop)),
        truths(stopped, "passed"),
    )
    counts = _crossed(condition, stop, len(names), len(Stop))
    passes = _crossed(condition[passed], stop[passed], len(names), len(Stop))
    return tuple(
        StopCount(name, kind, int(counts[n, k]), int(passes[n, k]))
        for n, name in enumerate(names)
        for k, kind in enumerate(Stop)
        if counts[n, k]
    )


def block_results(used: pa.Table) -> tuple[BlockResult, ...]:
    block, passed = integers(used, "block"), truths(used, "passed")
    valid = among(used, "verdict", list(Verdict))
    numbered, trials = np.unique(block, return_counts=True)
    passes, measured = (
        np.bincount(block[which], minlength=int(block.max(initial=-1)) + 1) for which in (passed, valid)
    )
    return tuple(
        BlockResult(number, int(passes[number]), int(measured[number]), of - int(measured[number]))
        for number, of in zip(numbered.tolist(), trials.tolist(), strict=True)
    )


def declares(condition: Condition, channel: ChannelName) -> bool:
    """Inline text that is pushed as a rule goes by that channel alone."""
    if condition.inline is not None and channel in ("inline", "rules"):
        return (condition.inline.channel == "rules") == (channel == "rules")
    return channel != "rules" and getattr(condition, channel) is not None


def channels(conditions: Mapping[str, Condition], used: pa.Table) -> tuple[Channel, ...]:
    """One per condition and channel. A claim about a channel that was not declared says that it stayed empty."""
    names = list(conditions)
    measured = some(used, among(used, "verdict", list(Verdict)))
    condition = codes(measured, "condition", names)
    return tuple(
        _channel(name, channel, some(measured, condition == n), declared=declares(composed, channel))
        for n, (name, composed) in enumerate(conditions.items())
        for channel in CHANNELS
    )


def _channel(condition: str, channel: ChannelName, mine: pa.Table, *, declared: bool) -> Channel:
    reached, missed = truths(mine, f"reached_{channel}"), denied(mine, f"reached_{channel}")
    silent = np.zeros(mine.num_rows, np.bool_)
    if declared and channel in _FIRINGS:
        silent = (numbers(mine, _FIRINGS[channel]) == 0) & ~reached & ~missed
    seen, unseen, pushed_nothing = (int(each.sum()) for each in (reached, missed, silent))
    unknown = mine.num_rows - seen - unseen - pushed_nothing
    return Channel(condition, channel, declared, seen, unseen, pushed_nothing, unknown)


def inline_texts(conditions: Mapping[str, Condition], used: pa.Table) -> tuple[InlineText, ...]:
    measured = some(used, among(used, "verdict", list(Verdict)))
    return tuple(
        _inline(name, some(measured, among(measured, "condition", (name,))))
        for name, condition in conditions.items()
        if condition.inline is not None
    )


def core_seconds(trials: pa.Table) -> CoreSeconds:
    """Over the trials whose overhead was measured; an agent without processes has no time of its own."""
    overhead, agent, tests = (numbers(trials, f"{part}_core_s") for part in ("overhead", "agent", "tests"))
    known = np.isfinite(overhead)
    totals = overhead + np.nan_to_num(agent) + np.nan_to_num(tests)
    return CoreSeconds(
        trials=int(known.sum()),
        overhead=_median(overhead[known]),
        agent=_median(agent[known]),
        tests=_median(tests[known]),
        median=_median(totals[known]),
        mean=float(totals[known].mean()) if known.any() else None,
    )


def _typical(measure: Measure, condition: str, task: Integers, values: Floats) -> Typical:
    parts = by_code(values, task)
    middle = np.mean if measure.unit == "share" else np.median
    centre = float(middle([middle(part) for part in parts])) if parts else None
    return Typical(measure.key, condition, centre, values.size, len(parts))


def by_code(values: Floats, code: Integers) -> list[Floats]:
    """The values of each code that occurs, in the codes' order."""
    order = np.argsort(code, kind="stable")
    starts = np.unique(code[order], return_index=True)[1]
    return np.split(values[order], starts[1:]) if values.size else []


def _inline(name: str, mine: pa.Table) -> InlineText:
    covered = some(mine, among(mine, "coverage", (Coverage.COVERED,)))
    return InlineText(
        condition=name,
        covered=covered.num_rows,
        none=int(among(mine, "coverage", (Coverage.NONE,)).sum()),
        truncated=int(truths(covered, "inline_truncated").sum()),
        median_tokens=_median(numbers(covered, "inline_tokens")),
        tokenizers=tuple(sorted({word for word in texts(mine, "tokenizer") if word})),
    )


def _crossed(one: Integers, other: Integers, rows: int, columns: int) -> Integers:
    return np.bincount(one * columns + other, minlength=rows * columns).reshape(rows, columns)


def _median(values: Floats) -> float | None:
    """Of those that were measured."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else None
