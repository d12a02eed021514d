"""Runs the tests: with the task's own command, or faster, in forks of a warm pytest process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from .report import PytestReport, load

_SERVER = Path(__file__).with_name("server.py")
_VALUED = {
    "--rootdir",
    "--confcutdir",
    "--ignore",
    "--deselect",
    "--durations",
    *(f"-{letter}" for letter in "cpkmoWn"),
}
_BASELINE_S = 120.0
_NEIGHBOURS = 16  # other tests of the same files in the baseline run
_WHOLE_S = 40.0  # for all tests of the files without the repair; files that take longer are not compared


@dataclass(frozen=True)
class PytestRun:
    """`code` is the exit code, None after a time-out. `report` is None without the pytest probe."""

    code: int | None
    seconds: float
    report: PytestReport | None

    @property
    def passed(self) -> bool:
        return self.code == 0


@dataclass(frozen=True)
class Pytest:
    """A pytest command: its interpreter, its options, the tests that it names. Without an interpreter the tests
    are another program's."""

    interpreter: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    from_cwd: bool = False  # `python -m pytest` puts the current folder on the path, `pytest` does not

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(target.split("::")[0] for target in self.targets))


def as_pytest(argv: tuple[str, ...], workspace: Path) -> Pytest:
    """Without an interpreter unless `argv` is `<python> … -m pytest …` or `<folder of a python>/pytest …`."""
    interpreter, arguments = _started(argv)
    options: list[str] = []
    targets: list[str] = []
    rest = [arg for arg in arguments if "{junit}" not in arg and not arg.startswith(("--junitxml", "--junit-xml"))]
    for i, arg in enumerate(rest):
        valued = i > 0 and rest[i - 1] in _VALUED
        names_tests = not arg.startswith("-") and not valued and (workspace / arg.split("::")[0]).exists()
        (targets if names_tests else options).append(arg)
    return Pytest(interpreter, tuple(options), tuple(targets), from_cwd="-m" in argv)


