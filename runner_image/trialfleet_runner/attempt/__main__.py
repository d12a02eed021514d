"""`python -m trialfleet_runner.attempt GRANTS.json`. Exit codes: `exit_codes.RunnerExit`."""

import sys
from pathlib import Path

from trialfleet_runner.quick_start import exit_at_once, import_quickly

if __name__ == "__main__":
    with import_quickly():
        from trialfleet_runner.attempt import local_runner
    exit_at_once(local_runner.main(Path(sys.argv[1])))
