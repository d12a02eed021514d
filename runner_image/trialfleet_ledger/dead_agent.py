"""When a measured trial says nothing about its condition, because its agent did nothing: one rule for the halt of
a run, for `status` and for reports."""

from __future__ import annotations

from trialfleet_ledger.records.verdicts import Stop

WORDS = "crashed or ran out of memory before its first turn and changed nothing"
_BROKEN = frozenset({Stop.CRASHED, Stop.MEMORY})


def did_nothing(stop: str | None, turns: float | None, files_changed: float | None) -> bool:
    """Whether the agent broke before it did anything. One that does nothing and finishes is not broken, nor is one
    that prints no trajectory (`turns` is None) and has changed a file.

    >>> did_nothing("crashed", None, 0), did_nothing("memory", 0, None)
    (True, True)
    >>> did_nothing("finished", 0, 0), did_nothing("crashed", 3, 0), did_nothing("crashed", None, 1)
    (False, False, False)
    """
    return stop in _BROKEN and not turns and not files_changed


def mostly(dead: int, measured: int) -> bool:
    """Whether so many trials are enough to warn of: half of those that were measured.

    >>> mostly(0, 0), mostly(1, 3), mostly(2, 4)
    (False, False, True)
    """
    return dead > 0 and 2 * dead >= measured
