"""Harbor's converters, run by the Python of an environment with Harbor: what it makes of an agent's own files."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trialfleet_agents.trajectory import read_trajectory
from trialfleet_ledger.trajectory import Parsed

PYTHON = "TRIALFLEET_TEST_HARBOR"  # of an environment with Harbor, whose Python is 3.12 or newer
COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens")
HARBOR = pytest.mark.skipif(
    PYTHON not in os.environ, reason=f"needs the Python of an environment with Harbor in ${PYTHON}"
)
NEEDED = [pytest.mark.needs("bwrap"), HARBOR]
# agent -> Harbor's converter of what it prints, and the file that it reads
CONVERTERS = {
    "copilot": ("copilot_cli:CopilotCli", "copilot-cli.jsonl"),
    "opencode": ("opencode:OpenCode", "opencode.txt"),
    "mini-swe-agent": ("mini_swe_agent:MiniSweAgent", "mini-swe-agent.trajectory.json"),
}
# Writes trajectory.json into each folder in which it is told that an agent's files are, and says so. Harbor's
# imports take five to ten core seconds.
_CONVERT = """
import importlib, os, sys
from pathlib import Path
from harbor.models.agent.context import AgentContext
for line in sys.stdin:
    converter, os.environ["HOME"] = line.rstrip("\\n").split("\\t")
    module, _, name = converter.partition(":")
    kind = getattr(importlib.import_module("harbor.agents.installed." + module), name)
    kind(logs_dir=Path(os.environ["HOME"])).populate_context_post_run(AgentContext())
    print("converted:", os.environ["HOME"], flush=True)
"""


class HarborProcess:
    """A Python with Harbor's converters."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def convert(self, converter: str, folder: Path) -> Parsed:
        """Harbor's ATIF of the agent's files in `folder`, as our reader understands it. `converter`:
        module:class."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{converter}\t{folder}\n")
        self._process.stdin.flush()
        said: list[str] = []
        for line in self._process.stdout:
            if line == f"converted: {folder}\n":
                return read_trajectory(folder / "trajectory.json", Path("/workspace"))
            said.append(line)
        raise AssertionError("".join(said))


@contextmanager
def start_harbor() -> Iterator[HarborProcess]:
    """It ends with the context; a conversion that fails ends it before, with its traceback."""
    env = {"PATH": os.defpath, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryDirectory() as home,
        subprocess.Popen(
            (os.environ[PYTHON], "-c", _CONVERT),
            env={**env, "HOME": home},
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        yield HarborProcess(process)
