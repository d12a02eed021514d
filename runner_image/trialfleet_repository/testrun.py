"""One run of a task's tests: how they are called, and what came out.

Validation and scoring call this module, so that a task is scored exactly as it was validated.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from trialfleet_ledger.records.measurements import TestResult
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_ledger.removal import remove
from trialfleet_repository.environments.python_environment import lay_metadata, python_path
from trialfleet_repository.environments.tool_environment import filled, furnish, furnishings, variables_of
from trialfleet_repository.languages import PYTHON, format_named
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.languages.settings_record import SettingsRecord, read_settings_record
from trialfleet_repository.read_results import read_results
from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import exact_outcomes, exact_results
from trialfleet_repository.results.limits import ResultError
from trialfleet_repository.test_call import CalledTests, load_plugin
from trialfleet_repository.trees import ROOT
from trialfleet_sandbox.interpreter import SYSTEM_PATH, base_variables, hook_mounts, program_mounts
from trialfleet_sandbox.protocol import Exit, Job, Mount, Sandbox, inside, placed

MAX_OUTPUT = 4 * 2**20
INSIDE = "/workspace"
HOME = "/home/agent"
REPORT = "junit.xml"  # in HOME
_GUARD = Path(__file__).with_name("import_guard.py")
_GUARD_INSIDE = "/run/trialfleet/guard"
_PLUGIN_INSIDE = "/run/trialfleet/settings"


@dataclass(frozen=True)
class Suite:
    """What does not change from run to run. `environment`: built. `env`: the task's own variables. `metadata`: of
    the Python project (`project_metadata`). `listed`: the runner's tool is asked which tests there are, too."""

    environment: Path
    command: tuple[str, ...]  # {tests} and {junit} are replaced
    pythonpath: tuple[str, ...]
    timeout_s: float
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    inodes: int | None = None
    results: ResultFormat = "pytest"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    directory: str = ROOT  # folder of the workspace that the command is called in
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    listed: bool = False

    @property
    def call(self) -> CalledTests:
        return CalledTests(self.command, self.results, self.directory)

    @property
    def is_python(self) -> bool:
        return format_named(self.results) in PYTHON.formats


@dataclass(frozen=True)
class TestRun:
    """`cases` is None when no results were written or they could not be read (`unreadable` says why).
    `left_out`: bytes that `output` lacks, which is the end of either stream. `settings`: what the run says of the
    project's."""

    __test__ = False  # pytest takes it for a test class otherwise

    exit: Exit
    output: str
    cases: tuple[junit.JunitCase, ...] | None
    unreadable: str | None = None
    left_out: int = 0
    format: ResultFormat = "pytest"
    settings: SettingsRecord = field(default_factory=SettingsRecord)

    def results(self, ids: Iterable[str]) -> tuple[TestResult, ...]:
        """The outcome of every id; all missing when there are no results."""
        read = junit.results if self.format == "pytest" else exact_results
        return read(ids, self.cases or ())

    def outcomes(self, files: Iterable[str]) -> dict[str, junit.CaseOutcome]:
        """Id -> outcome of what ran; of pytest, in these test files."""
        if self.format == "pytest":
            return junit.outcomes(self.cases or (), files)
        return exact_outcomes(self.cases or ())

    def function_outcomes(self, file: str) -> dict[str, set[junit.CaseOutcome]]:
        """Id without parameters -> the outcomes of its cases; of pytest, in this test file."""
        outcomes: dict[str, set[junit.CaseOutcome]] = {}
        for test, outcome in self.outcomes([file]).items():
            outcomes.setdefault(junit.function_id(test), set()).add(outcome)
        return outcomes


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
    """Why the tests could not be run as tests; None when they ran, passed or failed.

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
    if run.format != "pytest":
        return _trouble_of_others(run)
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


def _trouble_of_others(run: TestRun) -> Trouble | None:
    """Other runners' exit codes differ; results are what tells that tests ran."""
    if run.cases:
        return None
    code = run.exit.code
    known: dict[int, Trouble] = {126: "not_executable", 127: "missing_interpreter"}
    if code in known:
        return known[code]
    if code < 0 or code > 128:
        return "signal"
    return "no_tests_collected" if run.cases is not None or code == 0 else "no_junit"


