"""The command line with finished pods that stay SECONDS at most: `python -m tests.cluster.short_settling SECONDS
resume FILE`."""

from __future__ import annotations

import sys

from trialfleet_controller.backends.kube import pod_cleaner
from trialfleet_runner.cli import main

if __name__ == "__main__":
    pod_cleaner.SETTLE_S = float(sys.argv.pop(1))
    main()
