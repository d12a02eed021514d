"""Starts the runners of a module's attempts as local campaigns do: forked from a process that has imported what
they need. Imports are a third to a half of a short attempt's core time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from trialfleet_controller.backends.local import processes
from trialfleet_controller.backends.local.processes import ForkLauncher, wait_any

EXECUTED = (sys.executable, "-m", "trialfleet_runner.attempt")
TIMEOUT_S = 600
_VARIES = {"PYTEST_CURRENT_TEST"}
# What one test's attempts have otherwise than the next one's: no secrets, and read by a runner, not at its start.
_SETTINGS = {"TRIALFLEET_SCRATCH", "TRIALFLEET_ISOLATION", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"}
_SERVER = """
import json, os, sys
from trialfleet_runner.attempt import fork_server, local_runner
run = local_runner.main
def run_with_settings(grants):
    os.environ.update(json.loads(grants.with_suffix(".env").read_text()))
    return run(grants)
local_runner.main = run_with_settings
sys.exit(fork_server.main(int(sys.argv[1])))
"""

Surroundings = tuple[str, frozenset[tuple[str, str]]]


class AttemptRunners:
    """Executes the first runner of every environment and folder, as pods do, and forks those that follow: a fork
    server costs as much as an executed runner. A forked runner's environment is the same, also in /proc, where
    its settings are missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = Counter[Surroundings]()
        self._launchers: dict[Surroundings, ForkLauncher] = {}

    def run(self, grants: Path, environ: Mapping[str, str]) -> tuple[int, str]:
        """The exit code, and what it printed. Only the main thread forks: a fork server dies with its thread."""
        same = {name: value for name, value in environ.items() if name not in _SETTINGS}
        surroundings = (str(Path.cwd()), frozenset(same.items()))
        self._started[surroundings] += 1
        if self._started[surroundings] == 1 or threading.current_thread() is not threading.main_thread():
            return execute_runner(EXECUTED, grants, environ)
        if surroundings not in self._launchers:
            self._launchers[surroundings] = ForkLauncher(self._folder / f"server-{len(self._launchers)}.log")
        settings = {name: value for name, value in environ.items() if name in _SETTINGS}
        return _fork_runner(self._launchers[surroundings], grants, same, settings)

    def close(self) -> None:
        for launcher in self._launchers.values():
            launcher.close()


def execute_runner(runner: tuple[str, ...], grants: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    """Its exit code, and its errors."""
    ran = subprocess.run(
        [*runner, str(grants)], env=environ, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False
    )
    return ran.returncode, ran.stderr.decode()


def _fork_runner(
    launcher: ForkLauncher, grants: Path, environ: Mapping[str, str], settings: Mapping[str, str]
) -> tuple[int, str]:
    log = grants.with_suffix(".log")
    log.unlink(missing_ok=True)
    grants.with_suffix(".env").write_text(json.dumps(settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(environ))  # the server's, if this starts it
        patch.setattr(processes, "FORK_SERVER", (sys.executable, "-P", "-c", _SERVER))
        runner = launcher.start(grants, log)
    ended = wait_any([runner.pidfd], TIMEOUT_S)
    code = runner.reap()
    assert ended, f"it took more than {TIMEOUT_S} s"
    assert code is not None, "the process that forked it was killed"
    return code, log.read_text(encoding="utf-8")


_current: list[AttemptRunners] = []


@contextmanager
def shared_runners() -> Generator[None]:
    """`run_attempt` forks meanwhile."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-runners-") as folder:
        runners = AttemptRunners(Path(folder))
        _current.append(runners)
        try:
            yield
        finally:
            _current.remove(runners)
            runners.close()


def run_attempt(runner: tuple[str, ...], grants: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """The exit code of the runner, and its errors. `env`: what differs from this process's environment."""
    environ = {**os.environ, **env}
    for name in _VARIES:
        environ.pop(name, None)
    if runner == EXECUTED and _current:
        return _current[-1].run(grants, environ)
    return execute_runner(runner, grants, environ)
