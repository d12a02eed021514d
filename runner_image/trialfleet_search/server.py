"""Runs pytest for the search, in forks of a warm process.

`python server.py from-cwd|not-from-cwd`: one JSON request per line on stdin, one answer per line on the original
stdout. The process holds pytest and the dependencies, never a module of the workspace, so each fork imports the
project again. Standard library and pytest only; runs as a standalone script.
"""

# this process is forked often, so it imports as little as possible
# ruff: noqa: PTH100, PTH109, PTH118, PTH120
from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import threading
import time
from typing import IO, Any

_HERE = os.path.dirname(os.path.abspath(__file__))
# compiled once, before any fork, under a module name that no project uses
_PROBE = runpy.run_path(os.path.join(_HERE, "probe.py"), run_name="_trialfleet_search_probe")


def run_pytest(request: dict[str, Any]) -> int:
    """Run pytest in this process and return its exit code; the probe ends the process after a whole session."""
    import pytest  # third-party: of the task's environment

    probe = _PROBE["Probe"](request)
    sys.argv = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), *request["args"]]
    sys.pycache_prefix, sys.dont_write_bytecode = request["pycache"], False
    return int(pytest.main(list(request["args"]), plugins=[probe]))


def in_fork(request: dict[str, Any]) -> int | None:
    """Run in a child with its own process group. None: it was killed after `timeout`."""
    gc.collect()
    gc.freeze()  # the child's garbage collections ignore and share these objects
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            redirect(request["output"])
            code = run_pytest(request)
            sys.stdout.flush()
            sys.stderr.flush()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 70
        finally:
            os._exit(code)
    return waited(pid, float(request["timeout"]))


def redirect(output: str) -> None:
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (file, 1), (file, 2)):
        os.dup2(source, target)


def waited(pid: int, timeout_s: float) -> int | None:
    """The exit code of child `pid`, None after a time-out. Its whole process group is killed."""
    ended = await_end(pid, time.monotonic() + timeout_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not ended:
        return None
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def await_end(pid: int, deadline: float) -> bool:
    """Whether child `pid` ends before `deadline`. It stays a zombie, so that its process group keeps its id."""
    pause_s = 0.001
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.01)
    return True


def warm(modules: list[str], workspace: str) -> bool:
    """Import dependencies. False when that imported a module of the workspace or started a thread."""
    for name in modules:
        if name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: S112  # a module that fails here is imported by the tests, or not at all
            continue
    root = workspace.rstrip("/") + "/"
    if threading.active_count() > 1:
        return False
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return not any(isinstance(f, str) and f.startswith(root) and "/site-packages/" not in f for f in files)


def serve(answers: IO[str]) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "warm":
            answer: dict[str, Any] = {"clean": warm(request["modules"], request["workspace"])}
        else:
            began = time.monotonic()
            answer = {"code": in_fork(request), "seconds": time.monotonic() - began}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main(argv: list[str]) -> int:
    if sys.path and os.path.abspath(sys.path[0]) == _HERE:
        sys.path[:1] = [os.getcwd()] if argv[:1] == ["from-cwd"] else []
    sys.dont_write_bytecode = True
    answers = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    importlib.import_module("pytest")  # the first warm import
    serve(answers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
