"""Starting a program below `supervisor.py`: what all sandboxes share.

Bubblewrap uses it too. Its own `--die-with-parent` takes effect only after its set-up: a caller that is killed
some milliseconds after the start would leave a whole sandbox running. The supervisor's lifeline has no such gap.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.interpreters import interpreters
from trialfleet_sandbox import processes
from trialfleet_sandbox.drive import Descriptors, Hold, Outer, drive, memory_file, stdin_of
from trialfleet_sandbox.interpreter import FORWARDER, forwarded
from trialfleet_sandbox.protocol import Exit, Job, SandboxError
from trialfleet_sandbox.start import StartReport, start_failure
from trialfleet_sandbox.syscall_filter import usable_program
from trialfleet_sandbox.watch import LimitWatch

SUPERVISOR = Path(__file__).resolve().with_name("supervisor.py")
_PYTHON = getattr(sys, "_base_executable", None) or sys.executable
_KILLED = 128 + 9
_VERSIONS = ("3.11", "3.12", "3.13")


@dataclass(frozen=True)
class Launch:
    """What the supervisor executes for a job. `fds`: descriptors that the program inherits. `terminate`: sends
    SIGTERM to the right process and returns True; None or False: to the program itself. `calls`: the filter of
    system calls that the supervisor installs; empty: none."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    uid: int | None = None
    fds: tuple[int, ...] = ()
    terminate: Callable[[], bool] | None = None
    calls: bytes = b""


@dataclass(frozen=True)
class _LocalHold(Hold):
    """With the supervisor itself."""

    process: subprocess.Popen[bytes]
    launch: Launch

    def root(self) -> int | None:
        return self.process.pid

    def terminate(self) -> None:
        if self.launch.terminate is None or not self.launch.terminate():
            super().terminate()

    def insist(self) -> None:
        """A program may stop its supervisor, which then does nothing: kill it, and adopt the orphans."""
        process = processes.read(self.process.pid)
        if process is not None and process.stopped:
            self.process.kill()

    def settle(self) -> None:
        """The supervisor ends last. Orphans exist only if it was killed, and this process adopts them."""
        self.process.wait()
        processes.kill_adopted()


def said_on(status: int) -> dict[str, list[str]]:
    """A supervisor's status lines, by first word; some are missing if it was killed."""
    lines = [line.split(" ") for line in processes.read_available(status).decode(errors="replace").splitlines()]
    return {line[0]: line[1:] for line in lines}


def supervise(
    job: Job,
    launch: Launch,
    held: Descriptors,
    report: StartReport,
    failure: Callable[[], str | None] = lambda: None,
) -> Exit:
    """Run `launch` under the limits of `job` until nothing of it is left.

    `held` owns `launch.fds`, which are closed here once the supervisor has them. `report`: the forwarder's.
    `failure` returns why what the launch starts never executed the job's argv; it is called if the job has ended
    by itself. Raises `SandboxError`.
    """
    from trialfleet_sandbox.memory_group import limited_group  # which no pod needs

    with processes.adopting(), limited_group(job.memory_bytes) as group:
        lifeline_read, lifeline = held.pipe()
        status, status_write = held.pipe()
        os.set_blocking(status, False)
        stdin = held.keep(stdin_of(job))
        user = () if launch.uid is None else ("--uid", str(launch.uid))
        inherited = ("--inherited", ",".join(map(str, launch.fds))) if launch.fds else ()
        calls = (held.keep(memory_file("filter", launch.calls)),) if launch.calls else ()
        filtered = ("--filter", str(calls[0])) if calls else ()
        grouped = () if group is None else ("--group", str(group.folder))
        told = ("--lifeline", str(lifeline_read), "--status", str(status_write), *user, *inherited, *filtered)
        watch = LimitWatch(job, group)

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [_PYTHON, "-I", "-S", str(SUPERVISOR), *told, *grouped, "--cwd", launch.cwd, "--", *launch.argv],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=launch.env,
                pass_fds=(lifeline_read, status_write, *calls, *launch.fds),
                start_new_session=True,
            )

        try:
            process = processes.owned(start)
        except OSError as error:
            raise SandboxError(f"{_PYTHON}: {error}") from error
        held.close(lifeline_read, status_write, stdin, *calls, *launch.fds)
        try:
            with _outer(process, held) as outer:
                ended = drive(job, outer, _LocalHold(lifeline, process, launch), watch)
        finally:
            processes.disown(process.pid)
        said = said_on(status)
        code, core_s, peak = said.get("exit", [str(_KILLED), "0", "0"])
        cause = ended.cause or watch.afterwards(killed_unasked=int(code) == _KILLED)
    if ended.cause is not None or cause == "memory":  # the kernel may have killed bubblewrap as well
        why = report.failure(job, cause)
    elif "started" not in said:
        why = " ".join(said.get("error", ["no message"]))
    else:
        why = failure() or report.failure(job, None)
    if why is not None:
        raise start_failure(job, why, ended.wall_s)
    peak_bytes = max(int(peak), watch.peak_bytes) or None
    return Exit(int(code), cause or "itself", ended.wall_s, max(float(core_s), ended.core_s), peak_bytes)


@contextlib.contextmanager
def _outer(process: subprocess.Popen[bytes], held: Descriptors) -> Generator[Outer]:
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as stdout, process.stderr as stderr:
        yield Outer(stdout.fileno(), stderr.fileno(), held.keep(os.pidfd_open(process.pid)))


def run_on_the_host(job: Job, uid: int | None) -> Exit:
    """Run `job` on the host's own paths, as `uid` (None: as this user). Raises `SandboxError`."""
    with Descriptors() as held:
        report, fds = report_pipe(job, held)
        argv = wrapped(job, other_uid=uid is not None, report=fds[0] if fds else None)
        launch = Launch(argv, job.env, job.cwd, uid, fds, calls=usable_program())
        return supervise(job, launch, held, report)


def report_pipe(job: Job, held: Descriptors) -> tuple[StartReport, tuple[int, ...]]:
    """The forwarder's pipe: our end and, to be inherited, its own. Neither if the job has no forwarder."""
    if job.gateway is None:
        return StartReport(None), ()
    read_end, write_end = held.pipe()
    return StartReport(read_end), (write_end,)


def wrapped(job: Job, *, other_uid: bool, report: int | None) -> tuple[str, ...]:
    """The job's argv, started by the gateway's forwarder if there is a gateway. `report`: of `report_pipe`."""
    if report is None:
        return job.argv
    python = _python_of_others() if other_uid else _PYTHON
    return forwarded(job, python=python, script=str(FORWARDER), socket=str(job.gateway), report=report)


def _python_of_others() -> str:
    for found in interpreters(_VERSIONS, for_other_uid=True):
        return str(found.path)
    raise SandboxError("no Python that the agent's user may execute, for the gateway's forwarder")
