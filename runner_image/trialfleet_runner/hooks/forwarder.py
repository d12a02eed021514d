"""Runs inside a sandbox without a network: a loopback port that leads to the gateway's unix socket.

    python forwarder.py --socket PATH --port PORT -- program arguments…

Standard library only and a single file, so that any Python 3.11 can run it from a read-only mount. The program
starts only when the port answers. It gets this process's stdin, stdout, stderr and signals; its exit code (128
plus the signal when one ended it) becomes ours, 127 when it cannot be started.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
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


def run(argv: list[str]) -> int:
    """The program to its end, with signals passed on."""
    child: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def forward(number: int, _: object) -> None:
        if child:
            child[0].send_signal(number)
        else:
            early.append(number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    try:
        child.append(subprocess.Popen(argv))
    except OSError as error:
        print(f"forwarder: {argv[0]}: {error.strerror}", file=sys.stderr)
        return 127
    for missed in early:
        child[0].send_signal(missed)
    code = child[0].wait()
    return code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True, type=Path)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    program = given.program[1:] if given.program[:1] == ["--"] else given.program
    if not program:
        parser.error("no program to run")
    listening = socket.create_server(("127.0.0.1", given.port), backlog=128)
    threading.Thread(target=accept, args=(listening, given.socket), daemon=True).start()
    return run(program)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # connections that are still open hold nothing up
