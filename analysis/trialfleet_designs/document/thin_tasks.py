"""Tasks that losses took out of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 8  # tasks that a sentence names


def name_thin_tasks(thin: Sequence[str]) -> str:
    """The tasks that a comparison leaves out, as a sentence without its end."""
    more = f" and {len(thin) - NAMED:,} more" if len(thin) > NAMED else ""
    return f"Left out, since losses left too few valid trials: {', '.join(thin[:NAMED])}{more}"
