"""A process that parses: a grammar that hangs or crashes takes this process with it, not the command.

Its argument is the descriptor of a connection. It sends `READY`, then receives path and content in turn and sends
the facts of each as `encoding` writes them, until the other end is closed.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from trialfleet_targets.encoding import encoded

READY = b"ready"


def main(descriptor: int) -> None:
    from trialfleet_targets.parsing import parse

    connection: Connection[bytes, bytes] = Connection(descriptor)
    connection.send_bytes(READY)
    with suppress(EOFError):
        while True:
            path = os.fsdecode(connection.recv_bytes())
            connection.send_bytes(encoded(parse(path, connection.recv_bytes())))


if __name__ == "__main__":
    main(int(sys.argv[1]))
