"""The metrics of a trial: unit, label, meaning and source of each. Tables, report and documentation follow it.

A new metric needs a field of `Metrics`, the code that measures it, and one entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["count", "s", "usd", "share"]  # how a report shows a value

UNMEASURED = "the trial was lost, or it was not measured"
UNSEEN = "the trial was lost, there was no edit, or it is not known when"
NOT_PREDICTED = "the trial was lost, or nothing was predicted"
NO_PREFLIGHT = "the trial was lost, or it had no pre-flight"

_REQUESTS = "model gateway, or the agent's log without one"
_GATEWAY = "model gateway"
_LOG = "the agent's log"
_CLOCK = "the runner's clock"
_CORE = "CPU accounting of the processes"
_HOOK = "log of the hooks"
_PATCH = "the patch"
_DISK = "the workspace, at each request for the model"
_DISK_AND_LOG = "the workspace, and the agent's log"


@dataclass(frozen=True)
class Metric:
    """One metric. `name`: the field of `Metrics` and the column of the trials' table. `counted_in`: s, usd,
    tokens, turns …; empty for a yes or no. `absent`: what a missing value means.

    `label`: the name in a report; empty: reports do not show it. `compared`: tested between conditions. `plot`:
    whether a report draws its distribution, at first sight or folded away. `parts`: the metrics that it is the sum
    of; it is then no field and no column.
    """

    name: str
    label: str
    counted_in: str
    meaning: str
    source: str
    absent: str = UNMEASURED
    compared: bool = False
    plot: Literal["none", "first", "folded"] = "none"
    parts: tuple[str, ...] = ()

    @property
    def unit(self) -> Unit:
        if not self.counted_in:
            return "share"
        return "s" if self.counted_in == "s" else "usd" if self.counted_in == "usd" else "count"


def _preflight(kind: str, counted_in: str, source: str, *, label: str = "") -> Metric:
    meaning = f"of the pre-flight, part of `{kind}`"
    return Metric(f"preflight_{kind}", label, counted_in, meaning, source, NO_PREFLIGHT)


# In the order of a report's tables.
METRICS: tuple[Metric, ...] = (
    Metric("turns", "Turns", "turns", "requests that the model answered", _REQUESTS, compared=True, plot="first"),
    Metric("tool_calls", "Tool calls", "calls", "single uses of tools", _LOG),
    Metric(
        "agent_s",
        "Agent time",
        "s",
        "wall clock of the agent, throttled time included",
        _CLOCK,
        compared=True,
        plot="first",
    ),
    Metric(
        "wall_s",
        "Wall clock",
        "s",
        "wall clock of the attempt, and of the one before where only scoring was repeated",
        _CLOCK,
        compared=True,
        plot="folded",
    ),
    Metric("tests_s", "Test time", "s", "wall clock of the tests, all scoring runs together", _CLOCK),
    Metric(
        "throttled_s",
        "Throttled by the provider",
        "s",
        "time that the model's provider made the agent wait",
        _GATEWAY,
    ),
    Metric(
        "input_tokens",
        "Input tokens",
        "tokens",
        "input that was neither read from nor written to the provider's cache",
        _REQUESTS,
        compared=True,
        plot="first",
    ),
    Metric("output_tokens", "Output tokens", "tokens", "output", _REQUESTS, compared=True, plot="first"),
    Metric(
        "cache_read_tokens",
        "Cache-read tokens",
        "tokens",
        "input that was read from the provider's cache",
        _REQUESTS,
        compared=True,
    ),
    Metric(
        "cache_write_tokens",
        "Cache-write tokens",
        "tokens",
        "input that was written to the provider's cache",
        _REQUESTS,
        compared=True,
    ),
    Metric("cost_usd", "Cost", "usd", "cost of the agent's requests", _REQUESTS, compared=True, plot="first"),
    Metric(
        "uncached_cost_usd",
        "Cost at uncached prices",
        "usd",
        "cost of the same requests, had the provider's cache neither been read nor written",
        _GATEWAY,
    ),
    Metric(
        "edits",
        "Edits",
        "edits",
        "changes of files on disk, whichever tool made them, also those that were undone later",
        _DISK,
    ),
    Metric(
        "first_edit_turn",
        "First edit, turn",
        "turn",
        "the turn of the first edit, from 1",
        _DISK,
        UNSEEN,
        compared=True,
        plot="first",
    ),
    Metric(
        "first_edit_s",
        "First edit, time",
        "s",
        "from the agent's start to its first edit",
        _DISK,
        UNSEEN,
        compared=True,
        plot="folded",
    ),
    Metric("exploration_turns", "Turns before the first edit", "turns", "before the first edit", _DISK, UNSEEN),
    Metric(
        "edit_turns", "Turns from first to last edit", "turns", "from the first edit to the last", _DISK, UNSEEN
    ),
    Metric("tail_turns", "Turns after the last edit", "turns", "after the last edit", _DISK, UNSEEN),
    Metric(
        "files_read_before_edit",
        "Files read before the edit",
        "files",
        "different files that were read up to the turn of the first edit",
        _DISK_AND_LOG,
        UNSEEN,
    ),
    Metric(
        "context_files_read",
        "Context files read",
        "files",
        "different context files that the agent opened by itself",
        _LOG,
    ),
    Metric("hook_firings", "Hook firings", "firings", "how often the condition's hook pushed text", _HOOK),
    Metric(
        "target_hit",
        "Edited a file that the fix changes",
        "",
        "whether a file that the fix changes was edited, also if that was undone later",
        _DISK,
    ),
    Metric(
        "skill_opened",
        "Opened a skill",
        "",
        "whether the agent used one of the condition's skills, or read one of their files",
        _LOG,
        "the trial was lost, or its condition has no skill",
    ),
    Metric(
        "mcp_called",
        "Called an MCP tool",
        "",
        "whether the agent called a tool of one of the condition's MCP servers",
        _LOG,
        "the trial was lost, or its condition has no MCP server",
    ),
    Metric(
        "provider_gave_up",
        "Ended after a failure of the provider",
        "",
        "whether the last request for the planned model failed by the provider",
        _GATEWAY,
        "the trial was lost, or its agent has no model",
    ),
    Metric(
        "predicted_hit",
        "A predicted file is one that the fix changes",
        "",
        "whether a file that the fix changes was among the predicted ones",
        "the prediction in the plan",
        NOT_PREDICTED,
    ),
    Metric(
        "preflight_hit",
        "Pre-flight pointed at a file that the fix changes",
        "",
        "whether the pre-flight pointed at a file that the fix changes",
        "the pre-flight's findings",
        NO_PREFLIGHT,
    ),
    _preflight("turns", "turns", _REQUESTS, label="Turns of the pre-flight"),
    Metric(
        "preflight_s",
        "Time of the pre-flight",
        "s",
        "wall clock of the pre-flight, part of `agent_s`",
        _CLOCK,
        NO_PREFLIGHT,
    ),
    Metric(
        "preflight_tokens",
        "Input and output tokens of the pre-flight",
        "tokens",
        "of the pre-flight, without what the cache held",
        _REQUESTS,
        NO_PREFLIGHT,
        parts=("preflight_input_tokens", "preflight_output_tokens"),
    ),
    _preflight("cost_usd", "usd", _REQUESTS, label="Cost of the pre-flight"),
    Metric("rule_firings", "Rule firings", "firings", "how often the condition's rule pushed text", _HOOK),
    Metric(
        "fail_fast_denials",
        "Denials by the fail-fast hook",
        "denials",
        "commands that the fail-fast hook denied",
        _HOOK,
    ),
    Metric("files_changed", "Files changed", "files", "changed by the patch", _PATCH),
    Metric(
        "lines_changed",
        "Lines changed",
        "lines",
        "added or removed by the patch",
        _PATCH,
        parts=("lines_added", "lines_removed"),
    ),
    Metric("lines_added", "", "lines", "added by the patch", _PATCH),
    Metric("lines_removed", "", "lines", "removed by the patch", _PATCH),
    Metric("overhead_core_s", "", "core s", "core time of everything around agent and tests", _CORE),
    Metric("agent_core_s", "", "core s", "core time of the agent", _CORE),
    Metric("tests_core_s", "", "core s", "core time of the tests, all scoring runs together", _CORE),
    _preflight("tool_calls", "calls", _LOG),
    _preflight("input_tokens", "tokens", _REQUESTS),
    _preflight("output_tokens", "tokens", _REQUESTS),
    _preflight("cache_read_tokens", "tokens", _REQUESTS),
    _preflight("cache_write_tokens", "tokens", _REQUESTS),
)
BY_NAME = {metric.name: metric for metric in METRICS}
REPORTED = tuple(metric for metric in METRICS if metric.label)
