"""What an attempt delivers, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from trialfleet_ledger.records.measurements import Delivery


@dataclass(frozen=True)
class Rule:
    """A text that is pushed once, when a path that matches a glob is read."""

    globs: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Composed:
    """What an attempt delivers.

    `files`: path -> bytes, put into the workspace; `root`: which of them is the root's. `hook_nodes`: path -> text
    that the on-read hook prints, to be written as files into the folder it is given; empty without a hook. `rule`:
    what the same hook pushes when a path matches. `inline`: the condition's text in `prompt` or `system`; `told`:
    the root's text in `prompt`; `added`: what other deliveries put there, by their key; `offered`: texts that come
    with the tools of MCP servers, by name.
    `stripped`: unified diff of the development commands taken out.
    """

    prompt: str
    system: str | None
    files: dict[str, bytes]
    root: str | None
    hook_nodes: dict[str, str]
    delivery: Delivery
    inline: str = ""
    told: str = ""
    added: dict[str, str] = field(default_factory=dict[str, str])
    offered: dict[str, str] = field(default_factory=dict[str, str])
    rule: Rule | None = None
    stripped: str = ""

    @property
    def hooked(self) -> bool:
        """Whether the on-read hook has anything to push."""
        return bool(self.hook_nodes) or self.rule is not None
