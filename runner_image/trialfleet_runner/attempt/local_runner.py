"""The runner of an attempt on the controller's machine, executed or forked."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.local_launch import LAST_WORDS
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_repository.cache import Cache
from trialfleet_runner.attempt import commit
from trialfleet_runner.attempt.parent import die_with_parent
from trialfleet_runner.attempt.pipeline import Attempt
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.scratch import Busy, claim_scratch, folder_name, locked
from trialfleet_sandbox.supervisor import hide_process, ignore_signals


def main(path: Path) -> RunnerExit:
    """Run the attempt that the grants file names."""
    die_with_parent()
    hide_process()  # where agent and tests run as its user, they could write and read its pipes through /proc
    stop = threading.Event()

    def told_to_stop(_number: int, _frame: object) -> None:
        stop.set()

    ignore_signals()  # below a plain subreaper, agent and tests can send us any
    signal.signal(signal.SIGTERM, told_to_stop)
    grants = Grants.model_validate_json(path.read_bytes())
    try:
        return run(grants, stop)
    except Busy:
        return RunnerExit.STOPPED
    except OperatorError as error:
        print(f"trialfleet runner: {visible(str(error))}", file=sys.stderr)
        return RunnerExit.REFUSED
    except StoreError as error:
        print(f"trialfleet runner: the store did not answer: {visible(str(error))}", file=sys.stderr)
        return RunnerExit.UNANSWERED


def run(grants: Grants, stop: threading.Event) -> RunnerExit:
    """The attempt from the lock on its folder to its commit. Raises `OperatorError` for what would be the same in
    every attempt here, `StoreError`, and `Busy` when `stop` came before the folder was free."""
    sandbox = choose()
    # Wait for the lock: if this runner exited at once, its controller could not know whether the other runner will
    # claim the attempt.
    with locked(claim_scratch(), folder_name(grants), stopped=stop.is_set) as scratch:
        if stop.is_set():
            return RunnerExit.STOPPED
        start = commit.claim(grants, scratch=scratch.runner, isolation=sandbox.name)
        if start is None:
            return RunnerExit.ANOTHERS
        last_words = os.environ.pop(LAST_WORDS, None)
        attempt = Attempt(
            grants,
            scratch,
            sandbox,
            sandbox,
            Cache.default(),
            stop,
            stop_explained=last_words is not None,
            keeps_here=True,
            start=start,
        )
        attempt.run()
        if last_words is not None and attempt.left and attempt.bundle_stored and attempt.end is not None:
            write_whole(Path(last_words), canonical_json(attempt.end))
        return RunnerExit.STOPPED if stop.is_set() else RunnerExit.COMMITTED
