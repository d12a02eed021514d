"""Conditions: files on disk × text in the prompt × a hook × what changes of the agent, composed freely."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.records.base import BoundedCount, Frozen, Name
from trialfleet_ledger.records.condition_order import (
    AddedParts,
    InlineParts,
    InlineSource,
    InlineSpec,
    McpSpec,
    PromptFrame,
)


class AgentChange(Frozen):
    """What a condition changes of the campaign's agent. Another `kind` starts without the version, model and
    options of the campaign's. The agent's time budget is the same under all conditions."""

    kind: Name | None = None
    version: str | None = None
    model: str | None = None
    max_turns: BoundedCount | None = None
    options: dict[str, Any] = Field(default_factory=dict)


def _by_kind(value: Any) -> Any:
    """`agent: codex` is short for `agent: {kind: codex}`."""
    return {"kind": value} if isinstance(value, str) else value


class ConditionParts(AddedParts):
    """What reaches the agent, and which agent. `files: X` names the task's `contexts.X`; `context` (default:
    `files`, else "tree") is the tree that inline text and hook read from, whether or not it is on disk.
    `fail_fast`: the third identical test or build command without an edit in between is denied. `agent`, `model`,
    `agent_version`, `effort`, `settings`: what differs from the campaign's agent (`treatments.agent_of`).
    `skills`: folders, as paths from the campaign file."""

    files: Name | None = None
    context: Name | None = None
    prompt: PromptFrame | None = None
    pull: bool = False  # one sentence that points at the files
    hook: Literal["on_read"] | None = None
    fail_fast: bool = False
    delivery: Literal["required", "best_effort"] = "required"  # best_effort: without what cannot reach it
    agent: Annotated[AgentChange, BeforeValidator(_by_kind)] | None = None
    model: str | None = None
    agent_version: str | None = None
    effort: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    skills: tuple[str, ...] = ()
    mcp: dict[Name, McpSpec] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _once(self) -> Self:
        agent = self.agent
        for name, inner in (("model", "model"), ("agent_version", "version")):
            if agent is not None and getattr(self, name) is not None and getattr(agent, inner) is not None:
                raise FieldError(f"{name} and agent.{inner} say the same thing", hint=f"keep {name}")
        return self


class Condition(ConditionParts):
    """With the text in the prompt, if it has one."""

    inline: InlineSpec | None = None

    @property
    def source(self) -> str | None:
        """The task context that inline text and hook read; None when the condition has neither."""
        if self.hook is None and (self.inline is None or self.inline.source != "nearest"):
            return None
        return self.context or self.files or "tree"

    @property
    def task_contexts(self) -> frozenset[str]:
        """The task contexts that it delivers."""
        return frozenset(name for name in (self.files, self.source) if name is not None)

    @property
    def predicted(self) -> bool:
        """Whether it needs a prediction of the task's targets."""
        return self.inline is not None and self.inline.source in PREDICTED

    @property
    def ceiling(self) -> bool:
        """Whether it tells what only the fix knows: its results are a ceiling, and reported apart."""
        return self.inline is not None and self.inline.source == "oracle_targets"


class InlineDoses(InlineParts):
    """One text in several lengths: its doses, ascending."""

    max_tokens: Annotated[tuple[BoundedCount, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _ascending(self) -> InlineDoses:
        if self.text is not None:
            raise FieldError(
                "inline: a text of the campaign file is delivered whole, in one length",
                hint="compose a condition for each length, or use source: nearest",
            )
        if any(b <= a for a, b in pairwise(self.max_tokens)):
            raise FieldError(
                f"inline: max_tokens {list(self.max_tokens)} do not ascend",
                hint="write each length once, in ascending order: max_tokens: [300, 700, 1500]",
            )
        return self


class ConditionDoses(ConditionParts):
    """A condition of the campaign file that stands for several, which differ in the length of their text alone."""

    inline: InlineDoses

    def named(self, name: str) -> dict[str, Condition]:
        """The conditions, each named by its dose.

        >>> list(ConditionDoses(inline=InlineDoses(source="nearest", max_tokens=(300, 700))).named("preamble"))
        ['preamble_300', 'preamble_700']
        """
        shared = {part: getattr(self, part) for part in ConditionParts.model_fields} | self.added
        text = {part: getattr(self.inline, part) for part in InlineParts.model_fields}
        return {
            f"{name}_{dose}": Condition(**shared, inline=InlineSpec(**text, max_tokens=dose))
            for dose in self.inline.max_tokens
        }


def _dosed(value: Any) -> str:
    """Whether a condition of the file stands for several, so that errors are about that kind alone."""
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value).get("inline")
        text = cast("Mapping[str, Any]", given if isinstance(given, Mapping) else {})
        several = isinstance(text.get("max_tokens"), list)
    else:
        several = isinstance(value, ConditionDoses)
    return "several doses" if several else "one condition"


FileCondition = Annotated[
    Annotated[Condition, Tag("one condition")] | Annotated[ConditionDoses, Tag("several doses")],
    Discriminator(_dosed),
]

PREDICTED: frozenset[InlineSource] = frozenset({"targets", "preflight", "placebo_matched", "wrong_targets"})

_NEAREST = InlineSpec(source="nearest")

PRESETS: dict[str, Condition] = {
    "none": Condition(),
    "placebo": Condition(files="placebo"),
    "flat_llm": Condition(files="flat", pull=True),
    "intent_layer": Condition(files="tree", pull=True, hook="on_read"),
    "intent_layer_preamble": Condition(files="tree", inline=_NEAREST, hook="on_read"),
    "preamble_only": Condition(inline=_NEAREST),
    "predicted_targets": Condition(inline=InlineSpec(source="targets")),
    "preflight": Condition(inline=InlineSpec(source="preflight")),
    "placebo_matched": Condition(inline=InlineSpec(source="placebo_matched")),
    "wrong_targets": Condition(inline=InlineSpec(source="wrong_targets")),
    "oracle_targets": Condition(inline=InlineSpec(source="oracle_targets")),
}
