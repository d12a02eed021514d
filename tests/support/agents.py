"""What an agent is given, with defaults. A test passes only the fields that it is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from trialfleet_agents.protocol import Setup
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_sandbox.protocol import Mount


def agent_setup(root: Path, spec: AgentSpec, **fields: Any) -> Setup:
    """Its folders are made below `root`: `ws`, `home`, `env`, `context` and `record`."""
    for name in ("ws", "home/tmp", "env/bin", "context", "record"):
        (root / name).mkdir(parents=True, exist_ok=True)
    places = {
        "workspace": root / "ws",
        "home": root / "home",
        "environment": root / "env",
        "record": root / "record",
    }
    given = {"prompt": "Mend it.\n", "system": None, "seed": 1, "pythonpath": (), "tests": (), "fix": None}
    hooks = {"hook_context": None, "hook_log": root / "home/hook.jsonl"}
    gateway = {"gateway_url": None, "gateway_token": None}
    return Setup(**{"spec": spec, **places, **given, **hooks, **gateway, **fields})


def mapped(root: Path) -> tuple[Mount, ...]:
    """The folders of `agent_setup` as bubblewrap shows them."""
    return (
        Mount(root / "ws", "/workspace", writable=True),
        Mount(root / "home", "/home/agent", writable=True),
        Mount(root / "env", "/env"),
    )


def unmapped(root: Path) -> tuple[Mount, ...]:
    """The same at their own paths."""
    return tuple(replace(mount, target=str(mount.source)) for mount in mapped(root))
