"""Context conditions: files on disk × text in the prompt × a hook, composed freely."""

from __future__ import annotations

from typing import Literal

from trialfleet_ledger.records import Frozen, InlineSource, InlineSpec, Name


class Condition(Frozen):
    """How context reaches the agent. `files: X` names the task's `contexts.X`; `context` (default: `files`,
    else "tree") is the tree that inline text and hook read from, whether or not it is on disk. `fail_fast`: the
    third identical test or build command without an edit in between is denied."""

    files: Name | None = None
    context: Name | None = None
    pull: bool = False  # one sentence that points at the files
    hook: Literal["on_read"] | None = None
    fail_fast: bool = False
    inline: InlineSpec | None = None
    delivery: Literal["required", "best_effort"] = (
        "required"  # best_effort: what cannot reach the agent is left out
    )

    @property
    def source(self) -> str | None:
        """The task context that inline text and hook read; None when the condition has neither."""
        if self.hook is None and (self.inline is None or self.inline.source != "nearest"):
            return None
        return self.context or self.files or "tree"

    @property
    def predicted(self) -> bool:
        """Whether it needs a prediction of the task's targets."""
        return self.inline is not None and self.inline.source in PREDICTED

    @property
    def ceiling(self) -> bool:
        """Whether it tells what only the fix knows: its results are a ceiling, and reported apart."""
        return self.inline is not None and self.inline.source == "oracle_targets"


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