def variables(suite: Suite, *, environment: str, home: str, workspace: str, seed: int = 0) -> dict[str, str]:
    """The tests' whole environment: nothing of the caller's own gets in. Paths are as the tests see them.

    `junit_family=xunit1` brings the file of every case; `seed` is Python's hash seed.
    """
    found = base_variables(environment, home) | {"COLUMNS": "100"}
    if suite.is_python:
        found |= {
            "VIRTUAL_ENV": environment,
            "PYTHONPATH": python_path(workspace, suite.pythonpath, home if suite.metadata else None),
            "PYTHONHASHSEED": str(seed),
            "PYTHONUNBUFFERED": "1",
            "PIP_RETRIES": "0",  # there is no network: pip would wait for one
        }
    if suite.results == "pytest":
        found["PYTEST_ADDOPTS"] = "-o junit_family=xunit1 --color=no"
    found |= variables_of(suite.environment, seen=environment, home=home, workspace=workspace)
    places = {"environment": environment, "home": home, "workspace": workspace}
    return found | {name: filled(value, places) for name, value in suite.env.items()}


def mounts_of(environment: Path, workspace: Path, home: Path, sandbox: Sandbox) -> tuple[Mount, ...]:
    """Workspace and HOME, writable; environment and programs at their own paths. Where the sandbox maps paths,
    the workspace appears at `/workspace` on every machine, and some environments at one place."""
    place = furnishings(environment).place if sandbox.capabilities.maps_paths else None
    return (
        placed(sandbox, workspace, INSIDE, writable=True),
        placed(sandbox, home, HOME, writable=True),
        *((Mount(environment, place),) if place else ()),
        Mount(environment, str(environment)),
        *program_mounts(environment),
        *hook_mounts(environment),
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
    guarded: Sequence[str] = (),
    kept: Path | None = None,
    wrapper: Callable[[str], Sequence[str]] = lambda _: (),
    followed: bool = False,
) -> TestRun:
    """Run the tests in `workspace` (which they may write) and read what they report.

    `scratch`: an existing folder of the caller's for HOME, logs and the report; what an earlier run left there is
    removed. `kept`: a folder that becomes HOME if it exists. `tests`: ids or test files. `record`: where the logs
    go instead, out of reach of tests that can write all of `scratch`: a link in a log's place would be followed.
    `wrapper`: words before the command, given HOME as the tests see it. `guarded`: paths of modules that must
    not be imported in the place of the environment's. `followed`: another run may follow in the same sandbox.
    Setting `stop` ends the run. No tests: nothing is run, for without arguments a test runner would run the
    whole suite. Raises `SandboxError` when the program could not be started.
    """
    if not tests:
        return _not_run(5, "no test is named\n")
    home = scratch / "home"
    remove(home)
    if kept is not None and kept.exists():
        kept.rename(home)
    (home / "tmp").mkdir(parents=True)
    record = _empty_folder(record or scratch / "record")
    furnish(suite.environment, workspace, home)
    lay_metadata(suite.metadata, home)
    mounts = mounts_of(suite.environment, workspace, home, sandbox)
    seen = {path: inside(path, mounts) for path in (suite.environment, home, workspace)}
    guard = (_guard(scratch / "guard", guarded, seen[workspace], sandbox),) if guarded else ()
    own = format_named(suite.results).plugin
    plugin = _plugin(own.files, scratch / "settings", sandbox)
    programs = frozenset(program.name for program in (suite.environment / "bin").iterdir())
    wanted = suite.call.selected(tests, workspace)
    if not wanted:
        return _not_run(5, f"no package holds {', '.join(tests[:3])}\n")
    report, environment = f"{seen[home]}/{REPORT}", seen[suite.environment]
    words = suite.call.argv((*wanted, *extra), report, environment, programs, workspace)
    if not _found(words[0], workspace / suite.directory):
        return _not_run(127, f"{words[0]}: no such program")
    env = variables(
        replace(suite, pythonpath=(*(mount.target for mount in guard), *suite.pythonpath)),
        environment=environment,
        home=seen[home],
        workspace=seen[workspace],
        seed=seed,
    )
    words, env = load_plugin(own, "".join(each.target for each in plugin), words, env, report)
    job = Job(
        argv=(*wrapper(seen[home]), *suite.call.there(words)),
        env=env,
        cwd=seen[workspace],
        mounts=(*mounts, *guard, *plugin),
        stdout=record / "stdout",
        stderr=record / "stderr",
        timeout_s=suite.timeout_s,
        memory_bytes=suite.memory_bytes,
        disk_bytes=suite.disk_bytes,
        inodes=suite.inodes,
        stop=stop or threading.Event(),
        followed=followed,
    )
    ended = sandbox.run(job)
    _list_tests(suite, wanted, job, ended, sandbox)
    files = RunFiles(home / REPORT, record, workspace, seen[workspace], "", suite.directory)
    return _read_run(ended, files, suite.results)


