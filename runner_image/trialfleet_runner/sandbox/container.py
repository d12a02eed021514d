"""Another container of this pod: the job runs there, below a supervisor that waits at a gate."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path

from trialfleet_runner.sandbox.descriptors import Descriptors
from trialfleet_runner.sandbox.drive import Ended, Outer, drive, stdin_of
from trialfleet_runner.sandbox.forwarding import not_started
from trialfleet_runner.sandbox.gate import Gate, hand_over, message
from trialfleet_runner.sandbox.protocol import Exit, Job, Mount, SandboxError
from trialfleet_runner.sandbox.supervised import said_on, wrapped
from trialfleet_runner.sandbox.watch import Watch, folder_bytes

DISK_SHARE = 0.8  # of a volume's size: the kubelet evicts the whole pod for the rest, with hardly any grace
_KILLED = 128 + 9
_NEVER_RAN = Exit(_KILLED, "stopped", 0.0, 0.0)


@dataclass(frozen=True)
class _Hold:
    """The connection and the lifeline to a supervisor whose processes cannot be seen from here."""

    connection: socket.socket
    lifeline: int

    def root(self) -> int | None:
        return None

    def terminate(self) -> None:
        self._tell(b"T")

    def kill(self) -> None:
        self._tell(b"K")

    def _tell(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.lifeline, word)

    def settle(self) -> None:
        """The supervisor hangs up when nothing of the job is left; killed, it takes its container along."""
        with contextlib.suppress(ConnectionError):
            while self.connection.recv(64):
                pass


@dataclass(frozen=True)
class ContainerSandbox:
    """Runs one job, and the one that follows it, if it is followed: a container ends with its last. Paths are the
    same on both sides, so mounts are not needed, and none is read-only. Memory is the container's own limit.

    `volume`: all that the job can write to. The kubelet counts the whole of it, so it is watched as a whole.
    `gone_is_memory`: what it means that the supervisor ended without a word, with nobody asking. In the agent's
    container, which requests what it may use, only its own memory limit kills it. The scoring container requests
    less: there it may be the node's shortage, and the sandbox has failed.
    """

    gate: Gate
    volume: Path
    gone_is_memory: bool
    warnings: tuple[str, ...] = ()
    name: str = field(default="container", init=False)

    def path_inside(self, path: Path, mounts: tuple[Mount, ...]) -> str:
        """The same path."""
        del mounts
        return str(path)

    def run(self, job: Job) -> Exit:
        """See `Sandbox.run`."""
        connection = self.gate.supervisor(job)
        if connection is None:
            return _NEVER_RAN
        with connection, Descriptors() as held:
            lifeline_read, lifeline = held.pipe()
            status, status_write = held.pipe()
            os.set_blocking(status, False)
            out, out_write = held.pipe()
            err, err_write = held.pipe()
            given: tuple[int, ...] = (held.keep(stdin_of(job)), out_write, err_write, lifeline_read, status_write)
            given += (held.keep(self.gate.follow()),) if job.followed else ()
            watch = Watch(limited(job, self.volume))
            hand_over(connection, message(wrapped(job, other_uid=False), job.env, job.cwd), given)
            held.close(*given)
            outer = Outer(out, err, connection.fileno())
            ended = drive(job, outer, _Hold(connection, lifeline), watch)
            return self._exit(job, ended, said_on(status), watch)

    def _exit(self, job: Job, ended: Ended, said: dict[str, list[str]], watch: Watch) -> Exit:
        if "error" in said:
            raise SandboxError(f"could not start {job.argv[0]}: {' '.join(said['error'])}")
        if "exit" not in said:
            return self._gone(job, ended)
        code, core_s, killed_by_kernel = said["exit"]
        why = None if ended.cause else not_started(job, int(code))
        if why is not None:
            raise SandboxError(f"could not start {job.argv[0]}: {why}")
        cause = ended.cause or ("memory" if int(killed_by_kernel) else watch.afterwards(killed_unasked=False))
        return Exit(int(code), cause or "itself", ended.wall_s, float(core_s))

    def _gone(self, job: Job, ended: Ended) -> Exit:
        """The supervisor ended without a record. Told to stop, the whole pod is ending."""
        cause = ended.cause or ("stopped" if job.stop.is_set() else None)
        if cause is None and not self.gone_is_memory:
            raise SandboxError("the container ended by itself: killed for want of memory, its own or the node's")
        return Exit(_KILLED, cause or "memory", ended.wall_s, None)


def limited(job: Job, volume: Path) -> Job:
    """The job as the watch sees it: memory is not its matter, and `disk_bytes` is the size of the volume."""
    if job.disk_bytes is None:
        return replace(job, memory_bytes=None)
    room = max(int(DISK_SHARE * job.disk_bytes) - folder_bytes(volume), 0)
    watched = Mount(volume, str(volume), writable=True)
    return replace(job, memory_bytes=None, disk_bytes=room, mounts=(watched,))
