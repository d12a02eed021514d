"""Tables and styled lines on a terminal: rich's console, which shows text of others without letting it act."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from trialfleet_ledger.display_text import visible


class Screen(Console):
    """Writes to standard output or error. Text is `visible` where it is rendered; only styles of our own act."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        stream = sys.stderr if stderr else sys.stdout
        super().__init__(file=getattr(stream, "styled", stream), width=width, highlight=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)
