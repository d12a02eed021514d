"""One run of a task's tests: how they are called, and what came out.

Validation and scoring call this module, so that a task is scored exactly as it was validated.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from trialfleet_runner import junit
from trialfleet_runner.contract import TestResult
from trialfleet_runner.removal import remove
from trialfleet_runner.sandbox.interpreter import interpreter_mounts
from trialfleet_runner.sandbox.protocol import Exit, Job, Mount, Sandbox

MAX_OUTPUT = 4 * 2**20
_MANY = 1500  # more ids than this are run by file: an argument list has an end
INSIDE = "/workspace"
HOME = "/home/agent"
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Suite:
    """What does not change from run to run. `environment`: built, with `bin/python`."""

    environment: Path
    command: tuple[str, ...]  # {tests} and {junit} are replaced
    pythonpath: tuple[str, ...]
    timeout_s: float
    memory_bytes: int | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True)
class TestRun:
    """`cases` is None when no JUnit XML was written or it could not be read (`unreadable` says why)."""

    __test__ = False  # not a test class, whatever pytest makes of its name

    exit: Exit
    output: str
    cases: tuple[junit.Case, ...] | None
    unreadable: str | None = None

    def results(self, ids: Iterable[str]) -> tuple[TestResult, ...]:
        """The outcome of every id; all missing when there is no JUnit XML."""
        return junit.results(ids, self.cases or ())


Trouble = Literal[
    "collection_error",
    "no_tests_collected",
    "usage_error",
    "internal_error",
    "interrupted",
    "timeout",
    "resources",
    "missing_interpreter",
    "not_executable",
    "signal",
    "no_junit",
]


def trouble(run: TestRun) -> Trouble | None:
    """Why the run is not a run of tests; None when tests ran, whatever they said.

    Exit codes of pytest: 0 passed, 1 failed, 2 interrupted (also: collection errors), 3 internal error, 4 usage
    error, 5 nothing collected. 125-127 and signals never come from tests.
    """
    if run.exit.cause == "timeout":
        return "timeout"
    if run.exit.cause != "itself":
        return "resources"
    code = run.exit.code
    if run.cases and junit.collection_failures(run.cases):
        return "collection_error"
    if code in (0, 1):
        return "no_junit" if run.cases is None else None if run.cases else "no_tests_collected"
    if code == 2 and ("errors during collection" in run.output or "error during collection" in run.output):
        return "collection_error"
    known: dict[int, Trouble] = {
        2: "interrupted",
        3: "internal_error",
        4: "usage_error",
        5: "no_tests_collected",
        126: "not_executable",
        127: "missing_interpreter",
    }
    if code in known:
        return known[code]
    return "signal" if code < 0 or code > 127 else "internal_error"


def selection(ids: Sequence[str]) -> tuple[str, ...]:
    """What is put in the place of `{tests}`: the functions of the ids, each once. Parameters are left out, for
    pytest runs nothing at all when one id is gone, and parameters may come from the code that changes.

    >>> selection(["t/test_a.py::test_b[1]", "t/test_a.py::test_b[2]", "t/test_a.py::C::test_d"])
    ('t/test_a.py::test_b', 't/test_a.py::C::test_d')
    """
    functions = tuple(dict.fromkeys(map(junit.function_id, ids)))
    if len(functions) <= _MANY and sum(map(len, functions)) < 100_000:
        return functions
    return tuple(dict.fromkeys(test.partition("::")[0] for test in functions))


def argv(
    command: Iterable[str], tests: Iterable[str], report: str, environment: str, programs: frozenset[str]
) -> tuple[str, ...]:
    """The command with its places filled; the program is the environment's when it has one of that name.

    >>> argv(("python", "run.py", "--xml={junit}", "{tests}"), ["a", "b"], "/r.xml", "/e", frozenset({"python"}))
    ('/e/bin/python', 'run.py', '--xml=/r.xml', 'a', 'b')
    """
    given = tuple(tests)
    words = [
        filled
        for word in command
        for filled in (given if word == "{tests}" else (word.replace("{junit}", report),))
    ]
    first = f"{environment}/bin/{words[0]}" if words[0] in programs else words[0]
    return (first, *words[1:])


def variables(
    *, environment: str, home: str, workspace: str, pythonpath: Iterable[str], seed: int = 0
) -> dict[str, str]:
    """The tests' whole environment: nothing of the caller's own gets in.

    `junit_family=xunit1` brings the file of every case; `seed` is Python's hash seed.
    """
    return {
        "HOME": home,
        "TMPDIR": str(PurePosixPath(home) / "tmp"),
        "PATH": f"{environment}/bin:{_SYSTEM_PATH}",
        "VIRTUAL_ENV": environment,
        "PYTHONPATH": ":".join(str(PurePosixPath(workspace) / entry) for entry in pythonpath),
        "PYTHONHASHSEED": str(seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTEST_ADDOPTS": "-o junit_family=xunit1 --color=no",
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "USER": "agent",
        "LOGNAME": "agent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        **{f"GIT_{who}_NAME": "agent" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "agent@localhost" for who in ("AUTHOR", "COMMITTER")},
    }


def mounts_of(suite_environment: Path, workspace: Path, home: Path, *, isolated: bool) -> tuple[Mount, ...]:
    """Workspace and HOME, writable; environment and interpreter at their own paths. `isolated`: the sandbox has
    its own mount namespace, so the workspace appears at `/workspace` on every machine."""
    return (
        Mount(workspace, INSIDE if isolated else str(workspace), writable=True),
        Mount(home, HOME if isolated else str(home), writable=True),
        Mount(suite_environment, str(suite_environment)),
        *interpreter_mounts(suite_environment),
    )


def run_tests(
    suite: Suite,
    *,
    workspace: Path,
    scratch: Path,
    tests: Sequence[str],
    sandbox: Sandbox,
    extra: Sequence[str] = (),
    seed: int = 0,
    stop: threading.Event | None = None,
    record: Path | None = None,
) -> TestRun:
    """Run the tests in `workspace` (which they may write) and read what they report.

    `scratch`: an existing folder of the caller's for HOME, logs and the report; what an earlier run left there
    is removed. `record`: where the logs go instead, out of reach of tests that can write all of `scratch`: a link
    in a log's place would be followed. Setting `stop` ends the run. No tests: nothing is run, for without
    arguments a test runner would run the whole suite. Raises `SandboxError` when the program could not be started.
    """
    if not tests:
        return TestRun(Exit(5, "itself", 0.0, 0.0), "no test is named\n", None)
    home = scratch / "home"
    remove(home)
    (home / "tmp").mkdir(parents=True)
    record = record or scratch / "record"
    remove(record)
    record.mkdir()
    mounts = mounts_of(suite.environment, workspace, home, isolated=sandbox.name == "bubblewrap")
    inside = {path: sandbox.path_inside(path, mounts) for path in (suite.environment, home, workspace)}
    programs = frozenset(program.name for program in (suite.environment / "bin").iterdir())
    words = argv(suite.command, (*tests, *extra), f"{inside[home]}/junit.xml", inside[suite.environment], programs)
    if not _found(words[0], workspace):
        return TestRun(Exit(127, "itself", 0.0, 0.0), f"{words[0]}: no such program", None)
    ended = sandbox.run(
        Job(
            argv=words,
            env=variables(
                environment=inside[suite.environment],
                home=inside[home],
                workspace=inside[workspace],
                pythonpath=suite.pythonpath,
                seed=seed,
            ),
            cwd=inside[workspace],
            mounts=mounts,
            stdout=record / "stdout",
            stderr=record / "stderr",
            timeout_s=suite.timeout_s,
            memory_bytes=suite.memory_bytes,
            disk_bytes=suite.disk_bytes,
            stop=stop or threading.Event(),
        )
    )
    output = _tail(record / "stdout") + _tail(record / "stderr")
    cases, unreadable = _report(home / "junit.xml")
    return TestRun(ended, output, cases, unreadable)


def _found(program: str, workspace: Path) -> bool:
    """Whether the program exists where the tests will look for it: then a failure to start is the sandbox's."""
    if "/" in program:
        return (workspace / program).exists()
    return shutil.which(program, path=_SYSTEM_PATH) is not None


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_OUTPUT))
        return file.read().decode("utf-8", "replace")


def _report(path: Path) -> tuple[tuple[junit.Case, ...] | None, str | None]:
    """The tests could have put anything in the report's place: only a regular file is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return None, f"no JUnit XML ({error.strerror})"
    with os.fdopen(descriptor, "rb") as file:
        if not path.is_file():
            return None, "the JUnit XML is not a regular file"
        data = file.read(junit.MAX_BYTES + 1)
    try:
        return junit.parse(data), None
    except junit.JUnitError as error:
        return None, f"the JUnit XML cannot be used: {error}"
