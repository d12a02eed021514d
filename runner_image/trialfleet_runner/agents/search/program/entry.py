"""One search from one config file."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path
from types import FrameType

from .config import load
from .lookout import look
from .loop import Search
from .transcript import Transcript


def main(argv: list[str]) -> int:
    """`argv`: the config file. Transcript on stdout; returns 0 whatever came out."""
    warnings.simplefilter("ignore", SyntaxWarning)  # candidates compile to odd things
    config = load(Path(argv[0]))
    signal.signal(signal.SIGTERM, _stopped)
    transcript = Transcript(sys.stdout, config.max_turns)
    if config.preflight:
        look(config, transcript)
    else:
        Search(config, transcript).run()
    return 0


def _stopped(signum: int, _frame: FrameType | None) -> None:
    """Leave through `finally`, so that the workspace is restored."""
    raise SystemExit(128 + signum)
