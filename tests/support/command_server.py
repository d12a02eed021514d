"""A program that forks commands of `trialfleet` from a process that has imported them.

Its client is `tests.support.command_forks`. It has one thread and no state but its modules. A forked command has
the arguments, the folder, the environment, the output and the signals of one that was executed, and ends as one,
with the interpreter's exit handlers. What it imported is imported here before the next one.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.metadata
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trialfleet_ledger.records.base import Frozen, build_models

PRELOADED = ("trialfleet_", "kubernetes", "botocore")


class Server:
    """`line`: of the client. A request, an output and an error output begin a command; a process id ends it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._requests: dict[int, int] = {}

    def serve(self) -> dict[str, Any]:
        """Answer the client until it is gone, which ends this process. Returns in each command, its request."""
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._line, 64, maxfds=3)
            if not message:
                sys.exit()
            if not descriptors:
                self._reap(int(message))
                continue
            request, *outputs = descriptors
            assert _count_threads() == 1, "a lock that a thread holds would never open in a command"
            pid = os.fork()
            if pid == 0:
                self._line.close()
                return _begin_command(request, *outputs)
            self._requests[pid] = request
            pidfd = os.pidfd_open(pid)
            socket.send_fds(self._line, [str(pid).encode()], [pidfd])
            for descriptor in (pidfd, *outputs):
                os.close(descriptor)

    def _reap(self, pid: int) -> None:
        """Answer with the exit code as subprocess has it, and the core seconds."""
        _, status, used = os.wait4(pid, 0)
        self._line.send(json.dumps((os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)).encode())
        with open(self._requests.pop(pid), encoding="ascii") as file:  # noqa: PTH123 - a descriptor
            file.seek(0)
            import_modules(json.load(file).get("imported", ()))


def _count_threads() -> int:
    """Those of jemalloc, which a library may bring along, leave no lock behind."""
    names = [task.read_text(encoding="ascii") for task in Path("/proc/self/task").glob("*/comm")]
    return len([name for name in names if not name.startswith("jemalloc")])


def _begin_command(request: int, output: int, errors: int) -> dict[str, Any]:
    with open(request, encoding="ascii", closefd=False) as file:
        asked: dict[str, Any] = json.load(file)
    atexit.register(_note_imports, request)
    for descriptor, standard in ((output, 1), (errors, 2)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    if asked["new_session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` has it
    sys.argv[1:] = asked["words"]
    sys.modules.pop(asked["module"], None)  # as `python -m` has it, which runs it as `__main__`
    sys.orig_argv[1:] = ["-m", asked["module"], *asked["words"]]
    return asked


def _note_imports(request: int) -> None:
    """The last of the command's exit handlers."""
    imported = [name for name in sys.modules if name.startswith(PRELOADED)]
    os.ftruncate(request, 0)
    os.pwrite(request, json.dumps({"imported": imported}).encode(), 0)


def import_modules(names: Iterable[str]) -> None:
    """Those that are not there yet, with the models' validators; but not programs, which run when they are."""
    new = [name for name in names if name not in sys.modules]
    for name in new:
        importlib.import_module(name)
    if new:
        build_models(Frozen)
        gc.collect()
        gc.freeze()


def main(descriptor: int) -> None:
    """Serve the socket `descriptor`, which this process inherited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for pytest and the commands
    os.set_inheritable(descriptor, False)
    import_modules({point.module for point in importlib.metadata.entry_points(group="trialfleet.commands")})
    asked = Server(socket.socket(fileno=descriptor)).serve()
    runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
