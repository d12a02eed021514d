"""The program `trialfleet`: prepares its process for signals and any text, then runs the command line."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from trialfleet_runner.interrupts import INTERRUPTED, Interrupts, leave_threads, quit_at_once


def main() -> None:
    """Run the command that `sys.argv` names."""
    signal.signal(signal.SIGINT, quit_at_once)  # also during the imports that follow
    _require_utf8()
    from trialfleet_ledger.waiting import say_waits
    from trialfleet_runner import cli
    from trialfleet_runner.standard_streams import PlainOutput, prepare_streams

    def at_work() -> str | None:
        """What is waited for before the first output; after it, a command says itself what it does."""
        begun = f"`{cli.command_name()}` is at work; its first result is not there yet"
        return None if PlainOutput.written_at else begun

    prepare_streams()
    say_waits(_say, output_at=lambda: PlainOutput.written_at, idle=at_work)
    interrupts = Interrupts()
    interrupts.begin()
    try:
        cli.main(interrupts)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            leave_threads()
        raise
    finally:
        interrupts.end()


def _require_utf8() -> None:
    """Start again where the locale decides how paths are written, as `LC_ALL=de_DE.ISO-8859-1` does: git and the
    records write them in UTF-8. Output stays in the terminal's encoding."""
    if sys.getfilesystemencoding() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"  # of every child
    os.environ.setdefault("PYTHONIOENCODING", sys.__stdout__.encoding if sys.__stdout__ else "utf-8")
    words = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]  # also where options ignore the environment
    os.execv(sys.executable, words)  # noqa: S606 - itself


def _say(sentence: str) -> None:
    """Unbuffered: a thread that holds a stream's lock at the interpreter's end would abort it."""
    from trialfleet_ledger.display_text import one_line

    with suppress(OSError):
        os.write(2, f"trialfleet: {one_line(sentence)}\n".encode(sys.stderr.encoding, "replace"))


if __name__ == "__main__":
    main()
