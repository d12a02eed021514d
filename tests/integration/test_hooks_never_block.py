"""The hooks of Claude Code give up by themselves: an agent never waits for one that waits."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

from trialfleet_deliveries.hooks import fail_fast, push_on_read

HOOKS = (push_on_read, fail_fast)


def begin(hook: ModuleType, folder: Path) -> subprocess.Popen[bytes]:
    """With the beginning of an event whose end never comes."""
    words = ["--workspace", str(folder), "--context", str(folder), "--log", str(folder / "log")]
    process = subprocess.Popen(
        [sys.executable, "-I", str(hook.__file__), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(b'{"tool_name": "Read"')
    process.stdin.flush()  # and it stays open
    return process


def test_an_event_that_never_ends_blocks_nobody(tmp_path: Path) -> None:
    """All of them at once: it is waiting."""
    began = time.monotonic()
    with ExitStack() as stack:
        for process, hook in [(begin(hook, tmp_path), hook) for hook in HOOKS]:
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.wait(timeout=10 * hook.PATIENCE_S) == 0
            assert time.monotonic() - began > 0.8 * hook.PATIENCE_S
            assert process.stdout is not None
            assert process.stdout.read() == b""
