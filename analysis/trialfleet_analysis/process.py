"""How the trials went: medians of their metrics, why agents stopped, what was delivered, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_analysis.tables.columns import among, codes, denied, integers, lists, numbers, some, texts, truths
from trialfleet_analysis.tables.table import Table
from trialfleet_deliveries.delivery_kind import ClaimedChannel
from trialfleet_deliveries.registry import declares, list_channels
from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.metric_table import REPORTED, Metric
from trialfleet_ledger.records.measurements import Coverage
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_statistics.estimates import Floats, Integers


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
class CrashCount:
    """Measured trials of a condition whose agent crashed before it began to work. `example`: the id of the
    first."""

    condition: str
    crashed: int
    measured: int
    example: str | None


@dataclass(frozen=True)
class UncausedPass:
    """A passed or forged trial whose tests do not pass by the product's changes alone. `files`: changed files
    apart from the product's that the tests need, at most those of the record. `unsteady`: no change was needed."""

    trial: str
    task: str
    condition: str
    verdict: Verdict
    files: tuple[str, ...]
    unsteady: bool


@dataclass(frozen=True)
class CautionedPass:
    """A passed trial whose added lines recognise or end tests, or whose tests that must fail confirm nothing.
    `cautions`: the places of these lines, and what they do; what those tests reported."""

    trial: str
    task: str
    condition: str
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class ProviderEndCount:
    """Measured trials of a condition whose agent ended after a failure of the model's provider that did not count
    as a loss. `measured`: those whose agent has a model."""

    condition: str
    ended: int
    measured: int


@dataclass(frozen=True)
class BlockResult:
    """One launch block over all compared cells: balanced, so its plain rate compares with other blocks'."""

    block: int
    passes: int
    valid: int
    lost: int


@dataclass(frozen=True)
class Channel:
    """One delivery of a condition, and whether all of it reached the model.

    `silent`: nothing was pushed there, since the agent touched nothing that the hook or the rule is about.
    `unknown`: agents without a model, or claims that could not be made. The four add up to the measured trials.
    `in_part`: those of `not_reached` in which some of it reached the model; `share`: of its words, their mean.
    """

    condition: str
    channel: str
    declared: bool
    reached: int
    not_reached: int
    silent: int
    unknown: int
    in_part: int = 0
    share: float | None = None


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
    """Every reported metric that any trial has, under every condition."""
    found: list[Typical] = []
    for metric in REPORTED:
        values = columns.measures.get(metric.name)
        if values is None:
            continue
        for place, name in enumerate(scheme.conditions):
            mine = (columns.condition == place) & columns.valid & np.isfinite(values)
            found.append(_typical(metric, name, columns.task[mine], values[mine]))
    return tuple(found)


def verdict_counts(names: Sequence[str], used: Table) -> tuple[VerdictCount, ...]:
    kinds: tuple[Verdict | None, ...] = (*Verdict, None)
    verdict = codes(used, "verdict", list(Verdict))  # −1, the last kind, is lost
    counts = _crossed(codes(used, "condition", names), verdict % len(kinds), len(names), len(kinds))
    return tuple(
        VerdictCount(name, kind, int(counts[n, k]))
        for n, name in enumerate(names)
        for k, kind in enumerate(kinds)
        if counts[n, k]
    )


def stop_counts(names: Sequence[str], used: Table) -> tuple[StopCount, ...]:
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


def crash_counts(names: Sequence[str], trials: Table) -> tuple[CrashCount, ...]:
    """One per condition, in the order of `names`; of all measured trials, halted conditions included."""
    scored = some(trials, among(trials, "verdict", list(Verdict)))
    crashed, of, ids = (
        among(scored, "stop", [Stop.CRASHED]),
        codes(scored, "condition", names),
        texts(scored, "trial"),
    )
    return tuple(
        CrashCount(
            name,
            int(crashed[of == n].sum()),
            int((of == n).sum()),
            next((ids[int(row)] for row in np.flatnonzero(crashed & (of == n))), None),
        )
        for n, name in enumerate(names)
    )


