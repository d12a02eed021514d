"""`trialfleet-pod run | supervise ROLE | probe | bake FILE`: what runs inside an image. Imports little before it
knows which."""

from __future__ import annotations

import os
import signal
import sys

from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_runner.quick_start import exit_at_once, import_quickly

USAGE = "usage: trialfleet-pod run | supervise agent|score | probe | bake ENVIRONMENTS.json"


def told_to_stop(*_: object) -> None:
    """Before anything has begun."""
    os._exit(RunnerExit.STOPPED)


def main() -> None:
    """Exit codes: of `run` those of `RunnerExit`; of the others 2 what the operator can fix, 1 a bug."""
    match sys.argv[1:]:
        case ["run"]:
            signal.signal(signal.SIGTERM, told_to_stop)  # a container's first process ignores it otherwise
            with import_quickly():
                from trialfleet_runner.pod import run
            exit_at_once(run.main())
        case ["supervise", ("agent" | "score") as role]:
            from trialfleet_sandbox import supervise

            os.execv(sys.executable, [sys.executable, "-I", "-S", supervise.__file__, role])  # noqa: S606
        case ["probe"]:
            from trialfleet_runner.pod import probe

            sys.exit(probe.main())
        case ["bake", file]:
            from trialfleet_runner.pod import bake

            sys.exit(bake.main(file))
        case _:
            print(USAGE, file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
