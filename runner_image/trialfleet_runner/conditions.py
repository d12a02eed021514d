"""Context conditions: files on disk × text in the prompt × a hook, composed freely."""

from __future__ import annotations

from typing import Literal

from trialfleet_runner.contract import Frozen, InlineSpec, Name


class Condition(Frozen):
    """How context reaches the agent. `files: X` names the task's `contexts.X`; `context` (default: `files`,
    else "tree") is the tree that inline text and hook read from, whether or not it is on disk."""

    files: Name | None = None
    context: Name | None = None
    pull: bool = False  # one sentence that points at the files
    hook: Literal["on_read"] | None = None
    inline: InlineSpec | None = None

    @property
    def source(self) -> str | None:
        """The task context that inline text and hook read; None when the condition has neither."""
        if self.inline is None and self.hook is None:
            return None
        return self.context or self.files or "tree"


_NEAREST = InlineSpec(source="nearest")

PRESETS: dict[str, Condition] = {
    "none": Condition(),
    "placebo": Condition(files="placebo"),
    "flat_llm": Condition(files="flat", pull=True),
    "intent_layer": Condition(files="tree", pull=True, hook="on_read"),
    "intent_layer_preamble": Condition(files="tree", inline=_NEAREST, hook="on_read"),
    "preamble_only": Condition(inline=_NEAREST),
}
