"""The runner's end of another container: a socket in a folder that both see, over which a job is handed.

The supervisor there (`supervise.py`) is the first process of its container and connects before any other could
exist. It gets the job as one message, with its descriptors: what is handed over cannot be opened by a name. That
holds for the connection of a second job, too, which is one of the first one's descriptors.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from trialfleet_sandbox.protocol import Job, SandboxError

SOCKET = "gate.sock"
WAIT_S = 120.0  # for the other container to start
_LOOK_S = 0.2


class Gate:
    """Listens from the start, and closes for good after the first connection.

    Its socket file stays: a supervisor that is refused there knows that the runner has gone or has its supervisor.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / SOCKET
        path.unlink(missing_ok=True)
        fresh = path.with_name(f"{SOCKET}.new")
        fresh.unlink(missing_ok=True)
        self.path = path
        self._next: socket.socket | None = None
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(fresh))
        fresh.chmod(0o666)
        self._listening.listen(1)
        fresh.rename(path)  # renamed after listen(), so that no early connection is refused

    def supervisor(self, job: Job, wait_s: float = WAIT_S) -> socket.socket | None:
        """The first connection, or the one that was handed over for this job; later ones are refused. None:
        `job.stop` was set before a supervisor connected.

        Raises `SandboxError` if no supervisor connects within `wait_s`, or one has connected before.
        """
        if self._next is not None:
            connection, self._next = self._next, None
            return connection
        until = time.monotonic() + wait_s
        try:
            self._listening.settimeout(_LOOK_S)
            while time.monotonic() < until:
                if job.stop.is_set():
                    return None
                try:
                    connection, _ = self._listening.accept()
                except TimeoutError:
                    continue
                self.close()
                connection.settimeout(None)
                return connection
        except OSError as error:
            raise SandboxError(f"{self.path}: used before, or closed: {error}") from error
        raise SandboxError(f"{self.path}: its container did not start within {wait_s:.0f} s")

    def follow(self) -> int:
        """A descriptor to hand over with a job: the connection of the next one. The caller closes it."""
        self._next, theirs = socket.socketpair()
        return theirs.detach()

    def close(self) -> None:
        """Accept no more connections, and close those that wait."""
        self._listening.close()
        if self._next is not None:
            self._next.close()


def message(argv: tuple[str, ...], env: dict[str, str], cwd: str, *, reports: bool) -> bytes:
    """A job on its way: fields that end with NUL, which none of them can hold: the folder, whether its program
    inherits the report (`REPORT_FD`), the number of arguments, the arguments, and the variables.

    >>> message(("echo", "a b"), {"HOME": "/h"}, "/w", reports=False)
    b'/w\\x000\\x002\\x00echo\\x00a b\\x00HOME=/h\\x00'
    """
    fields = (cwd, str(int(reports)), str(len(argv)), *argv, *(f"{name}={value}" for name, value in env.items()))
    return b"".join(os.fsencode(field) + b"\0" for field in fields)


def hand_over(connection: socket.socket, told: bytes, fds: tuple[int, ...]) -> None:
    """Send the job: its length (four bytes, with the descriptors), then its message. Raises `SandboxError` if the
    supervisor has gone."""
    try:
        socket.send_fds(connection, [len(told).to_bytes(4, "big")], list(fds))
        connection.sendall(told)
    except OSError as error:
        raise SandboxError(f"the container's supervisor has gone: {error}") from error
