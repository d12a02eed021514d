"""The delivery `banner`: a line of the campaign file that stands before the task's text in the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToyDelivery:
    """`key`: of a condition in the campaign file. `needed`: of an agent's reach; None: every agent can have it."""

    key: str = "banner"
    needed: str | None = None

    def declared(self, value: Any) -> str:
        """The checked value of the key. Raises `ValueError` for what is no line of text."""
        if not isinstance(value, str) or not value.strip() or "\n" in value:
            raise ValueError("banner is one line of text")
        return value.strip()

    def prompt(self, banner: str, prompt: str) -> str:
        """What the agent gets in the place of `prompt`."""
        return f"{banner}\n\n{prompt}"

    def needles(self, banner: str) -> dict[str, str]:
        """Channel -> the text that must be in what reaches the model."""
        return {self.key: banner}
