"""The command line with grants that live SECONDS only: `python -m tests.cluster.short_grants SECONDS run FILE`."""

from __future__ import annotations

import sys

from trialfleet_controller import orders
from trialfleet_runner.campaign import Plan
from trialfleet_runner.cli import main


def expire_after(seconds: float) -> None:
    def lives_s(plan: Plan) -> float:
        del plan
        return seconds

    orders.grants_expire_s = lives_s


if __name__ == "__main__":
    expire_after(float(sys.argv.pop(1)))
    main()