def uncaused_passes(trials: Table) -> tuple[UncausedPass, ...]:
    """In launch order, forged ones first; halted conditions included."""
    columns = ["trial", "task", "condition", "verdict", "needed", "unsteady"]
    listed = np.array([bool(files) for files in lists(trials, "needed")], np.bool_)
    passed = truths(trials, "passed") & (listed | truths(trials, "unsteady"))
    which = passed | among(trials, "verdict", (Verdict.FORGED,))
    found = [
        UncausedPass(
            row["trial"],
            row["task"],
            row["condition"],
            Verdict(row["verdict"]),
            tuple(row["needed"] or ()),
            bool(row["unsteady"]),
        )
        for row in some(trials, which).select(columns).to_pylist()
    ]
    return tuple(sorted(found, key=lambda one: one.verdict is not Verdict.FORGED))


def cautioned_passes(trials: Table) -> tuple[CautionedPass, ...]:
    """In launch order; halted conditions included."""
    listed = np.array([bool(lines) for lines in lists(trials, "cautions")], np.bool_)
    rows = some(trials, listed & truths(trials, "passed")).select(["trial", "task", "condition", "cautions"])
    return tuple(
        CautionedPass(row["trial"], row["task"], row["condition"], tuple(row["cautions"]))
        for row in rows.to_pylist()
    )


def provider_end_counts(names: Sequence[str], trials: Table) -> tuple[ProviderEndCount, ...]:
    """One per condition, in the order of `names`."""
    scored = some(trials, among(trials, "verdict", list(Verdict)))
    ended, not_so, of = (
        truths(scored, "provider_gave_up"),
        denied(scored, "provider_gave_up"),
        codes(scored, "condition", names),
    )
    return tuple(
        ProviderEndCount(name, int(ended[of == n].sum()), int((ended | not_so)[of == n].sum()))
        for n, name in enumerate(names)
    )


def block_results(used: Table) -> tuple[BlockResult, ...]:
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


def channels(conditions: Mapping[str, Condition], used: Table) -> tuple[Channel, ...]:
    """One per condition and channel. A claim about a channel that was not declared says that it stayed empty."""
    names = list(conditions)
    measured = some(used, among(used, "verdict", list(Verdict)))
    condition = codes(measured, "condition", names)
    return tuple(
        _channel(name, channel, some(measured, condition == n), declared=declares(composed, channel.name))
        for n, (name, composed) in enumerate(conditions.items())
        for channel in list_channels().values()
    )


def _channel(condition: str, channel: ClaimedChannel, mine: Table, *, declared: bool) -> Channel:
    reached, missed = truths(mine, f"reached_{channel.name}"), denied(mine, f"reached_{channel.name}")
    silent = np.zeros(mine.num_rows, np.bool_)
    if declared and channel.firings is not None:
        silent = (numbers(mine, channel.firings) == 0) & ~reached & ~missed
    seen, unseen, pushed_nothing = (int(each.sum()) for each in (reached, missed, silent))
    unknown = mine.num_rows - seen - unseen - pushed_nothing
    shares = numbers(mine, f"sent_{channel.name}")
    parts = shares[missed & (shares > 0)]
    share = float(parts.mean()) if parts.size else None
    return Channel(condition, channel.name, declared, seen, unseen, pushed_nothing, unknown, parts.size, share)


def inline_texts(conditions: Mapping[str, Condition], used: Table) -> tuple[InlineText, ...]:
    measured = some(used, among(used, "verdict", list(Verdict)))
    return tuple(
        _inline(name, some(measured, among(measured, "condition", (name,))))
        for name, condition in conditions.items()
        if condition.inline is not None
    )


def core_seconds(trials: Table) -> CoreSeconds:
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


def _typical(metric: Metric, condition: str, task: Integers, values: Floats) -> Typical:
    parts = by_code(values, task)
    middle = np.mean if metric.unit == "share" else np.median
    centre = float(middle([middle(part) for part in parts])) if parts else None
    return Typical(metric.name, condition, centre, values.size, len(parts))


def by_code(values: Floats, code: Integers) -> list[Floats]:
    """The values of each code that occurs, in the codes' order."""
    order = np.argsort(code, kind="stable")
    starts = np.unique(code[order], return_index=True)[1]
    return np.split(values[order], starts[1:]) if values.size else []


def _inline(name: str, mine: Table) -> InlineText:
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
