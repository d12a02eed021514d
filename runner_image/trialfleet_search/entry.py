"""One search from one config file."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path
from types import FrameType

from .config import load
from .loop import RepairSearch
from .preflight_agent import run_preflight
from .transcript import Transcript


def main(argv: list[str]) -> int:
    """`argv`: the config file. Transcript on stdout; returns 0 with and without a repair."""
    warnings.simplefilter("ignore", SyntaxWarning)  # candidates may compile with warnings
    config = load(Path(argv[0]))
    signal.signal(signal.SIGTERM, _on_sigterm)
    transcript = Transcript(sys.stdout, config.max_turns)
    if config.preflight:
        run_preflight(config, transcript)
    else:
        RepairSearch(config, transcript).run()
    return 0


def _on_sigterm(signum: int, _frame: FrameType | None) -> None:
    """Exit through `finally`, which restores the workspace."""
    raise SystemExit(128 + signum)
