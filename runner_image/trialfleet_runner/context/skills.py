"""Skills: folders with a SKILL.md, which an agent is told of by name and opens when it wants to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trialfleet_runner.agents.protocol import Step
from trialfleet_runner.trees import Tree

FOLDER = ".claude/skills"  # of the workspace
FILE = "SKILL.md"
_TOOL = "Skill"
NEEDLE_CHARS = 80


def placed(skills: Mapping[str, Tree]) -> Tree:
    """The skills' files, as they lie in the workspace."""
    return {f"{FOLDER}/{name}/{path}": entry for name, tree in skills.items() for path, entry in tree.items()}


def needle(description: str) -> str:
    """Beginning of its first line: what a list of skills shows of it."""
    return description.strip().partition("\n")[0][:NEEDLE_CHARS].rstrip()


def opened(steps: Iterable[Step], skills: Iterable[str]) -> bool:
    """Whether one of the skills was used by the agent's tool for that, or one of its files was read."""
    names = tuple(skills)
    folders = tuple(f"{FOLDER}/{name}/" for name in names)
    return any(
        (step.tool == _TOOL and step.detail in names) or (step.path or "").startswith(folders) for step in steps
    )


def called(steps: Iterable[Step], servers: Iterable[str]) -> bool:
    """Whether a tool of one of the MCP servers was called."""
    prefixes = tuple(f"mcp__{name}__" for name in servers)
    return any((step.tool or "").startswith(prefixes) for step in steps)
