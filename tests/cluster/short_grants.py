"""The command line with grants that live SECONDS only: `python -m tests.cluster.short_grants SECONDS run FILE`."""

from __future__ import annotations

import sys

from trialfleet_controller.backends import attempt_times
from trialfleet_runner.cli import main


def lives_s(plan: attempt_times.AttemptSettings) -> float:
    del plan
    return seconds


if __name__ == "__main__":
    seconds = float(sys.argv.pop(1))
    attempt_times.grants_expire_s = lives_s
    main()
