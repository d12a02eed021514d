"""The program `trialfleet`: Ctrl-C has its exit code while the command line is imported, too."""

from __future__ import annotations

import signal

from trialfleet_runner.interrupts import quit_at_once


def main() -> None:
    """Run the command that `sys.argv` names."""
    signal.signal(signal.SIGINT, quit_at_once)
    from trialfleet_runner.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