def _started(argv: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the interpreter with its own options, pytest's arguments)."""
    program = Path(argv[0]) if argv else Path()
    if program.name in ("pytest", "py.test") and (program.parent / "python").exists():
        return (str(program.parent / "python"),), argv[1:]
    at = next((i for i in range(1, len(argv) - 1) if argv[i : i + 2] == ("-m", "pytest")), None)
    return (argv[:at], argv[at + 2 :]) if at is not None and program.name.startswith("python") else ((), ())


class PytestRunner:
    """Runs the tests of one search. `close` ends its processes."""

    def __init__(self, argv: tuple[str, ...], workspace: Path, temporary: Path, deadline: float) -> None:
        self.argv, self.workspace, self.temporary, self.deadline = argv, workspace, temporary, deadline
        self.pytest = as_pytest(argv, workspace)
        self._environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        added = f"{os.environ.get('PYTEST_ADDOPTS', '')} -o cache_dir={temporary / 'pytest_cache'}"
        self._environment["PYTEST_ADDOPTS"] = added.strip()
        self._server: subprocess.Popen[bytes] | None = None
        self._output = temporary / "output.txt"
        self._output.touch()
        self.candidate_timeout_s = 60.0

    # --- the runs a search makes ---

    def baseline(self) -> PytestRun:
        """The failing tests and their neighbours in the same files, with line tracing."""
        if not self.pytest.interpreter:
            return self._plain(_BASELINE_S)
        run = self._watched(self.pytest.files, trace=True, timeout_s=_BASELINE_S, neighbours=_NEIGHBOURS)
        if run.report is None or not run.report.failing:
            run = self._watched(self.pytest.targets, trace=True, timeout_s=_BASELINE_S)
        self.candidate_timeout_s = max(5.0, 3 * run.seconds + 2)
        if run.report is not None:
            self._warm(run.report.modules)
        return run

    def candidate(self) -> PytestRun:
        """The failing tests only."""
        if not self.pytest.interpreter:
            return self._plain(self.candidate_timeout_s)
        return self._watched(self.pytest.targets, trace=False, timeout_s=self.candidate_timeout_s)

    def neighbours(self, only: set[str]) -> PytestRun:
        """The tests `only` of the same files."""
        timeout_s = self.candidate_timeout_s * 2
        return self._watched(self.pytest.files, trace=False, timeout_s=timeout_s, only=only)

    def whole_files(self) -> PytestRun:
        """All tests of the same files."""
        return self._watched(self.pytest.files, trace=False, timeout_s=_WHOLE_S, neighbours=10**6)

    def confirm(self) -> PytestRun:
        """The task's own command in a fresh process."""
        return self._plain(max(self.candidate_timeout_s, 30.0))

    def close(self) -> None:
        if self._server is not None:
            with contextlib.suppress(OSError):
                if self._server.stdin:
                    self._server.stdin.close()
            self._server.kill()
            self._server.wait()
            self._server = None

    def last_output(self) -> str:
        """The end of what the last run printed."""
        with self._output.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 300))
            return file.read().decode("utf-8", errors="replace")

    # --- how ---

    def _left(self, timeout_s: float) -> float:
        return max(1.0, min(timeout_s, self.deadline - time.monotonic()))

    def _plain(self, timeout_s: float) -> PytestRun:
        """The task's own command in a fresh process group."""
        argv = [arg.replace("{junit}", str(self.temporary / "junit.xml")) for arg in self.argv]
        began = time.monotonic()
        with self._output.open("wb") as output:
            process = subprocess.Popen(
                argv,
                cwd=self.workspace,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(self._left(timeout_s))
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return PytestRun(code, time.monotonic() - began, None)

    def _watched(
        self,
        targets: tuple[str, ...],
        *,
        trace: bool,
        timeout_s: float,
        neighbours: int = 0,
        only: set[str] | None = None,
    ) -> PytestRun:
        """pytest with the probe in a fork of the warm process; the task's own command where that process ends."""
        report = self.temporary / "report.json"
        report.unlink(missing_ok=True)
        request = self._request(targets, report, trace, self._left(timeout_s))
        request.update(neighbours=neighbours, only=sorted(only or ()))
        answer = self._ask(request)
        if answer is None:
            self.close()
            return self._plain(timeout_s)
        return PytestRun(answer["code"], answer["seconds"], load(report))

    def _request(self, targets: tuple[str, ...], report: Path, trace: bool, timeout_s: float) -> dict[str, Any]:
        own = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        return {
            "op": "run",
            "workspace": str(self.workspace.resolve()),
            "args": [*self.pytest.options, *own, *self._plugins_off(), "--tb=no", "-q", *targets],
            "report": str(report),
            "output": str(self._output),
            "test_files": list(self.pytest.files),
            "timeout": timeout_s,
            "trace": trace,
            "targets": list(self.pytest.targets),
            "pycache": str(self.temporary / "pycache"),
        }

    def _plugins_off(self) -> tuple[str, ...]:
        """Options that disable plugins which distribute tests or replace the tracer."""
        libraries = Path(self.argv[0]).parent.parent / "lib"
        found = {
            path.name for path in libraries.glob("python*/site-packages/*") if path.name in ("xdist", "pytest_cov")
        }
        off = (("-n0",) if "xdist" in found else ()) + (("--no-cov",) if "pytest_cov" in found else ())
        return off if "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ else ()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The warm process's answer; None when the process is dead."""
        server = self._server or self._start()
        if server.stdin is None or server.stdout is None:
            return None
        try:
            server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline() or b"null")
        except (OSError, ValueError):
            return None
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None

    def _start(self) -> subprocess.Popen[bytes]:
        place = "from-cwd" if self.pytest.from_cwd else "not-from-cwd"
        self._server = subprocess.Popen(
            [*self.pytest.interpreter, str(_SERVER), place],
            cwd=self.workspace,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self._server

    def _warm(self, modules: tuple[str, ...]) -> None:
        """Import dependencies once. A process that thereby loaded project code is replaced."""
        answer = self._ask({"op": "warm", "modules": list(modules), "workspace": str(self.workspace.resolve())})
        if answer is None or not answer.get("clean"):
            self.close()
