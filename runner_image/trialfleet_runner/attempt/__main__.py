"""`python -m trialfleet_runner.attempt GRANTS.json`.

Exit codes: 0 an end was committed, by us or before us; 143 the same after SIGTERM (or nothing at all, when it came
before the claim); 2 this machine cannot run attempts as it is told to; 3 the attempt is another runner's; 75 the
store did not answer or let us write, so nothing was committed.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from trialfleet_runner.attempt import commit
from trialfleet_runner.attempt.flow import Attempt
from trialfleet_runner.attempt.scratch import Busy, folder_name, locked, scratch_root
from trialfleet_runner.cache import Cache
from trialfleet_runner.contract import Grants
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.sandbox import choose
from trialfleet_runner.store.protocol import StoreError

COMMITTED, REFUSED, ANOTHERS, UNANSWERED, STOPPED = 0, 2, 3, 75, 143


def main(path: Path) -> int:
    """Run the attempt that the grants file names."""
    stop = threading.Event()

    def told_to_stop(_number: int, _frame: object) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, told_to_stop)
    grants = Grants.model_validate_json(path.read_bytes())
    try:
        sandbox = choose()
    except OperatorError as error:
        print(f"trialfleet runner: {error}", file=sys.stderr)
        return REFUSED
    try:
        # Who left at once would leave its controller to guess whether the other goes on to claim the attempt.
        with locked(scratch_root(), folder_name(grants), stopped=stop.is_set) as scratch:
            if stop.is_set():
                return STOPPED
            if not commit.claim(grants, scratch=scratch.runner, isolation=sandbox.name):
                return ANOTHERS
            Attempt(grants, scratch, sandbox, sandbox, Cache.default(), stop).run()
            return STOPPED if stop.is_set() else COMMITTED
    except Busy:
        return STOPPED
    except (StoreError, OperatorError) as error:
        print(f"trialfleet runner: the store did not answer: {error}", file=sys.stderr)
        return UNANSWERED


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
