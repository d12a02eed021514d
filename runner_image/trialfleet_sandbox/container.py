"""Another container of this pod: the job runs there, below a supervisor that connects to a gate."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from trialfleet_sandbox.drive import Descriptors, Ended, Hold, Outer, drive, stdin_of
from trialfleet_sandbox.folder_usage import measure_folder
from trialfleet_sandbox.gate import Gate, hand_over, message
from trialfleet_sandbox.protocol import ContainerDied, Exit, Job, Mount, SandboxCapabilities
from trialfleet_sandbox.start import StartReport, start_failure
from trialfleet_sandbox.supervised import said_on, wrapped
from trialfleet_sandbox.supervisor import REPORT_FD
from trialfleet_sandbox.watch import Cause, LimitWatch

DISK_SHARE = 0.8  # of a volume's size: the kubelet evicts the whole pod for the rest, with hardly any grace
_KILLED = 128 + 9
_NEVER_RAN = Exit(_KILLED, "stopped", 0.0, 0.0)
CAPABILITIES = SandboxCapabilities(hides_host_folders=True, separate_container=True)


@dataclass(frozen=True)
class _RemoteHold(Hold):
    """With the connection to a supervisor whose processes cannot be seen from here, and cannot stop it."""

    connection: socket.socket

    def insist(self) -> None:
        """Nothing more: the container's supervisor kills everything by itself."""

    def settle(self) -> None:
        """The supervisor closes the connection when nothing of the job is left; if it is killed, its container
        ends."""
        with contextlib.suppress(ConnectionError):
            while self.connection.recv(64):
                pass


class _ReportingWatch(LimitWatch):
    """Reports a sample beyond the limits before the job is ended for it: the kubelet may end everything first."""

    def __init__(self, job: Job, report: Callable[[bool], None]) -> None:
        super().__init__(job)
        self._report = report

    def cause(self, root: int | None) -> Cause | None:
        return self._reported(super().cause(root))

    def afterwards(self, *, killed_unasked: bool) -> Cause | None:
        return self._reported(super().afterwards(killed_unasked=killed_unasked))

    def _reported(self, cause: Cause | None) -> Cause | None:
        if cause == "disk":
            self._report(True)
        return cause


@dataclass(frozen=True)
class ContainerSandbox:
    """Runs one job, and another one after each that is `followed`; the container ends with the last. Paths are the
    same on both sides, so mounts are not needed, and none is read-only. Memory is limited by the container itself.

    `volume`: everything that the job can write to. The kubelet counts the whole volume, so it is watched as a
    whole. `gone_is_memory`: what it means if the supervisor ends without a record and without being asked to. No
    program below it can end it: the first process of a container receives only the signals that it handles. In the
    agent's container, which requests as much memory as its limit, the only cause left is that limit. The scoring
    container requests less: there the node may be short of memory, and the sandbox has failed.
    `report`: called when a job begins (False), and when a sample of it is beyond its limits (True).
    """

    gate: Gate
    volume: Path
    gone_is_memory: bool
    warnings: tuple[str, ...] = ()
    report: Callable[[bool], None] = lambda _: None
    name: str = field(default="container", init=False)
    capabilities: SandboxCapabilities = field(default=CAPABILITIES, init=False)

    def run(self, job: Job) -> Exit:
        connection = self.gate.supervisor(job)
        if connection is None:
            return _NEVER_RAN
        with connection, Descriptors() as held:
            lifeline_read, lifeline = held.pipe()
            status, status_write = held.pipe()
            os.set_blocking(status, False)
            out, out_write = held.pipe()
            err, err_write = held.pipe()
            report, report_write = held.pipe()
            given: tuple[int, ...] = (
                *(held.keep(stdin_of(job)), out_write, err_write),
                *(lifeline_read, status_write, report_write),
            )
            given += (held.keep(self.gate.follow()),) if job.followed else ()
            watch = _ReportingWatch(limited(job, self.volume), self.report)
            argv = wrapped(job, other_uid=False, report=REPORT_FD if job.gateway else None)
            hand_over(connection, message(argv, job.env, job.cwd, reports=job.gateway is not None), given)
            held.close(*given)
            self.report(False)
            outer = Outer(out, err, connection.fileno())
            ended = drive(job, outer, _RemoteHold(lifeline, connection), watch)
            return self._exit(job, ended, said_on(status), watch, StartReport(report if job.gateway else None))

    def _exit(
        self, job: Job, ended: Ended, said: dict[str, list[str]], watch: LimitWatch, report: StartReport
    ) -> Exit:
        if "error" in said:
            raise start_failure(job, " ".join(said["error"]), ended.wall_s)
        if ended.cause == "timeout" or "exit" in said:
            why = report.failure(job, ended.cause)
            if why is not None:
                raise start_failure(job, why, ended.wall_s)
        if "exit" not in said:
            return self._gone(job, ended, by_program="lowered" in said)
        code, core_s, _, killed_by_kernel = said["exit"]
        cause = ended.cause or ("memory" if int(killed_by_kernel) else watch.afterwards(killed_unasked=False))
        return Exit(int(code), cause or "itself", ended.wall_s, float(core_s))

    def _gone(self, job: Job, ended: Ended, *, by_program: bool) -> Exit:
        """The supervisor ended without a record. Told to stop, the whole pod is ending. `by_program`: the program
        had lowered the supervisor's limits, for the kernel to end it."""
        cause = ended.cause or ("stopped" if job.stop.is_set() else "itself" if by_program else None)
        if cause is None and not self.gone_is_memory:
            raise ContainerDied(
                "the tests' container ended without a record: killed from outside, for its memory limit or by a "
                "node that is short of memory or goes away"
            )
        return Exit(_KILLED, cause or "memory", ended.wall_s, None)


def limited(job: Job, volume: Path) -> Job:
    """The job as the watch sees it: memory is not watched, `disk_bytes` is the size of the volume, and the whole
    volume counts."""
    size, watched = job.disk_bytes, Mount(volume, str(volume), writable=True)
    room = None if size is None else max(int(DISK_SHARE * size) - measure_folder(volume).size_bytes, 0)
    return replace(job, memory_bytes=None, disk_bytes=room, mounts=(watched,))
