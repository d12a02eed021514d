"""Tables and styled lines on a terminal: rich's console, which shows text of others without letting it act."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from trialfleet_ledger.display_text import visible


class Screen(Console):
    """Writes to standard output or error. Text is `visible` where it is rendered; only styles of our own act."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        stream: Any = sys.stderr if stderr else sys.stdout
        file: Any = _Rendered(stream) if hasattr(stream, "write_verbatim") else stream
        super().__init__(file=file, width=width, highlight=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


class _Rendered:
    """A `PlainOutput` for what a `Screen` has rendered: its styles and movements of the cursor act."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str, /) -> int:
        self._stream.write_verbatim(text)
        return len(text)