def _empty_folder(folder: Path) -> Path:
    remove(folder)
    folder.mkdir()
    return folder


def _not_run(code: int, why: str) -> TestRun:
    return TestRun(Exit(code, "itself", 0.0, 0.0), why, None)


def _list_tests(suite: Suite, wanted: Sequence[str], job: Job, ended: Exit, sandbox: Sandbox) -> None:
    """Have the runner's tool write which tests there are, after a run of them, if the suite asks for it."""
    listing = format_named(suite.results).listing
    if listing and suite.listed and ended.cause == "itself":
        argv, log = suite.call.there(("sh", "-c", listing, "list", *wanted)), job.stdout.with_name("listed")
        sandbox.run(replace(job, argv=argv, stdout=log, stderr=log))


def _read_run(ended: Exit, files: RunFiles, results: ResultFormat) -> TestRun:
    logs = [_tail(files.record / name) for name in ("stdout", "stderr")]
    output, left_out = "".join(text for text, _ in logs), sum(left_out for _, left_out in logs)
    settings = read_settings_record(files.report.parent, files.inside)
    unreadable: str | None = None
    cases: tuple[junit.JunitCase, ...] | None = None
    try:
        found = read_results(results, replace(files, output=output))
        cases, output = found.cases, output if found.output is None else found.output
        if found.collected is not None:
            settings = replace(settings, collected=found.collected)
    except ResultError as error:
        unreadable = str(error)
    return TestRun(ended, output, cases, unreadable, left_out, results, settings)


def _guard(folder: Path, guarded: Sequence[str], workspace: str, sandbox: Sandbox) -> Mount:
    """A folder for `import_guard.py`, whose name there has every interpreter run it first."""
    remove(folder)
    folder.mkdir(mode=0o755)
    shutil.copyfile(_GUARD, folder / "sitecustomize.py")
    (folder / "workspace").write_text(workspace)
    (folder / "added").write_text("".join(f"{workspace}/{path}\n" for path in guarded))
    return placed(sandbox, folder, _GUARD_INSIDE)


def _plugin(files: Mapping[str, Path], folder: Path, sandbox: Sandbox) -> tuple[Mount, ...]:
    """A folder with the files that take the project's settings back, if there are any."""
    if not files:
        return ()
    remove(folder)
    folder.mkdir(mode=0o755)
    for name, file in files.items():
        shutil.copyfile(file, folder / name)
    return (placed(sandbox, folder, _PLUGIN_INSIDE),)


def _found(program: str, folder: Path) -> bool:
    """Whether the program exists where the tests will look for it: then a failure to start is the sandbox's."""
    if "/" in program:
        return (folder / program).exists()
    return shutil.which(program, path=SYSTEM_PATH) is not None


def _tail(path: Path) -> tuple[str, int]:
    if not path.exists():
        return "", 0
    with path.open("rb") as file:
        left_out = max(0, file.seek(0, os.SEEK_END) - MAX_OUTPUT)
        file.seek(left_out)
        return file.read().decode("utf-8", "replace"), left_out
