"""Runs inside a sandbox without a network: a loopback port that leads to the gateway's unix socket.

    python forwarder.py --socket PATH --port PORT --report FD -- program arguments…

Standard library only and a single file, so that any Python 3.11 can run it from a read-only mount. The program
starts only when the port accepts connections. It gets this process's stdin, stdout, stderr and signals; its exit
code (128 plus the signal when one ended it) becomes ours. The runner reads from FD whether the program was
executed: no exit code and nothing printed can say it, for the program could forge both."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

_CHUNK = 2**16
_LONGEST_ADDRESS = 100
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def connect(path: Path) -> socket.socket:
    """Connected to a unix socket, also when its path is longer than an address may be (108 bytes)."""
    upstream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        short = len(os.fsencode(path)) <= _LONGEST_ADDRESS
        upstream.connect(str(path) if short else f"/proc/self/fd/{folder}/{path.name}")
    except BaseException:
        upstream.close()
        raise
    finally:
        os.close(folder)
    return upstream


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until `source` ends, then pass the end on; a failure ends both directions."""
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def relay(client: socket.socket, path: Path) -> None:
    """One connection, both directions, each closed by itself."""
    with client:
        try:
            upstream = connect(path)
        except OSError:
            return
        with upstream:
            back = threading.Thread(target=pump, args=(upstream, client), daemon=True)
            back.start()
            pump(client, upstream)
            back.join()


def accept(listening: socket.socket, path: Path) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            continue  # out of descriptors, or a client that left: the next one may be fine
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=relay, args=(client, path), daemon=True).start()


def close_at_exec() -> None:
    """The program inherits stdin, stdout and stderr alone."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, no paths
        with suppress(OSError):
            os.set_inheritable(int(name), int(name) <= 2)


def start(argv: list[str], report: int) -> int:
    """The program's pid. `report` is closed here before the program is executed: nothing that the program could
    open holds it then. No thread may run yet."""
    closed_read, closed_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(closed_write)
        os.read(closed_read, 1)
        execute(argv, report)
    for fd in (report, closed_write, closed_read):
        os.close(fd)
    return child


def execute(argv: list[str], report: int) -> None:
    """Become the program. The runner reads "R", and what follows it says why the program could not be executed."""
    for number in (*_FORWARDED, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.write(report, b"R")
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point
    except BaseException as error:
        os.write(report, (getattr(error, "strerror", None) or str(error)).encode(errors="replace"))
    os._exit(127)


def run(argv: list[str], listening: socket.socket, options: argparse.Namespace) -> int:
    """The program to its end, with signals passed on."""
    child: list[int] = []
    early: list[int] = []

    def forward(number: int, _: object) -> None:
        if child:
            with suppress(ProcessLookupError):  # it has just been collected
                os.kill(child[0], number)
        else:
            early.append(number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    close_at_exec()
    child.append(start(argv, options.report))
    threading.Thread(target=accept, args=(listening, options.socket), daemon=True).start()
    for missed in early:
        os.kill(child[0], missed)
    _, status = os.waitpid(child[0], 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True, type=Path)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--report", required=True, type=int)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    program = given.program[1:] if given.program[:1] == ["--"] else given.program
    if not program:
        parser.error("no program to run")
    return run(program, socket.create_server(("127.0.0.1", given.port), backlog=128), given)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # connections that are still open hold nothing up
