"""What a declared test has decided, in one word."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["more", "less", "conflict", "not_shown", "not_possible", "undefined", "shown"]
