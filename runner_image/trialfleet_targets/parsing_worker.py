"""A process that parses: a grammar that hangs or crashes takes this process with it, not the command.

Standard input: path and content in turn, each after its length (4 bytes, network order); an empty path ends it.
Standard output: `READY`, then the facts of each as `encoding` writes them; all after their length.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import BinaryIO

from trialfleet_targets.encoding import encoded

LENGTH = struct.Struct("!I")
READY = b"ready"


def main() -> None:
    from trialfleet_targets.parsing import parse

    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # a stray print must not pass for an answer
    write(answers, READY)
    while path := os.fsdecode(read(asked)):
        write(answers, encoded(parse(path, read(asked))))


def write(stream: BinaryIO, value: bytes) -> None:
    stream.write(LENGTH.pack(len(value)) + value)
    stream.flush()


def read(stream: BinaryIO) -> bytes:
    """One value; empty at the end of the stream."""
    head = stream.read(LENGTH.size)
    return stream.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


if __name__ == "__main__":
    main()
