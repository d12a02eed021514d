"""In each process that `python -m tests.executed` starts, before its own code: notes what is executed."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType
from typing import Any

MONITORING: Any = vars(sys)["monitoring"]  # of Python 3.12; this checkout's types are those of 3.11
RECORDS = Path(tempfile.gettempdir(), "trialfleet-executed")


class Recorder:
    """Notes the file of each function that starts, once, for the file of tests that runs now."""

    def __init__(self) -> None:
        self.test = _running_test()
        self._seen: set[str] = set()
        self._older: set[int] = set()  # threads that an earlier file of tests has started
        events = MONITORING.events
        MONITORING.use_tool_id(MONITORING.COVERAGE_ID, "trialfleet")
        MONITORING.register_callback(MONITORING.COVERAGE_ID, events.PY_START, self._note)
        MONITORING.set_events(MONITORING.COVERAGE_ID, events.PY_START)

    def begin(self, test: str) -> None:
        """This process, a worker, runs another file of tests: what was noted counts again."""
        self.test = test.replace("/", "|")
        (RECORDS / "workers" / str(os.getpid())).write_text(self.test, encoding="utf-8")
        self._seen.clear()
        self._older = {one.ident or 0 for one in threading.enumerate()} - {threading.get_ident()}
        MONITORING.restart_events()

    def _note(self, code: CodeType, _: int) -> object:
        if threading.get_ident() in self._older:
            return None
        path = code.co_filename
        if "/trialfleet_" in path and path not in self._seen:
            self._seen.add(path)
            if self.test:
                with (RECORDS / "executed" / self.test).open("a", encoding="utf-8") as file:
                    file.write(f"{path}\n")
        return MONITORING.DISABLE


def _running_test() -> str:
    """Of the worker from which this process descends; empty in all others."""
    process = os.getpid()
    while process > 1:
        running = RECORDS / "workers" / str(process)
        if running.exists():
            return running.read_text(encoding="utf-8")
        process = int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return ""


recorder = Recorder()
