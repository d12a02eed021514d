"""What a process that runs one attempt leaves out of an interpreter's start and end: each attempt has its own."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import NoReturn


@contextmanager
def import_quickly() -> Generator[None]:
    """For the imports of a whole program."""
    # pydantic would read the entry points of every installed package to find plugins
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()  # what is imported stays: walking through it again and again finds nothing
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def exit_at_once(code: int) -> NoReturn:
    """Flush output and exit. Finalising an interpreter with some hundred modules takes as long as committing an
    attempt."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
