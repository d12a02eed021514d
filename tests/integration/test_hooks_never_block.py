"""The hooks of Claude Code give up by themselves: an agent never waits for one that waits."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from trialfleet_runner.context import fail_fast, push_on_read


@pytest.mark.parametrize("hook", [push_on_read, fail_fast], ids=["push_on_read", "fail_fast"])
def test_an_event_that_never_ends_blocks_nobody(hook: ModuleType, tmp_path: Path) -> None:
    words = ["--workspace", str(tmp_path), "--context", str(tmp_path), "--log", str(tmp_path / "log")]
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-I", str(hook.__file__), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdin is not None
        process.stdin.write(b'{"tool_name": "Read"')
        process.stdin.flush()  # and it stays open
        assert process.wait(timeout=10 * hook.PATIENCE_S) == 0
        assert time.monotonic() - began > 0.8 * hook.PATIENCE_S
        assert process.stdout is not None
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.wait()
