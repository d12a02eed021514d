"""What a runner measured on one attempt, and what its condition delivered."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from trialfleet_ledger.records.base import Count, Frozen, Probability, Sha256


class Coverage(StrEnum):
    """Whether an inline source added text."""

    COVERED = "covered"
    NONE = "none"  # no covering node, or no sections in it
    NOT_ASKED = "not_asked"


TOKEN_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Metrics(Frozen):
    """Measured on one attempt; None is "not measured" or "did not happen", never 0.

    `turns` are requests answered by the model (or the search agent's turns); `tool_calls` single tool uses.
    Turns of the three phases: exploration = before the first edit, edit = first to last, tail = after.
    What the pre-flight took is part of all of them, and also stands apart. The most important come first: a
    termination message drops the others, from the end.
    """

    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    wall_s: float | None = None
    agent_s: float | None = None
    uncached_cost_usd: float | None = None
    throttled_s: float | None = None
    tests_s: float | None = None
    overhead_core_s: float | None = None
    agent_core_s: float | None = None
    tests_core_s: float | None = None
    edits: int | None = None
    first_edit_turn: int | None = None
    first_edit_s: float | None = None
    exploration_turns: int | None = None
    edit_turns: int | None = None
    tail_turns: int | None = None
    files_read_before_edit: int | None = None
    context_files_read: int | None = None
    hook_firings: int | None = None
    target_hit: bool | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    files_changed: int | None = None
    rule_firings: int | None = None
    fail_fast_denials: int | None = None
    predicted_hit: bool | None = None
    skill_opened: bool | None = None
    mcp_called: bool | None = None
    provider_gave_up: bool | None = None
    preflight_hit: bool | None = None
    preflight_turns: int | None = None
    preflight_tool_calls: int | None = None
    preflight_input_tokens: int | None = None
    preflight_output_tokens: int | None = None
    preflight_cache_read_tokens: int | None = None
    preflight_cache_write_tokens: int | None = None
    preflight_cost_usd: float | None = None
    preflight_s: float | None = None


class PreflightResult(StrEnum):
    """Result of the read-only pre-flight."""

    FOUND = "found"
    UNCERTAIN = "uncertain"
    SKIP = "skip"  # the task asks for no change of code
    NO_TARGETS = "no_targets"


class Delivery(Frozen):
    """What the condition delivered, and whether it was seen to reach the model."""

    files: tuple[str, ...] = ()
    inline_tokens: Count | None = None
    inline_truncated: bool = False
    node: str | None = None  # the covering node, as a path of the tree
    coverage: Coverage = Coverage.NOT_ASKED
    tokenizer: str | None = None
    targets: tuple[str, ...] = ()  # files that the text names
    abstained: str | None = None  # why a text that names files was not there
    preflight: PreflightResult | None = None
    reached_model: dict[str, bool | None] = Field(
        default_factory=dict
    )  # files|inline|hook|rules|skills|mcp -> whether all of it was; None: no model
    sent_share: dict[str, Probability] = Field(default_factory=dict)  # the same -> share of its words that was
    first_request_sha256: Sha256 | None = None  # of the agent's loop, as in `Receipts`
    read_as: dict[str, str] = Field(
        default_factory=dict
    )  # path of the context -> path of the workspace, or "prompt"
    undelivered: tuple[str, ...] = ()  # what the condition asks for and its agent cannot be given


class TestResult(Frozen):
    """One test id's outcome in the scoring run, as JUnit XML says."""

    __test__: ClassVar[bool] = False  # pytest takes it for a test class otherwise

    id: str
    outcome: Literal["passed", "failed", "error", "skipped", "missing"]
