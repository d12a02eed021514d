"""`python -I <this folder> <config.json>`: one search. Transcript on stdout; exit code 0 unless it broke."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType


def stopped(signum: int, frame: FrameType | None) -> None:
    """Leave through `finally`, so that the workspace is restored."""
    raise SystemExit(128 + signum)


def main(argv: list[str]) -> int:
    from program.config import load
    from program.loop import Search
    from program.transcript import Transcript

    config = load(Path(argv[0]))
    signal.signal(signal.SIGTERM, stopped)
    Search(config, Transcript(sys.stdout, config.max_turns)).run()
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that this folder is the package `program`
    sys.exit(main(sys.argv[1:]))
