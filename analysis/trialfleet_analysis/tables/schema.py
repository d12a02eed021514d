"""The two tables' columns: names, types, units, meanings. `docs/reference/tables.md` is made of this."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trialfleet_deliveries.registry import list_channels
from trialfleet_ledger.metric_table import BY_NAME, NO_PREFLIGHT, UNMEASURED
from trialfleet_ledger.records.measurements import Metrics

VERSION = 11  # a table of another version is made again, never read


class Kind(StrEnum):
    """A column's type, in the page's words. WORD: one of few, pandas' and Polars' categorical."""

    TEXT = "text"
    WORD = "word"
    COUNT = "int64"
    ORDINAL = "int32"
    REAL = "float64"
    CLAIM = "bool"
    MOMENT = "timestamp"
    TEXTS = "list of text"
    VERSIONS = "list of {name, version}"


TEXT, WORD, COUNT, ORDINAL, REAL, CLAIM, MOMENT, TEXTS, VERSIONS = Kind


@dataclass(frozen=True)
class Column:
    """One column. `unit`: s, usd, bytes, tokens, turns …; empty where there is none. `null`: what a missing value
    means; empty: there is always a value."""

    name: str
    type: Kind
    meaning: str
    unit: str = ""
    null: str = ""


_LOST = "the trial was lost"
_UNRUN = "no runner started, or its record does not say"


def _metric(name: str) -> Column:
    kinds: dict[str, Kind] = {"int | None": COUNT, "float | None": REAL, "bool | None": CLAIM}
    metric = BY_NAME[name]
    kind = kinds[str(Metrics.model_fields[name].annotation)]
    return Column(name, kind, metric.meaning, metric.counted_in, metric.absent)


METRIC_COLUMNS: tuple[Column, ...] = tuple(_metric(name) for name in Metrics.model_fields)

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
    Column(
        "in_blocks",
        CLAIM,
        "whether it is in the complete blocks, up to a look that ended the campaign, and its condition is not "
        "halted: rates use these alone",
    ),
    Column("use", WORD, "what the task is used for: primary; no_oracle and halted are reported apart"),
    Column("covered", CLAIM, "whether a context node below the root covers the task's anchor", "", "not known"),
    Column("prompt_source", WORD, "what the task's text is: failing_test, issue or commit_message"),
    Column("category", WORD, "the category in the task's file", "", "the file has none"),
    Column("difficulty", WORD, "the difficulty in the task's file", "", "the file has none"),
    Column(
        "verdict",
        WORD,
        "passed, failed, timed_out, exhausted, tests_timed_out, tests_exhausted or forged",
        "",
        _LOST,
    ),
    Column("passed", CLAIM, "whether the verdict is `passed`. Null is missing data, never a failure", "", _LOST),
    Column(
        "stop",
        WORD,
        "why the agent stopped: finished, error, crashed (it never began), max_turns, timeout, cost …",
        "",
        _LOST,
    ),
    Column("tests_passed", CLAIM, "whether the tests passed, also after a time-out or if forged", "", _LOST),
    Column("needed", TEXTS, "changed files apart from the product's that the tests need to pass", "", _LOST),
    Column("unsteady", CLAIM, "whether the tests also passed without any change", "", _LOST),
    Column(
        "cautions",
        TEXTS,
        "of a pass: added lines that recognise or end tests, tests that must fail and confirm nothing",
        "",
        _LOST,
    ),
    Column("missing", TEXT, "why there is no verdict", "", "there is one"),
    Column("abandoned", WORD, "the class of the loss for which the trial was abandoned", "", "it was not"),
    Column("fault", TEXT, "what in its chain or bundle contradicts its outcome", "", "nothing"),
    Column("tampered", CLAIM, "whether a record or bundle of it was changed or deleted after it was written"),
    Column("verified", CLAIM, "whether its bundle was read and is the one that its outcome names"),
    Column("attempts", COUNT, "how many attempts it took"),
    Column("losses", TEXTS, "the classes of its lost attempts, in order"),
    Column("mid_run_losses", ORDINAL, "attempts that were lost while the agent ran"),
    Column("interrupted_runs", ORDINAL, "those of them that the operator stopped"),
    Column("first_run_missing", CLAIM, "whether the first attempt whose agent started gave nothing to count"),
    Column("bundle", TEXT, "the bundle's key below the campaign", "", "it names none"),
    Column("bundle_sha256", TEXT, "the bundle's SHA-256 in the outcome", "", "it names none"),
    *_PLACE,
    Column("core_s", REAL, "overhead, agent and tests together", "core s", UNMEASURED),
    *METRIC_COLUMNS,
    Column("left_out", TEXTS, "metrics with impossible values, which were left out: each name with its value"),
    Column("context_files", TEXTS, "the condition's files that were put into the workspace", "", _LOST),
    Column("inline_tokens", COUNT, "length of the condition's text in the prompt", "tokens", "no such text"),
    Column("inline_truncated", CLAIM, "whether that text was cut to its limit", "", _LOST),
    Column("covering_node", TEXT, "the context node that the text came from", "", "none"),
    Column("coverage", WORD, "whether a context node covered the task: covered, none, not_asked", "", _LOST),
    Column("tokenizer", WORD, "the tokenizer that counted the text's tokens", "", "no such text"),
    *(
        Column(f"reached_{name}", CLAIM, channel.meaning, "", "not claimed")
        for name, channel in list_channels().items()
    ),
    *(
        Column(
            f"sent_{name}",
            REAL,
            f"{channel.head}: the share of the words that reached the model",
            "",
            "not claimed",
        )
        for name, channel in list_channels().items()
    ),
    Column(
        "first_request_sha256",
        TEXT,
        "digest of the first request of the agent's loop, without ids, times and labels: equal if the model got "
        "the same",
        "",
        "the trial was lost, no model answered, or the request is larger than 1 MiB",
    ),
    Column("named_targets", TEXTS, "the files that the condition's text names", "", _LOST),
    Column("abstained", WORD, "why a text that should name files was absent", "", "it was, or none was asked for"),
    Column("preflight", WORD, "result of the pre-flight: found, uncertain, skip, no_targets", "", NO_PREFLIGHT),
)

_OPEN = "the trial has no outcome yet"

ATTEMPT_COLUMNS: tuple[Column, ...] = (
    _IDENTITY[0],
    *(Column(c.name, c.type, c.meaning, c.unit, _OPEN) for c in _IDENTITY[1:]),
    Column("attempt", COUNT, "the attempt's number, from 1"),
    Column("verdict", WORD, "the verdict that counts", "", "the attempt was lost"),
    Column("loss", WORD, "why there is none: evicted, node_lost, provider …", "", "there is one"),
    Column("stage", WORD, "the stage it had reached: before_agent, mid_run, after_patch, unknown", "", "not lost"),
    Column(
        "message", TEXT, "the message of the loss; untrusted text: escape it before showing it", "", "not lost"
    ),
    Column("score_only", CLAIM, "whether it only scored the patch of the attempt before"),
    Column("by", WORD, "who wrote its end: runner or controller", "", "it has no readable end"),
    *_PLACE,
    Column("elapsed_s", REAL, "from its start to its end", "s", "one of the two is missing"),
    Column("pod", TEXT, "the pod's uid", "", _UNRUN),
    Column("image", WORD, "the image that its runner was in", "", _UNRUN),
    Column("bundle", TEXT, "the bundle's key below the campaign", "", "not the attempt that counts"),
    Column("bundle_sha256", TEXT, "the bundle's SHA-256 in the outcome", "", "not the attempt that counts"),
    Column("bundle_bytes", COUNT, "the bundle's size in the end record", "bytes", "it names none"),
    Column("verified", CLAIM, "whether its bundle was read and is the one that its outcome names"),
    Column("fault", TEXT, "what in its chain or bundle contradicts its outcome", "", "nothing"),
    Column("isolation", WORD, "how agent and tests were isolated", "", "its bundle was not read"),
    Column("warnings", TEXTS, "warnings in its bundle"),
    Column("versions", VERSIONS, "versions of the programs that made its bundle"),
)
