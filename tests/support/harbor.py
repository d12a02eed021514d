"""Harbor's converters, run by the Python of an environment with Harbor: what it makes of an agent's own files."""

from __future__ import annotations

import os
import subprocess
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
# Writes trajectory.json into the folder in which the agent's files are.
_CONVERT = """
import importlib, sys
from pathlib import Path
from harbor.models.agent.context import AgentContext
module, _, name = sys.argv[1].partition(":")
agent = getattr(importlib.import_module("harbor.agents.installed." + module), name)(logs_dir=Path(sys.argv[2]))
agent.populate_context_post_run(AgentContext())
"""


def converted(converter: str, folder: Path) -> Parsed:
    """Harbor's ATIF of the agent's files in `folder`, as our reader understands it. `converter`: module:class."""
    env = {"PATH": os.defpath, "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    argv = (os.environ[PYTHON], "-c", _CONVERT, converter, str(folder))
    subprocess.run(argv, check=True, env=env, capture_output=True, timeout=300)
    return read_trajectory(folder / "trajectory.json", Path("/workspace"))
