"""An exit code of pytest that says that the tests that must fail are all that failed.

They run after the tests that are judged, in the same process, and pytest ends with 1 whichever of them failed. So
their file counts its own failures, and replaces the code if pytest counted as many. Whatever else sets the code
stays visible: a test that failed, an error of a fixture, a plugin such as pytest-cov, a crash of the interpreter.
"""

from __future__ import annotations

import zlib

# Even: a plugin that adds the bit of a failure changes it. Below 120, which is the interpreter's own
# Even: a plugin that adds the bit of a failure changes it. Below 120, which is the interpreter's own
_FIRST, _CODES = 64, 26
_HOOK = """
import pytest as pytest_{mark}


class ExitCode_{mark}:
    failed = 0

    def pytest_runtest_logreport(self, report):
        marked = "{mark}" in report.nodeid.rpartition("::")[2]
        self.failed += marked and report.when == "call" and report.failed

    @pytest_{mark}.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if session.exitstatus == 1 and session.testsfailed == self.failed:
            session.exitstatus = {code}


@pytest_{mark}.fixture(scope="module", autouse=True)
def exit_code_{mark}(request):
    request.config.pluginmanager.register(ExitCode_{mark}())
"""


def choose_exit_code(mark: str) -> int:
    """Of the task with this mark: no constant that a product could end every run with."""
    return _FIRST + 2 * (zlib.crc32(mark.encode()) % _CODES)


def exit_code_hook(mark: str) -> str:
    """The end of a test file whose tests that must fail have the mark in their names."""
    return _HOOK.format(mark=mark, code=choose_exit_code(mark))
