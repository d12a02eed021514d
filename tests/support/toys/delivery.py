"""The delivery `banner`: a line of the campaign file that stands before the task's text in the prompt."""

from __future__ import annotations

from typing import Any

from trialfleet_deliveries.delivery_kind import AddedDelivery


class ToyDelivery(AddedDelivery):
    key = "banner"

    def check(self, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or "\n" in value:
            raise ValueError("banner is one line of text")
        return value.strip()

    def prompt(self, value: str, prompt: str) -> str:
        return f"{value}\n\n{prompt}"

    def proof(self, value: str) -> str:
        return value
