"""The two tables' columns: names, types, units, meanings. `docs/reference/tables.md` is made of this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from trialfleet_runner.contract import Metrics

VERSION = 2  # a table of another version is made anew, never read

TEXT = pa.string()
WORD = pa.dictionary(pa.int32(), pa.string())  # one of few: pandas' and Polars' categorical
COUNT = pa.int64()
ORDINAL = pa.int32()
REAL = pa.float64()
CLAIM = pa.bool_()
MOMENT = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.field("item", pa.string()))
VERSIONS = pa.list_(pa.field("item", pa.struct([pa.field("name", pa.string()), pa.field("version", pa.string())])))


@dataclass(frozen=True)
class Column:
    """One column. `unit`: s, usd, bytes, tokens, turns …; empty where there is none. `null`: what a missing value
    means; empty: there is always a value."""

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    null: str = ""

    @property
    def field(self) -> pa.Field[pa.DataType]:
        told = {"meaning": self.meaning, "unit": self.unit, "null": self.null}
        return pa.field(
            self.name,
            self.type,
            nullable=bool(self.null),
            metadata={name: text for name, text in told.items() if text},
        )


_LOST = "the trial was lost"
_UNSAID = "the trial was lost, or it was not measured"
_NEVER = "the trial was lost, or it did not happen"
_UNFORETOLD = "the trial was lost, or nothing was predicted"
_UNLOOKED = "the trial was lost, or it had no pre-flight"
_UNRUN = "nobody ran it, or who did says nothing of it"

_METRICS: dict[str, tuple[str, str, str]] = {
    "turns": ("turns", "requests that the model answered", _UNSAID),
    "tool_calls": ("calls", "single uses of tools", _UNSAID),
    "input_tokens": ("tokens", "input, without what the cache gave or took", _UNSAID),
    "output_tokens": ("tokens", "output", _UNSAID),
    "cache_read_tokens": ("tokens", "input that came from the provider's cache", _UNSAID),
    "cache_write_tokens": ("tokens", "input that went into the provider's cache", _UNSAID),
    "cost_usd": ("usd", "what the agent's requests cost", _UNSAID),
    "wall_s": ("s", "wall clock of the attempt, and of the one before where only scoring was repeated", _UNSAID),
    "agent_s": ("s", "wall clock of the agent, throttled time included", _UNSAID),
    "throttled_s": ("s", "time that the model's provider made the agent wait", _UNSAID),
    "tests_s": ("s", "wall clock of the tests", _UNSAID),
    "overhead_core_s": ("core s", "core time of everything around agent and tests", _UNSAID),
    "agent_core_s": ("core s", "core time of the agent", _UNSAID),
    "tests_core_s": ("core s", "core time of the tests", _UNSAID),
    "first_edit_turn": ("turn", "the turn of the first edit, from 1", _NEVER),
    "first_edit_s": ("s", "from the agent's start to its first edit", _NEVER),
    "exploration_turns": ("turns", "before the first edit", _NEVER),
    "edit_turns": ("turns", "from the first edit to the last", _NEVER),
    "tail_turns": ("turns", "after the last edit", _NEVER),
    "files_read_before_edit": ("files", "different files that were read before the first edit", _NEVER),
    "context_files_read": ("files", "different context files that the agent opened by itself", _UNSAID),
    "hook_firings": ("firings", "how often the condition's hook spoke", _UNSAID),
    "target_hit": ("", "whether the patch touches a file that the fix changes", _UNSAID),
    "lines_added": ("lines", "added by the patch", _UNSAID),
    "lines_removed": ("lines", "removed by the patch", _UNSAID),
    "files_changed": ("files", "changed by the patch", _UNSAID),
    "rule_firings": ("firings", "how often the condition's rule spoke", _UNSAID),
    "fail_fast_denials": ("denials", "commands that the fail-fast hook denied", _UNSAID),
    "predicted_hit": ("", "whether a file that the fix changes was among the predicted ones", _UNFORETOLD),
    "preflight_hit": ("", "whether the pre-flight pointed at a file that the fix changes", _UNLOOKED),
    "preflight_turns": ("turns", "of the pre-flight, part of `turns`", _UNLOOKED),
    "preflight_tool_calls": ("calls", "of the pre-flight, part of `tool_calls`", _UNLOOKED),
    "preflight_input_tokens": ("tokens", "of the pre-flight, part of `input_tokens`", _UNLOOKED),
    "preflight_output_tokens": ("tokens", "of the pre-flight, part of `output_tokens`", _UNLOOKED),
    "preflight_cache_read_tokens": ("tokens", "of the pre-flight, part of `cache_read_tokens`", _UNLOOKED),
    "preflight_cache_write_tokens": ("tokens", "of the pre-flight, part of `cache_write_tokens`", _UNLOOKED),
    "preflight_cost_usd": ("usd", "of the pre-flight, part of `cost_usd`", _UNLOOKED),
    "preflight_s": ("s", "wall clock of the pre-flight, part of `agent_s`", _UNLOOKED),
}


def _metric(name: str) -> Column:
    unit, meaning, null = _METRICS[name]
    kinds: dict[str, pa.DataType] = {"int | None": COUNT, "float | None": REAL, "bool | None": CLAIM}
    return Column(name, kinds[str(Metrics.model_fields[name].annotation)], meaning, unit, null)


METRICS: tuple[Column, ...] = tuple(_metric(name) for name in Metrics.model_fields)

_IDENTITY = (
    Column("trial", TEXT, "the trial's id: `trialfleet show` takes it"),
    Column("task", WORD, "the task's id"),
    Column("condition", WORD, "the condition's name"),
    Column("rep", ORDINAL, "the repetition inside the cell, from 0"),
    Column("block", ORDINAL, "the launch block, from 0"),
)

_PLACE = (
    Column("started_at", MOMENT, "when its runner began, by the runner's clock", "UTC", _UNRUN),
    Column("ended_at", MOMENT, "when its end was written, by the writer's clock", "UTC", "it has no readable end"),
    Column("host", WORD, "the name of the machine, or of the pod, that ran it", "", _UNRUN),
    Column("node", WORD, "the Kubernetes node that ran it", "", _UNRUN),
)

TRIAL_COLUMNS: tuple[Column, ...] = (
    *_IDENTITY,
    Column("position", ORDINAL, "the place in the block's launch order, from 0"),
    Column("seed", COUNT, "the agent's seed"),
    Column("in_blocks", CLAIM, "whether it lies in the complete blocks: rates are made of these alone"),
    Column("use", WORD, "what the task is used for: primary; no_oracle and halted are reported apart"),
    Column("covered", CLAIM, "whether a context node below the root covers the task's anchor", "", "not known"),
    Column("prompt_source", WORD, "what the task's text is: failing_test, issue or commit_message"),
    Column("category", WORD, "the task's category, as its file says", "", "it says none"),
    Column("difficulty", WORD, "the task's difficulty, as its file says", "", "it says none"),
    Column("verdict", WORD, "passed, failed, timed_out, exhausted or tests_timed_out", "", _LOST),
    Column("passed", CLAIM, "whether the verdict is `passed`. Null is missing data, never a failure", "", _LOST),
    Column("stop", WORD, "why the agent stopped: finished, max_turns, timeout, cost …", "", _LOST),
    Column("tests_passed", CLAIM, "whether the tests passed, also after a time-out", "", _LOST),
    Column("missing", TEXT, "why there is no verdict", "", "there is one"),
    Column("abandoned", WORD, "the class of the loss that its outcome was given up for", "", "it was not"),
    Column("fault", TEXT, "what its chain or bundle says against its outcome", "", "nothing"),
    Column("verified", CLAIM, "whether its bundle was read and is the one that its outcome names"),
    Column("attempts", COUNT, "how many attempts it took"),
    Column("losses", TEXTS, "the classes of its lost attempts, in order"),
    Column("mid_run_losses", ORDINAL, "attempts that were lost while the agent ran"),
    Column("first_run_missing", CLAIM, "whether the first attempt whose agent started gave nothing to count"),
    Column("bundle", TEXT, "the bundle's key below the campaign", "", "it names none"),
    Column("bundle_sha256", TEXT, "the bundle's SHA-256, as its outcome says", "", "it names none"),
    *_PLACE,
    Column("core_s", REAL, "overhead, agent and tests together", "core s", _UNSAID),
    *METRICS,
    Column("context_files", TEXTS, "the condition's files that were put into the workspace", "", _LOST),
    Column("inline_tokens", COUNT, "length of the condition's text in the prompt", "tokens", "no such text"),
    Column("inline_truncated", CLAIM, "whether that text was cut to its limit", "", _LOST),
    Column("covering_node", TEXT, "the context node that the text came from", "", "none"),
    Column("coverage", WORD, "whether the text had something to say: covered, none, not_asked", "", _LOST),
    Column("tokenizer", WORD, "what counted the text's tokens", "", "no such text"),
    Column("reached_files", CLAIM, "whether the files were seen to reach the model", "", "not claimed"),
    Column("reached_inline", CLAIM, "whether the text was seen to reach the model", "", "not claimed"),
    Column("reached_hook", CLAIM, "whether the hook's text was seen to reach the model", "", "not claimed"),
    Column("reached_rules", CLAIM, "whether the rule's text was seen to reach the model", "", "not claimed"),
    Column("named_targets", TEXTS, "the files that the condition's text names", "", _LOST),
    Column("abstained", WORD, "why a text that names files was not there", "", "it was, or none was asked for"),
    Column("preflight", WORD, "what the pre-flight came to: found, uncertain, skip, no_targets", "", _UNLOOKED),
)

_OPEN = "the trial has no outcome yet"

ATTEMPT_COLUMNS: tuple[Column, ...] = (
    _IDENTITY[0],
    *(Column(c.name, c.type, c.meaning, c.unit, _OPEN) for c in _IDENTITY[1:]),
    Column("attempt", COUNT, "the attempt's number, from 1"),
    Column("verdict", WORD, "the verdict that counts", "", "the attempt was lost"),
    Column("loss", WORD, "why there is none: evicted, node_lost, provider …", "", "there is one"),
    Column("stage", WORD, "how far it had come: before_agent, mid_run, after_patch, unknown", "", "not lost"),
    Column("message", TEXT, "what its end says of the loss; written by others: show it escaped", "", "not lost"),
    Column("score_only", CLAIM, "whether it only scored the patch of the attempt before"),
    Column("by", WORD, "who wrote its end: runner or controller", "", "it has no readable end"),
    *_PLACE,
    Column("elapsed_s", REAL, "from its start to its end", "s", "one of the two is missing"),
    Column("pod", TEXT, "the pod's uid", "", _UNRUN),
    Column("image", WORD, "the image that its runner was in", "", _UNRUN),
    Column("bundle", TEXT, "the bundle's key below the campaign", "", "not the attempt that counts"),
    Column("bundle_sha256", TEXT, "the bundle's SHA-256, as the outcome says", "", "not the attempt that counts"),
    Column("bundle_bytes", COUNT, "the bundle's size, as the end says", "bytes", "it names none"),
    Column("verified", CLAIM, "whether its bundle was read and is the one that its outcome names"),
    Column("fault", TEXT, "what its chain or bundle says against its outcome", "", "nothing"),
    Column("isolation", WORD, "what kept agent and tests apart", "", "its bundle was not read"),
    Column("warnings", TEXTS, "what its bundle warns of"),
    Column("versions", VERSIONS, "what made its bundle"),
)


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([column.field for column in columns])


TRIALS: pa.Schema = _schema(TRIAL_COLUMNS)
ATTEMPTS: pa.Schema = _schema(ATTEMPT_COLUMNS)
