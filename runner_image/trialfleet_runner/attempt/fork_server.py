"""Forks the runners of one machine from a process that has imported what an attempt needs.

Imports cost a runner more core time than all the rest of its start. The process that forks has one thread, no
connection and no state but its modules; it dies with the thread that started it, and each runner dies with it.

One client holds the other end of a socket that keeps messages apart. It sends a `ForkRequest` with the descriptor
of the runner's log, and gets the runner's process id with a pidfd; or it sends the id of a runner that has ended,
and gets its exit code as subprocess has it. The end of the socket ends the process.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trialfleet_ledger.local_launch import LARGEST_MESSAGE, LAST_WORDS, PARENT, ForkRequest
from trialfleet_ledger.records.base import Frozen, build_models
from trialfleet_runner.attempt import local_runner
from trialfleet_runner.attempt.parent import die_with_parent
from trialfleet_sandbox import bubblewrap, host, memory_group
from trialfleet_sandbox.supervisor import hear_signals, hide_process, ignore_signals

_PRELOADED = (bubblewrap, host, memory_group)  # the runner imports them where it starts programs
_KEPT = {signal.SIGTERM}  # pending in a runner that is not ready for it; none reaches the server


def serve(line: socket.socket, run: Callable[[Path], int]) -> int:
    """Answer the client at the other end of `line` until it is gone. Returns in each runner, too, with the exit
    code of `run`, which gets the path of the runner's grants."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, LARGEST_MESSAGE, maxfds=1)
        if not message:
            return 0
        if not descriptors:
            line.send(str(_reap(int(message))).encode())
            continue
        server = os.getpid()
        try:
            pid, pidfd = _fork()
        except OSError as error:  # no process is free: those that run go on
            line.send(str(error.errno).encode())
        else:
            if pid == 0:
                line.close()
                return run(_become_runner(server, ForkRequest.decode(message), *descriptors))
            socket.send_fds(line, [str(pid).encode()], [pidfd])
            os.close(pidfd)
        os.close(descriptors[0])


def _fork() -> tuple[int, int]:
    """The id and a pidfd of the child, (0, -1) in it. Raises `OSError`; no child is left then."""
    pid = os.fork()
    if pid == 0:
        return 0, -1
    try:
        return pid, os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _become_runner(server: int, launch: ForkRequest, log: int) -> Path:
    """Give this process what an executed runner has: a session, its output, its environment, its signals."""
    os.setsid()  # the terminal's Ctrl-C is for the controller, which then decides
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(log, descriptor)
    os.close(log)
    os.environ[PARENT] = str(server)
    die_with_parent()
    if launch.last_words is not None:
        os.environ[LAST_WORDS] = launch.last_words
    hear_signals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _KEPT)
    return Path(launch.grants)


def _reap(pid: int) -> int:
    """Kill what is left of an ended runner's session, reap it, return its code. Until it is reaped, its number
    cannot be reused."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(descriptor: int) -> int:
    """Serve the socket `descriptor`, which this process inherited."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _KEPT)
    ignore_signals(but=(signal.SIGTERM,))  # below a plain subreaper, agents and tests can send us any
    die_with_parent()
    hide_process()  # an agent of this user could change what later runners inherit
    os.set_inheritable(descriptor, False)
    build_models(Frozen)
    gc.collect()
    gc.freeze()  # what was imported is never collected: runners share its pages
    return serve(socket.socket(fileno=descriptor), local_runner.main)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
