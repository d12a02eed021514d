"""Ctrl-C while threads of a command wait for something that does not come."""

from __future__ import annotations

import signal
import subprocess
import sys

COMMAND = """
import sys, time
from trialfleet_ledger.thread_pools import open_pool
from trialfleet_runner import cli, console

def main(interrupts):
    try:
        with open_pool(1) as pool:
            pool.submit(time.sleep, 250)
            queued = pool.submit(time.sleep, 250)
            print("waits", flush=True)
            queued.result()
    except KeyboardInterrupt:
        print("dropped" if queued.cancelled() else "queued")
        sys.exit(130)

cli.main = main
console.main()
"""


def test_nobody_waits_for_threads_of_an_interrupted_command() -> None:
    with subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "dropped\n")
